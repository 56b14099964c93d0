"""The ``#SBATCH`` lines of a batch file (sbatch(1)), and the variables that follow from them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from epochzero.check.job.catalogue import Option, launchers, take
from epochzero.check.job.model import Job, Word
from epochzero.check.job.setting import Script

__all__ = ["is_batch", "options_of", "variables_of"]

_LINE = re.compile(r"#SBATCH[ \t]+(.*)")


def is_batch(text: str) -> bool:
    """Whether a script has ``#SBATCH`` lines."""
    return re.search(r"^#SBATCH\s", text, re.MULTILINE) is not None


def options_of(script: Script) -> Iterator[tuple[Option, Word]]:
    """The options of the ``#SBATCH`` lines; those after the first command do not count."""
    for row, line in enumerate(script.text.split("\n")):
        if line.strip() and not line.startswith("#"):
            return
        found = _LINE.match(line)
        if found is None:
            continue
        try:
            texts = shlex.split(found[1], comments=True)
        except ValueError:
            texts = found[1].split()
        words = [Word(text, script.place(row)) for text in texts]
        yield from take(launchers()["sbatch"], words).options


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
        "SLURM_SUBMIT_DIR": str(job.folder),
        "SLURM_ARRAY_TASK_ID": None,
        "SLURM_ARRAY_JOB_ID": None,
        "SLURM_ARRAY_TASK_COUNT": None,
    }
    if "--array" not in said:
        known = {k: v for k, v in known.items() if not k.startswith("SLURM_ARRAY")}
    always = re.compile("SLURM_(NNODES|JOB_NUM_NODES|JOB_NAME|JOB_PARTITION|ARRAY.*)")
    return {k: v for k, v in known.items() if v is not None or always.fullmatch(k)}
