"""Findings from the records of a dry run, in the categories of the taxonomy.

A failure whose only cause is that the dry run is not the platform (no network, no GPU, no data) is
UNKNOWN and not a finding.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epochzero.check.dryrun.attempt import DryRunPlan
from epochzero.check.dryrun.contain.model import Exit
from epochzero.check.dryrun.hangs import RULE as HANGS
from epochzero.check.dryrun.hangs import hang
from epochzero.check.dryrun.places import place_of
from epochzero.check.dryrun.records import ErrorRecord, FrameRecord, HangRecord, NaN, ResumeRecord
from epochzero.check.findings import Finding, Severity, SourceLocation, Unknown
from epochzero.check.launch.model import COMMAND, Job
from epochzero.check.target.model import Target
from epochzero.diagnose import Diagnoser, Diagnosis, Facts
from epochzero.launchers import by_name
from epochzero.logs.source import Log

FAILURES = ("dry-run-failed", "dry-run-crashed", HANGS)
"""Rule of each way in which a run can end badly."""
OUT_OF_TIME = "the dry run reached its time limit; --dry-time increases it"
_LIBRARIES = ("site-packages", "dist-packages")
_NO_GPU = re.compile(
    r"not compiled with CUDA|No CUDA GPUs|NVIDIA driver|not linked with support for cuda"
    r"|torch\.cuda\.is_available\(\) is False|No supported gpu backend|not found.*accelerator"
    r"|Unknown backend: '(gpu|cuda)'|no platforms that are instances of",
    re.IGNORECASE,
)
_PRETENDED = re.compile(r"unknown parameter type|must be (torch\.)?(cuda\.)?(Stream|Event), not")
# What has no values is on the device "meta"; compiled code that is no operation, such as that of TorchScript's save, sees it.
_WITHOUT_STORAGE = re.compile(r'storage on different device "meta"')
_NO_DISPLAY = re.compile(r"no display name|cannot open display|could not connect to display")
_NO_NETWORK = re.compile(
    r"ConnectionError|ConnectTimeout|URLError|gaierror|OfflineMode|LocalEntryNotFound"
    r"|MaxRetryError|NetworkUnreachable|NewConnectionError|couldn't connect to '?https?:"
    r"|outgoing traffic has been disabled|offline mode is enabled"
)
_BUSY = re.compile(r"\[Errno 16\][^\n]*: '(?P<path>[^'\n]+)'")


@dataclass(frozen=True, slots=True)
class DryRunFailure:
    """A dry run that failed.

    Attributes:
        raised: the error; None if the process ended without one.
        ended: how the process ended.
        plan: plan of the run.
        certain: whether the whole job would certainly fail in the same way.
        ran_out: whether the time limit was reached before certainty was established.
        first: whether no earlier job of the submission may have written files for it.
        resumed: the job that fails when it resumes from its own checkpoint.
        hung: where its ranks wait for each other, if they do.
    """

    raised: ErrorRecord | None
    ended: Exit
    plan: DryRunPlan
    certain: bool
    ran_out: bool
    first: bool
    resumed: ResumeRecord | None = None
    hung: HangRecord | None = None


def failure(failed: DryRunFailure, job: Job, target: Target) -> Finding | Unknown:
    """What the end of a run means for the job on its platform."""
    severity: Severity = "error" if failed.certain and not failed.resumed else "warning"
    if failed.hung:
        return hang(failed.hung, job, severity, _doubt(failed))
    place = _place(failed, job)
    if reason := _not_the_platform(failed, job, target):
        what = "the code after this line" if place.line else "the rest of the job"
        return Unknown(what, reason, place)
    ended = failed.ended
    facts = Facts(exit_code=ended.code or 1)
    found = Diagnoser().diagnose([Log("dry run", text=_explanation(failed).encode())], facts)
    in_output = _is_of_program(failed.raised) or (failed.raised is None and place.path == COMMAND)
    if in_output and (frame := found.user_frame):
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


def _explanation(failed: DryRunFailure) -> str:
    """The text that explains the end: the traceback that ended the script, or the whole output.

    Of an error that quotes another process (torch.multiprocessing.spawn), only the error there counts. What
    processes of the job print when they fail comes before what their parent then raises.
    """
    trace, output = failed.raised.trace if failed.raised else "", failed.ended.output
    shown = output if not trace or _OF_PROCESS.search(output) else trace
    return shown.rpartition("terminated with the following error:\n")[2]


_OF_PROCESS = re.compile(r"^Process [\w-]+(:\d+)?:\nTraceback ", re.M)  # of multiprocessing


def _is_of_program(raised: ErrorRecord | None) -> bool:
    """Whether a program that the job started has failed, whose own error is the cause."""
    return raised is not None and raised.type == "subprocess.CalledProcessError"


def nan_loss(record: NaN, job: Job) -> Finding:
    """A loss that is NaN, with which the script continues."""
    return Finding(
        rule="dry-run-nan",
        severity="warning",
        category="loss_nan",
        phase="training",
        place=place_of(record.path, record.line, job),
        message="The loss is NaN at the call of backward.",
        consequence="Every weight that the step updates becomes NaN.",
        fix="Inspect the batch and the terms of the loss: a logarithm of zero, a division by zero, a mean over no items, or a "
        "learning rate that is too high.",
    )


def code_deleted(ended: Exit, job: Job) -> Finding | None:
    """A job that deletes its own script, or the directory of the script."""
    script = job.script
    gone = [change.path for change in ended.changes if change.how == "deleted"]
    path = next((p for p in gone if script and script.is_relative_to(p)), None)
    if path is None:
        return None
    return Finding(
        rule="dry-run-deletes",
        severity="warning",
        category="path_not_found",
        phase="unknown",
        place=job.at,
        message=f"The job deletes {path}, including its own script.",
        consequence="The next start of the job, for example after a preemption, finds no script.",
        fix="Delete only files that the job has created.",
    )


# -- Where -------------------------------------------------------------------------------------


def _place(failed: DryRunFailure, job: Job) -> SourceLocation:
    frames = failed.raised.frames if failed.raised else ()
    if failed.raised and failed.raised.type == "SystemExit" and _of_parser(frames):
        return _said(failed, job)
    own = _own(frames, job)
    return place_of(own[-1].path, own[-1].line, job, own[-1].code) if own else job.at


def _said(failed: DryRunFailure, job: Job) -> SourceLocation:
    """Where a rejected argument is passed: in the script that starts the job, if there is one."""
    if job.at.path == COMMAND:
        return SourceLocation(COMMAND, 0, 1, job.command)
    complaint = failed.ended.output.rstrip().rpartition("\n")[2].split()
    refused = {word.rstrip(":,").partition("=")[0] for word in complaint}
    given = zip(job.argv, job.argv_at, strict=False)
    return next((at for word, at in given if word.partition("=")[0] in refused), job.at)


def _of_parser(frames: Sequence[FrameRecord]) -> bool:
    return bool(frames) and frames[-1].path.endswith("argparse.py")


def _own(frames: Sequence[FrameRecord], job: Job) -> list[FrameRecord]:
    """The frames of the user's own code."""
    roots = [job.base, job.folder, *([job.script.parent] if job.script else [])]
    return [
        frame
        for frame in frames
        if any(Path(frame.path).is_relative_to(root) for root in roots)
        and not any(name in Path(frame.path).parts for name in _LIBRARIES)
    ]


