"""Which line of the user's code is at work: the innermost frame that belongs to no library."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

_HERE = str(Path(__file__).absolute().parents[3]) + os.sep
"""Our package, which need not be installed as a library."""
_STANDARD = tuple(
    os.path.join(os.path.realpath(sysconfig.get_path(name)), "")
    for name in ("stdlib", "platstdlib")
)
_OF_TENSORS = os.path.join("torch", "_tensor.py")
_LIBRARIES = ("site-packages", "dist-packages")


@lru_cache(maxsize=4096)
def is_user(path: str) -> bool:
    """Whether a file of code belongs to no library."""
    if path.startswith("<") or path.startswith(_HERE):
        return False
    real = os.path.realpath(path)
    if any(name in real.split(os.sep) for name in _LIBRARIES):
        return False
    return not real.startswith((*_STANDARD, _HERE))


def _is_between(path: str) -> bool:
    return path.startswith(_HERE) or path.endswith(_OF_TENSORS)


def user_frame(without: Any = None, *, directly: bool = False) -> FrameType | None:
    """The innermost frame of the user.

    Args:
        without: an object whose own constructor does not count.
        directly: None where a library has called, not the user.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if directly and not _is_between(code.co_filename):
            return frame if is_user(code.co_filename) else None
        if is_user(code.co_filename):
            own = (
                without is not None
                and code.co_name == "__init__"
                and code.co_argcount > 0
                and locals_of(frame).get(code.co_varnames[0]) is without
            )
            if not own:
                return frame
        frame = frame.f_back
    return None


def locals_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame, which the frame does not go on to hold for us.

    Before Python 3.13 a function's frame keeps the dictionary it has once been asked for, and with it
    each tensor in it, until the function ends.
    """
    held = frame.f_locals
    found = dict(held)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(held, dict):
        held.clear()
    return found


def calls(most: int = 4) -> tuple[str, ...]:
    """The innermost lines of the user that are at work, ``path:line``."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < most:
        if is_user(frame.f_code.co_filename):
            found.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return tuple(found)


def line_of(where: list[Any] | None) -> str:
    """``path:line`` of a `place`; empty where there is none."""
    return f"{where[0]}:{where[1]}" if where else ""


def place(without: Any = None) -> list[Any] | None:
    """Path, line and text of the innermost user's call; None where only libraries call."""
    frame = user_frame(without)
    if frame is None:
        return None
    path, line = frame.f_code.co_filename, frame.f_lineno
    return [path, line, _text_of(path, line)]


@lru_cache(maxsize=4096)
def _text_of(path: str, line: int) -> str:
    return linecache.getline(path, line).strip()[:200]
