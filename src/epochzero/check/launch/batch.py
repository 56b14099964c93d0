"""The directives of a batch file, and the environment variables that follow from them.

Sources: sbatch(1) of Slurm, qsub(1B) of PBS and Torque, qsub(1) of Grid Engine, bsub(1) of LSF.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from epochzero import launchers
from epochzero.check.findings import SourceLocation
from epochzero.check.launch.builtins import readable
from epochzero.check.launch.meanings import slurm_seconds, totals
from epochzero.check.launch.model import Allocation, Job, Word
from epochzero.check.launch.options import ParsedOptions, apply_options, set_variables, take
from epochzero.check.launch.setting import AT_HOME, Script, Setting, read_text
from epochzero.check.launch.shell_commands import read_script, run_shell_script, run_text
from epochzero.errors import InputError
from epochzero.file_access import is_file
from epochzero.launchers import Launcher, Option

_BEHIND_A_BLANK = re.compile(r"#[ \t]+SBATCH[ \t]+-\S")
_MEMORY = re.compile(r"\d+[KMGT]?B?", re.IGNORECASE)
_NODES = re.compile(r"\d[\d,:kKmM-]*")
_NO_LIMIT = frozenset({"infinite", "unlimited"})
_ANY_TEXT = frozenset({"--job-name", "--comment", "--wckey", "--wrap"})


def launcher_of(text: str) -> Launcher | None:
    """The program with which a script is meant to be submitted; None if it has no directives."""
    for launcher in launchers.by_name().values():
        if _line(launcher).search(text):
            return launcher
    return None


def _line(launcher: Launcher) -> re.Pattern[str]:
    """The pattern of a directive: ``#SBATCH --nodes=2``; for a launcher without directives one that never matches."""
    marks = "|".join(map(re.escape, launcher.directives)) or "(?!)"
    return re.compile(rf"^(?:{marks})[ \t]+(-.*)", re.MULTILINE)


def options_of(script: Script, launcher: Launcher) -> Iterator[tuple[Option, Word]]:
    """The options in a batch file; directives after the first command are ignored."""
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


def note_directives(script: Script, launcher: Launcher, setting: Setting) -> None:
    """Record the directives that Slurm rejects or ignores."""
    pattern = _line(launcher)
    commands = False
    for row, line in enumerate(script.text.split("\n")):
        place = script.place(row)
        commands = commands or bool(line.strip() and not line.startswith("#"))
        if _BEHIND_A_BLANK.match(line):
            text = "A blank between # and SBATCH makes the line a comment."
            setting.record.problem("ignored", place, text, certain=False)
        elif (found := pattern.match(line)) and commands:
            text = "The line follows the first command, so its options are ignored."
            setting.record.problem("ignored", place, text, certain=False)
        elif found:
            for text, certain in _refused(launcher, found[1]):
                setting.record.problem("directive", place, text, certain=certain and setting.sure)


def _refused(launcher: Launcher, line: str) -> Iterator[tuple[str, bool]]:
    """Yield the problems of a directive, and whether the batch system certainly rejects it."""
    try:
        texts = shlex.split(line, comments=True)
    except ValueError:
        yield "A quote is not closed.", False
        return
    taken = take(launcher, [Word(text, SourceLocation("")) for text in texts])
    for option, value in taken.options:
        if option.name not in {known.name for known in launcher.options.values()}:
            yield from _unknown(launcher, option.name)
        elif "$" in value.text:
            sure = option.name not in _ANY_TEXT and (
                "/" in value.text or option.meaning != "output"
            )
            yield (
                f"Variables are not expanded here: the value of {option.name} is literally {value.text}.",
                sure,
            )
        elif not _is_value(option, value.text):
            yield f"{value.text!r} is not a valid value of {option.name}.", True
    if taken.rest and taken.options and taken.options[-1][1].text:
        yield f"{taken.rest[0].text!r} does not belong to an option.", True


