"""What a dry run's records mean: findings in the taxonomy's words, like a diagnosis of the future.

What failed only because the dry run is not the platform, no network, no GPU, no data, is unknown and
no finding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.dryrun.attempt import DryRunPlan
from epochzero.check.dryrun.contain.model import Ended
from epochzero.check.dryrun.records import Frame, NaN, Raised, Resumed
from epochzero.check.findings import Finding, Severity, SourceLocation, Unknown
from epochzero.check.job.model import COMMAND, Job
from epochzero.check.target.model import Target
from epochzero.diagnose import Diagnoser, Diagnosis, Facts
from epochzero.logs.source import Log

FAILURES = ("dry-run-failed", "dry-run-crashed")
"""What a run that ended badly is told as."""
OUT_OF_TIME = "the time of the dry run was over; --dry-time gives it more"
_LIBRARIES = ("site-packages", "dist-packages")
_NO_GPU = re.compile(
    r"not compiled with CUDA|No CUDA GPUs|NVIDIA driver|not linked with support for cuda"
    r"|torch\.cuda\.is_available\(\) is False|No supported gpu backend|not found.*accelerator"
    r"|Unknown backend: '(gpu|cuda)'|no platforms that are instances of",
    re.IGNORECASE,
)
_PRETENDED = re.compile(r"unknown parameter type|must be (torch\.)?(cuda\.)?(Stream|Event), not")
_NO_DISPLAY = re.compile(r"no display name|cannot open display|could not connect to display")
_NO_NETWORK = re.compile(
    r"ConnectionError|ConnectTimeout|URLError|gaierror|OfflineMode|LocalEntryNotFound"
    r"|MaxRetryError|NetworkUnreachable|NewConnectionError|couldn't connect to '?https?:"
    r"|outgoing traffic has been disabled|offline mode is enabled"
)


@dataclass(frozen=True, slots=True)
class DryRunFailure:
    """A run that did not end well.

    Attributes:
        raised: the error; None where the process ended without one.
        ended: how the process ended.
        plan: of the run.
        certain: whether the whole job would surely fail like this.
        ran_out: whether the time was over before that could be made certain.
        first: whether no other job of the submission comes before it and may have written for it.
        resumed: that it is the job which goes on from what it saved that fails.
    """

    raised: Raised | None
    ended: Ended
    plan: DryRunPlan
    certain: bool
    ran_out: bool
    first: bool
    resumed: Resumed | None = None


def failure(failed: DryRunFailure, job: Job, target: Target) -> Finding | Unknown:
    """What the end of a run says of the job on its platform."""
    place = _place(failed, job)
    if reason := _not_the_platform(failed, job, target):
        return Unknown("what comes after this line", reason, place)
    ended = failed.ended
    facts = Facts(exit_code=ended.code or 1)
    found = Diagnoser().diagnose([Log("dry run", text=ended.output.encode())], facts)
    severity: Severity = "error" if failed.certain and not failed.resumed else "warning"
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
        fix=_fix(failed, found, job),
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


def code_deleted(ended: Ended, job: Job) -> Finding | None:
    """A job that deletes its own script, or a folder in which that lies."""
    script = job.script
    gone = [change.path for change in ended.changes if change.how == "deleted"]
    path = next((one for one in gone if script and script.is_relative_to(one)), None)
    if path is None:
        return None
    return Finding(
        rule="dry-run-deletes",
        severity="warning",
        category="path_not_found",
        phase="unknown",
        place=job.at,
        message=f"The job deletes {path}, and its own script with it.",
        consequence="The next start of the job, after a preemption too, finds no script.",
        fix="Delete only what the job has made itself.",
    )


def place_of(path: str, line: int, job: Job, code: str = "") -> SourceLocation:
    """A place as findings tell it: relative to the job's folder where it lies there."""
    if not path:
        return job.at
    file = Path(path)
    if file.is_relative_to(job.base):
        path = file.relative_to(job.base).as_posix()
    return SourceLocation(path, line, 1 if line else 0, code or _line(file, line))


def _line(file: Path, line: int) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[line - 1].strip()[:400] if 0 < line <= len(lines) else ""


# -- Where -------------------------------------------------------------------------------------


def _place(failed: DryRunFailure, job: Job) -> SourceLocation:
    frames = failed.raised.frames if failed.raised else ()
    if failed.raised and failed.raised.type == "SystemExit" and _of_parser(frames):
        return _said(failed, job)
    own = _own(frames, job)
    return place_of(own[-1].path, own[-1].line, job, own[-1].code) if own else job.at