def _via(failed: DryRunFailure, job: Job, place: SourceLocation) -> tuple[SourceLocation, ...]:
    """The calls that lead to the failure, and where the failed layer was created."""
    frames = failed.raised.frames if failed.raised else ()
    places = [place_of(frame.path, frame.line, job, frame.code) for frame in _own(frames, job)]
    layer = _layer(failed)
    if layer.path:
        places.append(place_of(layer.path, layer.line, job, layer.code))
    return tuple(dict.fromkeys(location for location in places if location != place))


# -- What --------------------------------------------------------------------------------------


def _message(failed: DryRunFailure, found: Diagnosis) -> str:
    rank = f" on rank {failed.raised.rank}" if failed.raised and failed.raised.rank > 0 else ""
    ended = f"The dry run failed on this line{rank}."
    if failed.resumed:
        ended = (
            "The job fails on this line when it resumes from its checkpoint: "
            f"{' '.join(failed.resumed.argv)}."
        )
    layer = _layer(failed).text
    meaning = found.meaning or failed.ended.why
    if _is_silent(failed, found):
        meaning = _SILENT
    elif text := _exit_text(failed, found):
        meaning = f"The program exits here and prints: {text}"
    sentences = (ended, meaning, layer, _doubt(failed))
    return " ".join(sentence for sentence in sentences if sentence)


_LONGEST_EXIT_TEXT = 300
_SILENT = "The process exited without an error, as with os._exit and some compiled code."


