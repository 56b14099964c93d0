"""The lines of a batch file that are for the batch system, and the variables that follow from them.

Sources: sbatch(1) of Slurm, qsub(1B) of PBS and Torque, qsub(1) of Grid Engine, bsub(1) of LSF.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from epochzero.check.job.catalogue import Launcher, Option, launchers, take
from epochzero.check.job.model import Job, Word
from epochzero.check.job.setting import Script

__all__ = ["launcher_of", "options_of", "variables_of"]


def launcher_of(text: str) -> Launcher | None:
    """The program that a script is written to be submitted with; None when it has no such lines."""
    for launcher in launchers().values():
        if _line(launcher).search(text):
            return launcher
    return None


def _line(launcher: Launcher) -> re.Pattern[str]:
    """A line with options: ``#SBATCH --nodes=2``; a pattern that never fits where it has none."""
    marks = "|".join(map(re.escape, launcher.directives)) or "(?!)"
    return re.compile(rf"^(?:{marks})[ \t]+(-.*)", re.MULTILINE)


def options_of(script: Script, launcher: Launcher) -> Iterator[tuple[Option, Word]]:
    """The options in a batch file; those after the first command do not count."""
    pattern = _line(launcher)
    for row, line in enumerate(script.text.split("\n")):
        if line.strip() and not line.startswith("#"):
            return
        found = pattern.match(line)
        if found is None:
            continue
        try:
            texts = shlex.split(found[1], comments=True)
        except ValueError:
            texts = found[1].split()
        words = [Word(text, script.place(row)) for text in texts]
        yield from take(launcher, words).options


def variables_of(job: Job, options: Sequence[tuple[Option, Word]]) -> dict[str, str | None]:
    """What Slurm sets for the batch script, as far as it follows from the options.

    Args:
        job: with the numbers that the options say.
        options: all of them; later ones win.
    """
    said = {option.name: value.text for option, value in options}
    nodes = None if job.nodes is None else str(job.nodes)
    tasks = None if job.processes is None else str(job.processes)
    known = {
        "SLURM_NNODES": nodes,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS_PER_NODE": said.get("--ntasks-per-node"),
        "SLURM_CPUS_PER_TASK": said.get("--cpus-per-task"),
        "SLURM_GPUS_PER_NODE": said.get("--gpus-per-node"),
        "SLURM_GPUS_ON_NODE": None if job.gpus_per_node is None else str(job.gpus_per_node),
        "SLURM_GPUS": said.get("--gpus"),
        "SLURM_JOB_NAME": said.get("--job-name"),
        "SLURM_JOB_PARTITION": said.get("--partition"),
        "SLURM_MEM_PER_NODE": None if job.memory_bytes is None else str(job.memory_bytes >> 20),
        "SLURM_ARRAY_TASK_ID": None,
        "SLURM_ARRAY_JOB_ID": None,
        "SLURM_ARRAY_TASK_COUNT": None,
    }
    if "--array" not in said:
        known = {k: v for k, v in known.items() if not k.startswith("SLURM_ARRAY")}
    always = re.compile("SLURM_(NNODES|JOB_NUM_NODES|JOB_NAME|JOB_PARTITION|ARRAY.*)")
    return {k: v for k, v in known.items() if v is not None or always.fullmatch(k)}