def _said(failed: DryRunFailure, job: Job) -> SourceLocation:
    """Where the argument that a parser refuses is given: in the script that starts the job, if one does."""
    if job.at.path == COMMAND:
        return SourceLocation(COMMAND, 0, 1, job.command)
    complaint = failed.ended.output.rstrip().rpartition("\n")[2].split()
    refused = {word.rstrip(":,").partition("=")[0] for word in complaint}
    given = zip(job.argv, job.argv_at, strict=False)
    return next((at for word, at in given if word.partition("=")[0] in refused), job.at)


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


def _via(failed: DryRunFailure, job: Job, place: SourceLocation) -> tuple[SourceLocation, ...]:
    """The calls on the way, and where the layer that failed was made."""
    frames = failed.raised.frames if failed.raised else ()
    places = [place_of(one.path, one.line, job, one.code) for one in _own(frames, job)]
    layer = _layer(failed)
    if layer.path:
        places.append(place_of(layer.path, layer.line, job, layer.code))
    return tuple(dict.fromkeys(one for one in places if one != place))


# -- What --------------------------------------------------------------------------------------


def _message(failed: DryRunFailure, found: Diagnosis) -> str:
    ended = "The dry run ended here."
    if failed.resumed:
        ended = f"The job ends here when it goes on from what it saved: {' '.join(failed.resumed.argv)}."
    layer = _layer(failed).text
    meaning = _SILENT if _is_silent(failed, found) else found.meaning or failed.ended.why
    said = (ended, meaning, layer, _doubt(failed))
    return " ".join(sentence for sentence in said if sentence)


_SILENT = "The process ended itself without any error, as os._exit and some compiled code do."


def _is_silent(failed: DryRunFailure, found: Diagnosis) -> bool:
    return failed.raised is None and not failed.ended.signal and found.root is None


def _doubt(failed: DryRunFailure) -> str:
    if failed.certain:
        return ""
    if failed.plan.batch:
        return "Batches were cut down, which may be its cause."
    shortened = "Loops were shortened before it, which may be its cause"
    if failed.ran_out:
        return f"{shortened}: with whole loops {OUT_OF_TIME}."
    return f"{shortened}."


@dataclass(frozen=True, slots=True)
class _Layer:
    """The layer that failed: what is said of it, and where the user's code made it."""

    text: str = ""
    path: str = ""
    line: int = 0
    code: str = ""


def _layer(failed: DryRunFailure) -> _Layer:
    said = (failed.raised.layer if failed.raised else None) or {}
    made = said.get("defined")
    made = made if isinstance(made, dict) else {}
    path, line, code = made.get("path"), made.get("line"), made.get("code")
    if not (isinstance(path, str) and isinstance(line, int) and isinstance(code, str)):
        path, line, code = "", 0, ""
    name, kind = (str(said.get(key) or "") for key in ("path", "class"))
    if not kind:
        return _Layer()
    whole = f"{kind}({said.get('config') or ''})" if "config" in said else kind
    given = " and ".join(_shape(one) for one in said.get("shapes") or () if isinstance(one, list))
    text = f"Layer {name}, {whole}" if name else whole
    text += f", got {given}" if given else ""
    text += f"; it takes {said['expected']}" if said.get("expected") else ""
    return _Layer(f"{text}."[:2000], path, line, code)


def _shape(sizes: list[object]) -> str:
    return f"[{', '.join(str(size) for size in sizes[:8])}]"


def _consequence(failed: DryRunFailure, found: Diagnosis) -> str:
    raised = failed.raised
    if failed.ended.signal:
        return failed.ended.why
    if raised is not None and raised.type != "SystemExit":
        return f"{raised.type}: {raised.message}".strip().removesuffix(":")
    return found.root.text if found.root else failed.ended.why


def _fix(failed: DryRunFailure, found: Diagnosis, job: Job) -> str:
    layer = failed.raised.layer if failed.raised else None
    if _is_silent(failed, found):
        return "Look for os._exit in the job's code and in what it calls."
    if not (layer and layer.get("fix")):
        return found.fixes[0] if found.fixes else "Run the command dry and look at its output."
    fix, made = str(layer["fix"])[:1000], _layer(failed)
    if not _OF_CODE.match(fix):
        return f"{fix[0].upper()}{fix[1:]}."
    place = place_of(made.path, made.line, job)
    where = f" at {place.path}:{place.line}" if made.path and _ARGUMENT.match(fix) else ""
    return f"Use {fix}{where}."


