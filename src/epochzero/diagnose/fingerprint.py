"""A stable identity of a failure, which recognizes the same failure in another run.

It consists of the class of the exception, its message without parts that change between runs, and the
functions of the user's own code on the stack. Line numbers and library frames are excluded, because
they change with every edit and upgrade. The fingerprint starts with its version, so that a better algorithm
never regroups old failures silently.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from epochzero.logs.traceback import Frame
from epochzero.logs.user_code import is_user_frame

VERSION = "2"
WEAK = "w"
"""Marks, after the version, a fingerprint that does not identify a failure."""

_VOLATILE = (
    (re.compile(r"0x[0-9a-fA-F]+"), "<hex>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[/\\][\w.@+=%~-]+){2,}[/\\]?"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "<hex>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def normalize(message: str) -> str:
    """``message`` without addresses, paths and numbers."""
    for pattern, replacement in _VOLATILE:
        message = pattern.sub(replacement, message)
    return message.strip()


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


_ANNOUNCES = re.compile(r"(?:^\W*\d+ root error\(s\) found\.?|:)\s*$")
"""A first line that only announces the description of the failure."""


def _telling(message: str) -> str:
    """The first line of a message, with the next one if the first only announces it."""
    lines = [line.strip() for line in message.split("\n") if line.strip()]
    announced = len(lines) > 1 and _ANNOUNCES.search(lines[0])
    return " ".join(lines[: 2 if announced else 1])


def is_weak(fingerprint: str) -> bool:
    """Whether a fingerprint belongs to a process that exited without a message.

    Unrelated failures can share it: do not use it to group or count failures.
    """
    return fingerprint.partition(":")[0].endswith(WEAK)


def weak_fingerprint(end: str, phase: str, launcher: str, progress: str) -> str:
    """Fingerprint of a process that exited without a message; it does not identify a failure.

    Args:
        end: the exit status, or the scheduler's state.
        phase: of the taxonomy.
        launcher: source of the report.
        progress: the form of the last progress line, without numbers.
    """
    return f"{VERSION}{WEAK}:{_digest(('exit', end, phase, launcher, normalize(progress)))}"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def fingerprint(kind: str, message: str, frames: Iterable[Frame]) -> str:
    """Identity of a failure.

    Args:
        kind: class of the exception, or a category if there is none.
        message: its message, or the line.
        frames: its stack; only frames of the user's own code count.
    """
    own = [f"{_base(frame.file)}:{frame.function}" for frame in frames if is_user_frame(frame)]
    parts = [kind.rsplit(".", 1)[-1], normalize(_telling(message)), *own[-8:]]
    return f"{VERSION}:{_digest(parts)}"