def _unknown(launcher: Launcher, name: str) -> Iterator[tuple[str, bool]]:
    """Report an unknown option that is similar to a known one; plug-ins may add others."""
    known = [*launcher.flags, *(option for option in launcher.options if option.startswith("--"))]
    begun = [text for text in known if text.startswith(name)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    if name.startswith("--") and name not in known and len(begun) != 1 and near:
        yield f"{name} is not an option; did you mean {near[0]}?", True


def _is_value(option: Option, text: str) -> bool:
    """Whether a text may be the value of an option, if that can be determined."""
    if option.meaning == "slurm_time":
        return slurm_seconds(text) is not None or text.lower() in _NO_LIMIT
    if option.meaning == "slurm_memory":
        return _MEMORY.fullmatch(text) is not None
    if option.meaning in ("nodes", "processes", "processes_per_node"):
        return _NODES.fullmatch(text) is not None
    return True


def variables_of(job: Job, options: Sequence[tuple[Option, Word]]) -> dict[str, str | None]:
    """Return the variables that Slurm sets for the batch script, as far as the options determine them.

    Args:
        job: the job with the numbers of the options.
        options: all options; later ones win.
    """
    requested = {option.name: value.text for option, value in options}
    nodes = None if job.allocation.nodes is None else str(job.allocation.nodes)
    tasks = None if job.allocation.processes is None else str(job.allocation.processes)
    known = {
        "SLURM_NNODES": nodes,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS_PER_NODE": requested.get("--ntasks-per-node"),
        "SLURM_CPUS_PER_TASK": requested.get("--cpus-per-task"),
        "SLURM_GPUS_PER_NODE": requested.get("--gpus-per-node"),
        "SLURM_GPUS_ON_NODE": None
        if job.allocation.gpus_per_node is None
        else str(job.allocation.gpus_per_node),
        "SLURM_GPUS": requested.get("--gpus"),
        "SLURM_JOB_NAME": requested.get("--job-name"),
        "SLURM_JOB_PARTITION": requested.get("--partition"),
        "SLURM_MEM_PER_NODE": None
        if job.allocation.memory_bytes is None
        else str(job.allocation.memory_bytes >> 20),
        "SLURM_ARRAY_TASK_ID": None,
        "SLURM_ARRAY_JOB_ID": None,
        "SLURM_ARRAY_TASK_COUNT": None,
        "SLURM_ARRAY_TASK_MAX": _last_task(requested.get("--array", "")),
    }
    if "--array" not in requested:
        known = {k: v for k, v in known.items() if not k.startswith("SLURM_ARRAY")}
    always = re.compile("SLURM_(NNODES|JOB_NUM_NODES|JOB_NAME|JOB_PARTITION|ARRAY.*)")
    return {k: v for k, v in known.items() if v is not None or always.fullmatch(k)}


def _last_task(array: str) -> str | None:
    """The highest number of ``1-10:2%4`` or ``0,3,7``."""
    found = re.findall(r"(\d+)(?:-(\d+)(?::(\d+))?)?(?:,|$)", array.partition("%")[0])
    ends = [int(b or a) - (int(b or a) - int(a)) % int(s or 1) for a, b, s in found if s != "0"]
    return str(max(ends)) if ends else None


def is_batch_file(launcher: Launcher, rest: Sequence[Word], setting: Setting) -> bool:
    """Whether the submitted file contains directives."""
    if not launcher.directives or not rest:
        return False
    path = next((p for p in setting.candidates(rest[0].text) if is_file(p)), None)
    try:
        return path is not None and launcher_of(read_text(path)) is launcher
    except InputError:
        return False


def run_batch(
    launcher: Launcher, words: Sequence[Word], taken: ParsedOptions, setting: Setting
) -> None:
    """``sbatch options file arguments``: options on the command line override the directives of the file."""
    script = read_script(taken.rest[0], setting) if taken.rest else None
    if script is None and not taken.rest and setting.input is not None:
        place = setting.input.place
        script = Script(place.path, readable(setting.input), place.line)
    options = [*(options_of(script, launcher) if script else ()), *taken.options]
    submitted = setting.draft
    # A batch file may submit others, which inherit no options.
    asked = Allocation(shared_memory_bytes=submitted.allocation.shared_memory_bytes)
    setting.draft = replace(submitted, allocation=asked, argument_sources={})
    apply_options(launcher, launcher.names[0], options, setting)
    set_variables(launcher, setting)
    variables: dict[str, str | None] = dict.fromkeys(launcher.submitted_from, str(submitted.folder))
    if launcher is launchers.by_name()["sbatch"]:
        variables |= variables_of(totals(setting.draft), options)
    given = {option.name for option, _ in options}
    if launcher.home_unless and given.isdisjoint(launcher.home_unless):
        setting.lost = AT_HOME
    environment = {**setting.draft.environment, **variables}
    setting.draft = replace(setting.draft, environment=environment)
    wrap = next((value for option, value in options if option.meaning == "wrap"), None)
    if wrap is not None:
        run_text(wrap, setting)
    elif script is not None:
        setting.arguments = tuple(taken.rest[1:])
        if launcher.flags:
            note_directives(script, launcher, setting)
        run_shell_script(replace(script, path=""), setting)
        _note_not_waited(setting)
    else:
        reason = "its batch file is read from standard input"
        setting.record.unknown(f"`{words[0].text}`", reason, words[0].place)


def _note_not_waited(setting: Setting) -> None:
    """Record what a batch script leaves in the background, which is killed with it."""
    record = setting.record
    for source, started in record.background:
        certain = setting.sure and started == record.started()
        record.problem("background", source.place, source.text, certain=certain)
    record.background.clear()
