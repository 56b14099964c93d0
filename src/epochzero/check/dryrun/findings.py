"""What a dry run's records mean: findings in the taxonomy's words, like a diagnosis of the future.

What failed only because the dry run is not the platform, no network, no GPU, no data, is unknown and
no finding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.dryrun.contain.model import Ended
from epochzero.check.dryrun.records import Frame, NaN, Raised
from epochzero.check.findings import Finding, Place, Severity, Unknown
from epochzero.check.job.model import COMMAND, Job
from epochzero.check.target.model import Target
from epochzero.diagnose import Diagnoser, Diagnosis, Facts
from epochzero.logs.source import Log

__all__ = ["Failure", "failure", "nan_loss", "place_of"]

_LIBRARIES = ("site-packages", "dist-packages")
_NO_GPU = re.compile(
    r"not compiled with CUDA|No CUDA GPUs|NVIDIA driver|not linked with support for cuda"
    r"|torch\.cuda\.is_available\(\) is False|No supported gpu backend|not found.*accelerator",
    re.IGNORECASE,
)
_NO_NETWORK = re.compile(
    r"ConnectionError|ConnectTimeout|URLError|gaierror|OfflineMode|LocalEntryNotFound"
    r"|MaxRetryError|NetworkUnreachable|NewConnectionError"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that did not end well.

    Attributes:
        raised: the error; None where the process ended without one.
        ended: how the process ended.
        mode: of the dry run.
        certain: whether the whole job would surely fail like this.
        first: whether no other job of the submission comes before it and may have written for it.
    """

    raised: Raised | None
    ended: Ended
    mode: str
    certain: bool
    first: bool


def failure(failed: Failure, job: Job, target: Target) -> Finding | Unknown:
    """What the end of a run says of the job on its platform."""
    place = _place(failed, job)
    if reason := _not_the_platform(failed, job, target):
        return Unknown("what comes after this line", reason, place)
    ended = failed.ended
    facts = Facts(exit_code=ended.code or 1)
    found = Diagnoser().diagnose([Log("dry run", text=ended.output.encode())], facts)
    severity: Severity = "error" if failed.certain else "warning"
    if failed.raised is None and place.path == COMMAND and found.user_frame:
        frame = found.user_frame
        place = place_of(frame.file, frame.line or 0, job, frame.code)
    return Finding(
        rule="dry-run-crashed" if ended.signal else "dry-run-failed",
        severity=severity,
        category="process_crash" if ended.signal else found.category,
        phase=failed.raised.phase if failed.raised else found.phase,
        place=place,
        message=_message(failed, found),
        consequence=_consequence(failed, found),
        fix=_fix(failed, found),
        via=_via(failed, job, place),
    )


def nan_loss(record: NaN, job: Job) -> Finding:
    """A loss that is no number, with which the script goes on."""
    return Finding(
        rule="dry-run-nan",
        severity="warning",
        category="loss_nan",
        phase="training",
        place=place_of(record.path, record.line, job),
        message="The loss is NaN when backward is called.",
        consequence="Every weight that the step reaches becomes NaN.",
        fix="Look at the batch and at the loss's terms: a logarithm or a division of zero, a mean of "
        "nothing, a learning rate that is too high.",
    )


def place_of(path: str, line: int, job: Job, code: str = "") -> Place:
    """A place as findings tell it: relative to the job's folder where it lies there."""
    if not path:
        return job.at
    file = Path(path)
    if file.is_relative_to(job.base):
        path = file.relative_to(job.base).as_posix()
    return Place(path, line, 1 if line else 0, code or _line(file, line))


def _line(file: Path, line: int) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[line - 1].strip()[:400] if 0 < line <= len(lines) else ""


# -- Where -------------------------------------------------------------------------------------


def _place(failed: Failure, job: Job) -> Place:
    frames = failed.raised.frames if failed.raised else ()
    if failed.raised and failed.raised.type == "SystemExit" and _of_parser(frames):
        return Place(COMMAND, 0, 1, job.command)
    own = _own(frames, job)
    return place_of(own[-1].path, own[-1].line, job, own[-1].code) if own else job.at


def _of_parser(frames: Sequence[Frame]) -> bool:
    return bool(frames) and frames[-1].path.endswith("argparse.py")


def _own(frames: Sequence[Frame], job: Job) -> list[Frame]:
    """The frames of the user's own code."""
    roots = [job.base, job.folder, *([job.script.parent] if job.script else [])]
    return [
        frame
        for frame in frames
        if any(Path(frame.path).is_relative_to(root) for root in roots)
        and not any(name in Path(frame.path).parts for name in _LIBRARIES)
    ]


