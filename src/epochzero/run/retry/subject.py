"""Whether a failure is about the job's environment, which may be right the next time, or about the job itself.

A category does not tell: a file can be missing since its name is wrong, or since another job had not written it yet.
What a person reads is the subject of the message: a resource that others use, a file that ends in the middle, an
installation whose own parts do not fit, a state that the job had found otherwise before.

Sources: errno(3), POSIX.1-2024; NVRx's log analysis, which restarts on imports that fail on network file systems.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePath

from epochzero.diagnose import Diagnosis
from epochzero.number_formats import duration
from epochzero.run.observers.loop_counters import counters_at

_USED_BEFORE_S = 600.0
"""After so long a job has used what it works with: that this is gone is a change."""

_ERRNO = re.compile(r"\[Errno (\d+)\]|\berrno[ =:]+(\d+)|os error (\d+)")
# Numbers of Linux. What they mean is a state of something shared, whatever the job asked for.
_SHARED_STATE = {
    5: "the device or file system had an error", 11: "the system had no room for one more process or lock",
    16: "something else used the resource", 23: "the node had too many open files",
    26: "the program was being written", 37: "the file system had no locks left",
    103: "the connection was aborted", 104: "the other end reset the connection", 107: "the mount or connection was lost",
    108: "the file server had dropped its client", 110: "the file server or peer did not answer in time",
    112: "the file server or peer was down", 116: "the file server had forgotten the file", 121: "the device had an error",
}  # fmt: skip
_OF_FILES = (2, 5, 13, 20, 30)
"""Missing, unreadable, not permitted, no directory any more, read-only."""
_FULL, _READ_ONLY, _MISSING, _EXISTS, _NOT_EMPTY = 28, 30, 2, 17, 39

# PyTorch writes checkpoints without error numbers.
_DISK_FULL = re.compile(
    r"no space left|disk (?:is )?full|file write failed|unexpected pos \d+ vs", re.IGNORECASE
)
_DRIVER = re.compile(
    r"driver/library version mismatch|unsupported display driver|\bNVML\b|fabric ?manager|system not yet initialized",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(
    r"timed out|timing out|operation timeout|Timeout(?:Error|Expired)", re.IGNORECASE
)
_OTHERS = re.compile(
    r"\bprocess \d+ has [\d.]+ .iB memory in use|\b(?:an)?other (?:process|job|user|client|instance|program)e?s?\b"
    r"|\b(?:is|are|was|be) (?:already |currently )?(?:in use|locked|busy|held|taken)\b|\balready in use\b"
    r"|\b(?:try|retry) (?:again|later)\b|\btemporar(?:y|ily)\b|\bunavailable\b|\bnot (?:yet )?ready\b"
    r"|\bstarting up\b|\btoo many (?:requests|connections|clients)\b|\bstale\b",
    re.IGNORECASE,
)
_OWN_MEMORY = re.compile(r"this process has (?P<own>[\d.]+) (?P<unit>.)iB memory in use")
_OTHERS_MEMORY = re.compile(r"\bProcess \d+ has (?P<other>[\d.]+) (?P<unit>.)iB memory in use")
_EXPIRED = re.compile(
    r"\b(?:token|credential|certificate|session|signature|lease|ticket|key)s?\b[^.\n]{0,60}\b(?:has |have |is |are )?"
    r"(?:expired?|no longer valid|not yet valid|revoked)|\bExpired(?:Token|Credentials?)|TimeTooSkewed"
    r"|\bclock skew\b",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(
    r"line 1 column 1 \(char 0\)|unterminated string|unexpected (?:end|eof)|\bran out of input\b|\bEOFError\b"
    r"|central directory|\btruncated\b|too short\b|\bincomplete\b|\bpremature|(?:greater|larger|longer) than (?:the )?file|not enough (?:data|bytes)"
    r"|\bexpected \d+ bytes?\b[^\n]{0,30}\b(?:got|but)\b|\bis empty\b|\bempty file\b",
    re.IGNORECASE,
)
_READS_FILE = re.compile(
    r"json|load|read|open|pickle|unpack|extract|zip|tar|mmap|fromfile", re.IGNORECASE
)
_TEMPORARY_NAME = re.compile(r"\.(?:tmp|part|partial|incomplete|lock|download|swp)\b|/\.nfs|~['\"]")
# Directories that libraries fill while programs run, often shared by the ranks and nodes of a job.
_CACHE = re.compile(
    r"[/.](?:cache|triton|torch_extensions|torchinductor_\w+|__pycache__|huggingface|hub|datasets_cache)/[^\s'\":]+"
)
# Calls that look and do not fail, unless what they look at comes from a call that fails itself.
_LOOKS_FIRST = re.compile(
    r"^(?!.*\b(?:listdir|scandir|iterdir)\().*\b(?:exists|isdir|is_dir|isfile|is_file|glob|iglob|rglob)\(",
    re.MULTILINE,
)
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'|partially initialized module '([\w.]+)'")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/([\w-]+)")


def subject(
    diagnosis: Diagnosis,
    seconds: float,
    *,
    epochs: float = 0.0,
    folder: Path | None = None,
) -> str:
    """What of the environment a failure is about, in a sentence; empty if it is about the job, or unknown.

    Args:
        diagnosis: of the attempt.
        seconds: that the attempt ran.
        epochs: that it completed, at least.
        folder: where it ran; None if its program cannot be read.
    """
    text = _message(diagnosis)
    for read in _READERS:
        if found := read(text, diagnosis, seconds):
            return found[0].upper() + found[1:] + "."
    in_loop = folder is not None and any(
        counters_at(str(folder / frame.file), frame.line or 0) for frame in diagnosis.stack
    )
    if epochs >= 1 and in_loop and _is_about_files(text):
        return "The loop that failed had read its files in an earlier epoch."
    return ""


def _is_about_files(text: str) -> bool:
    found = _ERRNO.search(text)
    return found is not None and int(next(filter(None, found.groups()))) in _OF_FILES


def _message(diagnosis: Diagnosis) -> str:
    exception = diagnosis.exception
    parts = [diagnosis.root.text if diagnosis.root else ""]
    if exception is not None:
        parts.append(f"{exception.type}: {exception.message}")
    return "\n".join(parts)


def _code(diagnosis: Diagnosis) -> str:
    """The lines of code of the failure, as far as the traceback has them."""
    return "\n".join(frame.code for frame in diagnosis.stack)


def _by_errno(text: str, diagnosis: Diagnosis, seconds: float) -> str:
    found = _ERRNO.search(text)
    number = int(next(filter(None, found.groups()))) if found else 0
    if number in _SHARED_STATE:
        return _SHARED_STATE[number]
    if number == _FULL or (diagnosis.category == "storage_full" and _DISK_FULL.search(text)):
        return "the disk was full, and others may have filled it"
    if number == _READ_ONLY and seconds > _USED_BEFORE_S:
        return "the file system became read-only while the job ran"
    if number == _NOT_EMPTY and "rmtree" in _code(diagnosis):
        return "another process wrote into the directory while this one removed it"
    if number == _EXISTS and _LOOKS_FIRST.search(_code(diagnosis)):
        return "another process created the same file after this one had checked for it"
    if number == _MISSING and (
        _TEMPORARY_NAME.search(text) or _LOOKS_FIRST.search(_code(diagnosis))
    ):
        return "another process removed or renamed the file after this one had found it"
    return ""


def _by_others(text: str, diagnosis: Diagnosis, _: float) -> str:
    if diagnosis.category == "gpu_out_of_memory":
        own = sum(_bytes(m["own"], m["unit"]) for m in _OWN_MEMORY.finditer(text))
        others = sum(_bytes(m["other"], m["unit"]) for m in _OTHERS_MEMORY.finditer(text))
        return "other processes hold most of the GPU's memory" if others > own else ""
    return "something else used a resource that the job needs" if _OTHERS.search(text) else ""


def _by_node(text: str, diagnosis: Diagnosis, _: float) -> str:
    """The driver of a node does not depend on the job."""
    broken = diagnosis.category == "gpu_fault" and _DRIVER.search(text)
    return "the node's GPU driver is being changed or does not fit its library" if broken else ""


def _by_duration(text: str, diagnosis: Diagnosis, seconds: float) -> str:
    """A connection or GPU that has worked for long has changed; a timeout can be a rank that is still busy."""
    worked = (
        diagnosis.category in ("communication_failure", "gpu_fault") and seconds > _USED_BEFORE_S
    )
    if not worked or diagnosis.retry == "fails_again" or _TIMED_OUT.search(text):
        return ""
    return f"what failed had worked for {duration(seconds)}"


def _by_cache(text: str, diagnosis: Diagnosis, _: float) -> str:
    """A file that a library had written itself is missed by no mistake in a path."""
    category = diagnosis.category in ("path_not_found", "library_not_found")
    own = diagnosis.user_frame in diagnosis.stack[-1:]
    if not category or own or not _CACHE.search(text):
        return ""
    return "another process changed a cache that libraries fill while they run"


def _by_credentials(text: str, _: Diagnosis, __: float) -> str:
    return "credentials or clocks had to be renewed" if _EXPIRED.search(text) else ""


def _by_cut_off_file(text: str, diagnosis: Diagnosis, _: float) -> str:
    if diagnosis.category not in ("corrupt_data", "library_not_found", "unknown", "internal_error"):
        return ""
    names = [frame.code + frame.file for frame in diagnosis.stack]
    reads = not names or any(map(_READS_FILE.search, names))
    # A library that ends early is read by the dynamic linker.
    reads = reads or diagnosis.category == "library_not_found"
    return (
        "a file ended early, as happens while it is being written"
        if reads and _CUT_OFF.search(text)
        else ""
    )


def _by_installation(text: str, diagnosis: Diagnosis, _: float) -> str:
    """A package that does not find a part of itself is being changed; one that a program asks for is missing."""
    found = _MISSING_MODULE.search(text)
    if found is None or not diagnosis.stack:
        return ""
    package = (found[1] or found[2]).partition(".")[0]
    importer = _INSTALLED.search(PurePath(diagnosis.stack[-1].file).as_posix())
    if importer is not None and importer[1].replace("-", "_") == package:
        return f"the installed package {package} did not find one of its own parts, as happens while it is being updated"
    return ""


def _bytes(number: str, unit: str) -> float:
    return float(number) * 1024 ** "KMGT".find(unit) if unit in "KMGT" else 0.0


_READERS: tuple[Callable[[str, Diagnosis, float], str], ...] = (
    _by_errno, _by_others, _by_credentials, _by_cut_off_file, _by_installation, _by_node, _by_duration,
    _by_cache,
)  # fmt: skip
