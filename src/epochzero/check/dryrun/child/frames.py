"""Which frames are the user's: places of records and of the error that ends the job."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import FrameType, TracebackType
from typing import Any

_CHILD = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(_CHILD)))
_HERE = (_CHILD, os.path.join(_PACKAGE, "injected"))
_LIBRARIES = ("site-packages", "dist-packages")
MOST_FRAMES = 60
MOST_BEHIND = 10
_TRACEBACK = "Traceback (most recent call last)"
# The error at the end of a traceback: the first line after it that is not indented.
_LAST = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?\Z", re.MULTILINE | re.DOTALL)
_FRAME = re.compile(r'^ *(?:\| +)*File "([^"\n]+)", line (\d{1,9}), in ([^\n]+)$', re.MULTILINE)


class Roots:
    """The folders whose code is the user's, installed libraries below them excepted."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)
        self.holds = lru_cache(maxsize=4096)(self._holds)

    def _holds(self, path: str) -> bool:
        if path.startswith("<"):  # code that is in no file
            return False
        real = os.path.realpath(path)
        parts = real.split(os.sep)
        return (
            real.startswith(self._folders)
            and not real.startswith(_HERE)
            and not any(name in parts for name in _LIBRARIES)
        )

    def place(self) -> tuple[str, int]:
        """File and line of the innermost call by the user's code; empty where there is none."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.holds(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return "", 0


def walked(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """The frames of an error with their lines, outermost first, without those of the dry run."""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith((*_HERE, "<frozen importlib")):
            yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def described(trace: TracebackType | None) -> list[dict[str, Any]]:
    """The frames of an error as records tell them; of a deep recursion the innermost."""
    return [
        {
            "path": frame.f_code.co_filename,
            "line": line,
            "function": frame.f_code.co_name,
            "code": linecache.getline(frame.f_code.co_filename, line).strip()[:400],
        }
        for frame, line in list(walked(trace))[-MOST_FRAMES:]
    ]


def behind(error: BaseException) -> list[dict[str, Any]]:
    """The frames from which an error came here: those of the first of a group, of another process."""
    found: list[dict[str, Any]] = []
    for _ in range(MOST_BEHIND):
        inner = getattr(error, "exceptions", None)
        if not (isinstance(inner, tuple) and inner and isinstance(inner[0], BaseException)):
            break
        error = inner[0]
        found += described(error.__traceback__)
    cause = error.__cause__
    # Pools of processes pass the text of a traceback as the cause, torch.multiprocessing.spawn and
    # workers of a DataLoader in the message.
    remote = cause is not None and type(cause).__name__.endswith("RemoteTraceback")
    return found + _of_text(str(cause) if remote else str(error))


def text_of(error: BaseException) -> tuple[str, str]:
    """The type and the message of an error; of one that quotes another process, of the error there."""
    kind, message = type(error), str(error)
    quoted = message.rpartition(_TRACEBACK)[2]
    last = _LAST.search(quoted) if quoted != message else None
    if last:
        return last[1], last[2].strip()
    in_module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{in_module}{kind.__name__}", message


def _of_text(text: str) -> list[dict[str, Any]]:
    """The frames of the last traceback in a text."""
    _, is_quoted, last = text.rpartition(_TRACEBACK)
    return [
        {
            "path": path,
            "line": int(line),
            "function": function,
            "code": linecache.getline(path, int(line)).strip()[:400],
        }
        for path, line, function in _FRAME.findall(last if is_quoted else "")[-MOST_FRAMES:]
        if not path.startswith(_HERE)
    ]