_OF_CODE = re.compile(r"[\w.]+[=(\[]")
_ARGUMENT = re.compile(r"\w+=")


# -- What the dry run cannot have --------------------------------------------------------------


def _not_the_platform(failed: DryRunFailure, job: Job, target: Target) -> str:
    """Why the failure may not be one on the platform; empty where it is one."""
    ended, raised = failed.ended, failed.raised
    if ended.limit:
        return ended.why
    if raised is not None and _NO_MEMORY.search(f"{raised.type}: {raised.message}"):
        return _memory_elsewhere(raised, target)
    if ended.signal:
        return "" if ended.signal in _CRASHES else ended.why
    if raised is None:
        return ""
    if raised.type.endswith(".Unfit"):
        return f"the GPU cannot be pretended here: {raised.message}"
    shown = f"{raised.type}: {raised.message}"
    if raised.type == "EOFError" and "EOF when reading a line" in raised.message:
        return "it asks its standard input, which is empty in a dry run"
    if _NO_DISPLAY.search(shown) and "DISPLAY" in (target.environment or {}):
        return "it opens a window, and the dry run has no display"
    no_gpu = failed.plan.mode == "real" and (failed.plan.gpus or target.gpus != ())
    if no_gpu and (_NO_GPU.search(shown) or _counts_gpus(failed, job)):
        return "it needs a GPU, and the dry run has none"
    if failed.plan.gpus and _PRETENDED.search(shown):
        return (
            "a pretended stream or event is given to torch's compiled code, which takes a true one"
        )
    if _NO_NETWORK.search(shown):
        return "it asks the network, which a dry run does not reach"
    if variable := _variable(raised):
        known = target.here and not (job.launchers or job.programs)
        return "" if known else f"{variable} is not set in the dry run"
    if raised.type == "ModuleNotFoundError" or raised.message.startswith("No module named"):
        return _module_elsewhere(raised, job, target)
    if raised.type in _OF_PATHS or (raised.type == "OSError" and _NO_FOLDER.search(shown)):
        alone = failed.first and not (job.makes or job.programs)
        return _path_elsewhere(raised, job, target) if alone else _BEFORE
    path = _missing_argument(job, target)
    if path and (raised.type == "SystemExit" or path in raised.message):
        return f"{path} is not on this machine; whether the target has it is not known"
    return ""


_OF_PATHS = ("FileNotFoundError", "NotADirectoryError", "PermissionError")
_NO_FOLDER = re.compile(r"non-existent directory|No such file or directory")


def _counts_gpus(failed: DryRunFailure, job: Job) -> bool:
    """Whether the job asks a library for which none is pretended for a GPU, and stops without one."""
    raised = failed.raised
    own = _own(raised.frames, job) if raised else []
    if raised is None or failed.plan.gpus or not own:
        return False
    if raised.type == "IndexError":
        stops = bool(_FIRST_GPU.search(own[-1].code))
    else:
        told = f"{raised.message} {own[-1].code}"
        stops = raised.type in _OF_COUNTS and bool(_GPU.search(told))
    return stops and any(_COUNT.search(_text(frame.path)) for frame in own)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


_OF_COUNTS = frozenset(["AssertionError", "RuntimeError", "SystemExit"])
_GPU = re.compile(r"(\b|_)(gpu|cuda|accelerator)s?(\b|_)", re.IGNORECASE)
_FIRST_GPU = re.compile(r"(gpu|cuda|device|accelerator)\w*(\([^()]*\))?\[", re.IGNORECASE)
_COUNT = re.compile(
    r"\b(list_(physical|logical)_devices|(local_)?device_count|(local_)?devices|default_backend"
    r"|is_gpu_available|gpu_device_name|num_gpus|list_local_devices)\("
)
"""How a job asks TensorFlow, JAX or Keras which GPUs there are."""
_NO_MEMORY = re.compile(r"MemoryError|can't allocate memory")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
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


def _memory_elsewhere(raised: Raised, target: Target) -> str:
    """More memory than a dry run may have, which the platform may have; empty where it has not."""
    asked = re.search(
        r"allocate (?:memory: you tried to allocate )?([\d.]+) ?(bytes|[KMGT]iB)", raised.message
    )
    size = float(asked[1]) * _UNITS[asked[2]] if asked else 0.0
    if target.memory_bytes is not None and size > target.memory_bytes:
        return ""
    return "it asks for more memory than a dry run has; whether the platform has it is not known"


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