def _is_silent(failed: DryRunFailure, found: Diagnosis) -> bool:
    return failed.raised is None and not failed.ended.signal and found.root is None


def _exit_text(failed: DryRunFailure, found: Diagnosis) -> str:
    """The text with which the script exits (``sys.exit("...")``), if it is all that is known of the failure."""
    raised = failed.raised
    if raised is None or raised.type != "SystemExit" or found.root is not None:
        return ""
    text = " ".join(raised.message.split())
    return "" if text.lstrip("-").isdigit() else textwrap.shorten(text, _LONGEST_EXIT_TEXT)


def _doubt(failed: DryRunFailure) -> str:
    if failed.certain:
        return ""
    if failed.plan.batch:
        return "The dry run reduced the batch size, which may be the cause."
    shortened = "The dry run shortened loops before this line, which may be the cause"
    if failed.ran_out:
        return f"{shortened}; when loops ran in full, {OUT_OF_TIME}."
    return f"{shortened}."


@dataclass(frozen=True, slots=True)
class _Layer:
    """The failed layer: its description, and where the user's code created it."""

    text: str = ""
    path: str = ""
    line: int = 0
    code: str = ""


def _layer(failed: DryRunFailure) -> _Layer:
    layer = (failed.raised.layer if failed.raised else None) or {}
    made = layer.get("defined")
    made = made if isinstance(made, dict) else {}
    path, line, code = made.get("path"), made.get("line"), made.get("code")
    if not (isinstance(path, str) and isinstance(line, int) and isinstance(code, str)):
        path, line, code = "", 0, ""
    name, kind = (str(layer.get(key) or "") for key in ("path", "class"))
    if not kind:
        return _Layer()
    whole = f"{kind}({layer.get('config') or ''})" if "config" in layer else kind
    given = " and ".join(_shape(v) for v in layer.get("shapes") or () if isinstance(v, list))
    text = f"Layer {name}, {whole}" if name else whole
    text += f", got {given}" if given else ""
    text += f"; it expects {layer['expected']}" if layer.get("expected") else ""
    return _Layer(f"{text}."[:2000], path, line, code)


def _shape(sizes: list[object]) -> str:
    return f"[{', '.join(str(size) for size in sizes[:8])}]"


def _consequence(failed: DryRunFailure, found: Diagnosis) -> str:
    raised = failed.raised
    if failed.ended.signal:
        return failed.ended.why
    if raised is not None and raised.type != "SystemExit" and not _is_of_program(raised):
        return f"{raised.type}: {raised.message}".strip().removesuffix(":")
    return found.root.text if found.root else failed.ended.why


def _fix(failed: DryRunFailure, found: Diagnosis, job: Job) -> str:
    layer = failed.raised.layer if failed.raised else None
    if _is_silent(failed, found):
        return "Search for os._exit in the job's code and in the code that it calls."
    if _exit_text(failed, found):
        return "Meet the condition that the program tests before this line."
    if not (layer and layer.get("fix")):
        return (
            found.fixes[0] if found.fixes else "Run the command with --dry and inspect its output."
        )
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
    """Why the failure may not occur on the platform; empty if it does."""
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
        return f"the GPU cannot be simulated here: {raised.message}"
    shown = f"{raised.type}: {raised.message}"
    if raised.type == "EOFError" and "EOF when reading a line" in raised.message:
        return "it reads standard input, which is empty in a dry run"
    if _NO_DISPLAY.search(shown) and "DISPLAY" in (target.environment or {}):
        return "it opens a window, but the dry run has no display"
    no_gpu = failed.plan.mode == "real" and (failed.plan.gpus or target.gpus != ())
    if no_gpu and (_NO_GPU.search(shown) or _counts_gpus(failed, job)):
        return "it requires a GPU, but the dry run has none"
    if failed.plan.mode == "fake" and _WITHOUT_STORAGE.search(shown):
        return "it requires the values of a tensor, which the simulated GPU does not compute"
    if failed.plan.gpus and _PRETENDED.search(shown):
        return (
            "a simulated stream or event is passed to torch's compiled code, which requires "
            "a real one"
        )
    busy = _BUSY.search(shown)
    if busy and busy["path"] in {str(job.folder), str(job.base)}:
        return "it deletes its own directory, which a dry run without root's rights cannot delete"
    if _NO_NETWORK.search(shown):
        return "it uses the network, which is not available in a dry run"
    if variable := _variable(raised):
        known = target.here and not (job.launchers or job.launch_script.programs)
        return "" if known else f"{variable} is not set in the dry run"
    if raised.type == "ModuleNotFoundError" or raised.message.startswith("No module named"):
        return _module_elsewhere(raised, job, target)
    if raised.type in OF_PATHS or (raised.type == "OSError" and _NO_FOLDER.search(shown)):
        alone = failed.first and not (job.launch_script.makes or _other_programs(job))
        return _path_elsewhere(raised, job, target) if alone else _BEFORE
    path = _missing_argument(job, target)
    if path and (raised.type == "SystemExit" or path in raised.message):
        return f"{path} does not exist on this machine; it is unknown whether the target has it"
    return ""