def _via(failed: Failure, job: Job, place: Place) -> tuple[Place, ...]:
    frames = failed.raised.frames if failed.raised else ()
    places = [place_of(one.path, one.line, job, one.code) for one in _own(frames, job)]
    return tuple(dict.fromkeys(one for one in places if one != place))


# -- What --------------------------------------------------------------------------------------


def _message(failed: Failure, found: Diagnosis) -> str:
    doubt = "" if failed.certain else " Loops were shortened before it, which may be its cause."
    layer = failed.raised.layer if failed.raised else None
    where = (
        f" In {layer.get('path')}, {layer.get('class')}({layer.get('config', '')})."
        if layer
        else ""
    )
    return f"The dry run ended here. {found.meaning or failed.ended.why}{where}{doubt}"


def _consequence(failed: Failure, found: Diagnosis) -> str:
    raised = failed.raised
    if failed.ended.signal:
        return failed.ended.why
    if raised is not None and raised.type != "SystemExit":
        return f"{raised.type}: {raised.message}".strip().removesuffix(":")
    return found.root.text if found.root else failed.ended.why


def _fix(failed: Failure, found: Diagnosis) -> str:
    layer = failed.raised.layer if failed.raised else None
    if layer and layer.get("fix"):
        return f"Use {layer['fix']}."
    return found.fixes[0] if found.fixes else "Run the command dry and look at its output."


# -- What the dry run cannot have --------------------------------------------------------------


def _not_the_platform(failed: Failure, job: Job, target: Target) -> str:
    """Why the failure may not be one on the platform; empty where it is one."""
    ended, raised = failed.ended, failed.raised
    if ended.limit:
        return ended.why
    if ended.signal:
        return "" if ended.signal in _CRASHES else ended.why
    if raised is None:
        return ""
    if raised.type.endswith(".Unfit"):
        return f"the GPU cannot be pretended here: {raised.message}"
    shown = f"{raised.type}: {raised.message}"
    if raised.type == "EOFError" and "EOF when reading a line" in raised.message:
        return "it asks its standard input, which is empty in a dry run"
    if failed.mode == "real" and target.gpus != () and _NO_GPU.search(shown):
        return "it needs a GPU, and the dry run has none"
    if _NO_NETWORK.search(shown):
        return "it asks the network, which a dry run does not reach"
    if variable := _variable(raised):
        known = target.here and not (job.launchers or job.programs)
        return "" if known else f"{variable} is not set in the dry run"
    if raised.type == "ModuleNotFoundError":
        return _module_elsewhere(raised, job, target)
    if raised.type in ("FileNotFoundError", "NotADirectoryError", "PermissionError"):
        alone = failed.first and not (job.makes or job.programs)
        return _path_elsewhere(raised, job, target) if alone else _BEFORE
    path = _missing_argument(job, target)
    if path and (raised.type == "SystemExit" or path in raised.message):
        return f"{path} is not on this machine; whether the target has it is not known"
    return ""


_CRASHES = frozenset({"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV"})
_BEFORE = "what the submission does before the program may not have been done here"
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")


def _variable(raised: Raised) -> str:
    """The environment variable that the failure is about, which a launcher may set."""
    if (
        raised.type == "KeyError"
        and raised.frames
        and raised.frames[-1].path.endswith(("os.py", "<frozen os>"))
    ):
        return raised.message.strip("'")
    expected = re.search(r"environment variable (\w+) expected", raised.message)
    return expected[1] if expected else ""


def _module_elsewhere(raised: Raised, job: Job, target: Target) -> str:
    """A library that this Python lacks; whether the platform has it is asked of its description."""
    named = _QUOTED.search(raised.message)
    top = named[1].partition(".")[0] if named else ""
    if any(
        (root / top).exists() or (root / f"{top}.py").exists() for root in {job.base, job.folder}
    ):
        return ""
    return f"the Python of the dry run has no module {top}, so nothing behind its import was run"


def _missing_argument(job: Job, target: Target) -> str:
    """A path on the command line that another machine may have, and this one has not."""
    words = [word.rpartition("=")[2] for word in job.argv]
    return next(
        (
            word
            for word in words
            if word.startswith("/")
            and not (target.here or target.files.get(word) is False or Path(word).exists())
        ),
        "",
    )


def _path_elsewhere(raised: Raised, job: Job, target: Target) -> str:
    """A path outside of the job's folder, which another machine may have."""
    named = _QUOTED.findall(raised.message)
    path = Path(named[-1]) if named else Path()
    if target.here or not path.is_absolute() or path.is_relative_to(job.base):
        return ""
    if target.files.get(str(path)) is False:
        return ""
    return f"{path} is not on this machine; whether the target has it is not known"
