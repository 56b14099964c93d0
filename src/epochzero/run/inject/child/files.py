"""Files that fail or are slow when the job's Python reads or writes them.

``open`` returns the same types as Python's own, based on a raw file that checks each call first. Libraries that read
and write without Python (HDF5, SQLite, Arrow, NumPy's byte arrays) are not affected; torch.save is. Only regular
files fail: output, pipes and shared memory work as usual.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import stat
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from epochzero.run.inject.child.faults import PlannedFault, as_of_python

_ELSEWHERE = ("/dev/", "/proc/", "/sys/", "memfd:", "/memfd:")
_WRITERS = ("write", "pwrite", "writev", "pwritev", "sendfile", "copy_file_range")
_READERS = ("read", "pread", "readv", "preadv")
_MODES = frozenset("rwxabt+")


_full: list[WriteRefusal] = []
_slow: list[PlannedFault] = []


class WriteRefusal(Protocol):
    """A fault that can refuse writes."""

    def holds(self) -> bool:
        """Whether it is active now."""
        ...

    def refuses(self, path: str, size: int) -> bool:
        """Whether it refuses to write this many bytes to a file."""
        ...


def replace_files(full: Sequence[WriteRefusal], slow: Sequence[PlannedFault]) -> None:
    """Route the job's file access through this module; change nothing if no fault is planned."""
    if not full and not slow:
        return
    begun = bool(_full or _slow)
    _full.extend(full)
    _slow.extend(slow)
    if begun:
        return
    builtins.open = io.open = _opening(builtins.open, _raw())
    for name in _WRITERS:
        position = 1 if name == "copy_file_range" else 0
        setattr(os, name, _before(getattr(os, name), position, _fail))
    for name in _READERS:
        setattr(os, name, _before(getattr(os, name), 0, _delay))


def replace_saving(torch: Any, full: Sequence[WriteRefusal]) -> None:
    """Route torch.save to a full disk through Python's files; torch would write by itself."""
    if not full:
        return
    python = torch.save

    def save(obj: Any, f: Any, *values: Any, **named: Any) -> None:
        if isinstance(f, (str, os.PathLike)) and any(fault.holds() for fault in full):
            with open(f, "wb") as file:
                python(obj, file, *values, **named)
        else:
            python(obj, f, *values, **named)

    torch.save = as_of_python(save)


def _raw() -> type[io.FileIO]:
    """Return the raw file class that checks each call first."""

    class Raw(io.FileIO):
        def write(self, data: Any) -> int:
            _fail(self.fileno(), len(data))
            return super().write(data)

        def readinto(self, buffer: Any) -> int:
            _delay(self.fileno())
            return super().readinto(buffer)

        def read(self, size: int | None = -1) -> bytes:
            _delay(self.fileno())
            return super().read(-1 if size is None else size)

        def readall(self) -> bytes:
            _delay(self.fileno())
            return super().readall()

    for method in (Raw.write, Raw.readinto, Raw.read, Raw.readall):
        as_of_python(method)
    Raw.__name__ = Raw.__qualname__ = "FileIO"
    return Raw


def _opening(python: Callable[..., Any], raw: type[io.FileIO]) -> Callable[..., Any]:
    """Return Python's ``open`` based on another raw file (the steps of ``_pyio.open``)."""

    def open(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        given = (file, mode, buffering, encoding, errors, newline, closefd, opener)
        # Python itself reports invalid arguments, in its own words.
        if not isinstance(mode, str) or not _MODES.issuperset(mode) or isinstance(file, int):
            return python(*given)
        binary = "b" in mode
        if binary and (encoding is not None or errors is not None or newline is not None):
            return python(*given)
        bare = mode.replace("t", "").replace("b", "")
        if bare.rstrip("+") not in ("r", "w", "x", "a") or (buffering == 0 and not binary):
            return python(*given)
        if not _is_regular(file):
            return python(*given)
        below = raw(file, bare, closefd, opener)
        if buffering == 0:
            return below
        size = io.DEFAULT_BUFFER_SIZE if buffering in (-1, 1) else buffering
        kind = io.BufferedReader if bare == "r" else io.BufferedWriter
        buffer: Any = (io.BufferedRandom if "+" in bare else kind)(below, size)
        if binary:
            return buffer
        text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text

    return as_of_python(open)


def _before(
    call: Callable[..., Any], position: int, ask: Callable[[int, int], None]
) -> Callable[..., Any]:
    """Return the function of ``os`` with a check whether the file may be used."""

    def replaced(*values: Any, **named: Any) -> Any:
        if len(values) > position and isinstance(values[position], int):
            ask(values[position], _size(values))
        return call(*values, **named)

    replaced.__name__ = call.__name__
    return as_of_python(replaced)


def _is_regular(file: Any) -> bool:
    """Whether it is a file on a disk, or may become one."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)
    except FileNotFoundError:
        return True
    except (OSError, TypeError, ValueError):
        return False


@as_of_python
def _fail(file: int, size: int) -> None:
    for fault in _full:
        if fault.holds() and (path := _path(file)) and fault.refuses(path, size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _size(values: Sequence[Any]) -> int:
    """Return the number of bytes that a call writes, as far as its arguments show."""
    given = values[1] if len(values) > 1 else b""
    parts = given if isinstance(given, (list, tuple)) else (given,)
    return sum(len(part) for part in parts if isinstance(part, (bytes, bytearray, memoryview)))


def _delay(file: int, _: int = 0) -> None:
    for fault in _slow:
        if fault.holds() and (path := _path(file)):
            fault.meets(f"a read from {path} was delayed")
            time.sleep(fault.delay)


def _path(file: int) -> str:
    """Return the path of a file on a disk; empty for anything else."""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        path = os.readlink(f"/proc/self/fd/{file}")
    except OSError:
        return ""
    return "" if path.startswith(_ELSEWHERE) else path