def _other_programs(job: Job) -> list[str]:
    """Programs of the submission that may write files before the job: all but its launchers."""
    names = (Path(program.text).name for program in job.launch_script.programs)
    return [name for name in names if name not in job.launchers]


OF_PATHS = ("FileNotFoundError", "NotADirectoryError", "PermissionError")
_NO_FOLDER = re.compile(r"non-existent directory|No such file or directory")


def _counts_gpus(failed: DryRunFailure, job: Job) -> bool:
    """Whether the job queries GPUs through a library that cannot simulate one, and exits without a GPU."""
    raised = failed.raised
    own = _own(raised.frames, job) if raised else []
    if raised is None or failed.plan.gpus or not own:
        return False
    if raised.type == "IndexError":
        stops = bool(_FIRST_GPU.search(own[-1].code))
    else:
        description = f"{raised.message} {own[-1].code}"
        stops = raised.type in _OF_COUNTS and bool(_GPU.search(description))
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
"""How a job asks TensorFlow, JAX or Keras for the available GPUs."""
_NO_MEMORY = re.compile(r"MemoryError|can't allocate memory")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_CRASHES = frozenset({"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV"})
_BEFORE = "earlier steps of the submission may not have run here"
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")


def _variable(raised: ErrorRecord) -> str:
    """The environment variable that caused the failure, which a launcher may set."""
    if (
        raised.type == "KeyError"
        and raised.frames
        and raised.frames[-1].path.endswith(("os.py", "<frozen os>"))
    ):
        return raised.message.strip("'")
    expected = re.search(r"environment variable (\w+) expected", raised.message)
    return expected[1] if expected else ""


def _module_elsewhere(raised: ErrorRecord, job: Job, target: Target) -> str:
    """A module that this Python lacks, unless the job starts on this machine with this Python.

    Of another platform, the target's description decides whether it has the module.
    """
    named = _QUOTED.search(raised.message)
    top = named[1].partition(".")[0] if named else ""
    if any(
        (root / top).exists() or (root / f"{top}.py").exists() for root in {job.base, job.folder}
    ):
        return ""
    if target.here and _starts_here(job):
        return ""
    return f"the Python of the dry run has no module {top}, so no code after its import was run"


def _starts_here(job: Job) -> bool:
    """Whether the job's Python is that of this machine, and nothing before it may install something."""
    launchers = [found for name in job.launchers if (found := by_name().get(name))]
    return not (job.launch_script.programs or job.launch_script.installs) and not any(
        launcher.set_on_nodes or "files" in launcher.elsewhere for launcher in launchers
    )


def _memory_elsewhere(raised: ErrorRecord, target: Target) -> str:
    """More memory than a dry run may use, which the platform may have; empty if it does not."""
    asked = re.search(
        r"allocate (?:memory: you tried to allocate )?([\d.]+) ?(bytes|[KMGT]iB)", raised.message
    )
    size = float(asked[1]) * _UNITS[asked[2]] if asked else 0.0
    if target.memory_bytes is not None and size > target.memory_bytes:
        return ""
    return "it requires more memory than a dry run has; it is unknown whether the target has enough"


def _missing_argument(job: Job, target: Target) -> str:
    """A path on the command line that does not exist here and may exist on another machine."""
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


def _path_elsewhere(raised: ErrorRecord, job: Job, target: Target) -> str:
    """A path outside the job directory, which may exist on another machine."""
    named = _QUOTED.findall(raised.message)
    path = Path(named[-1]) if named else Path()
    if target.here or not path.is_absolute() or path.is_relative_to(job.base):
        return ""
    if target.files.get(str(path)) is False:
        return ""
    return f"{path} does not exist on this machine; it is unknown whether the target has it"
