"""What a job has read: files, noted when they are opened and looked at when it has failed; its standard input."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from typing import Any

PIPE = "pipe"
"""A standard input that cannot be read again."""

MOST_FILES = 2000
_MOST_DIGESTS = 500
_MOST_BYTES = 1 << 20
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CODE = (".py", ".pyc", ".so")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")


class Inputs:
    """Listens to what Python opens; compiled code that opens files itself is not heard."""

    def __init__(self, without: str) -> None:
        """Nothing is noted yet.

        Args:
            without: a folder whose files are no inputs.
        """
        self._paths: dict[str, float] = {}
        self._prefixes = tuple({*_SYSTEM, sys.prefix + "/", sys.base_prefix + "/", without + "/"})

    def listen(self) -> None:
        """From now to the end of the process."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or len(self._paths) >= MOST_FILES:
            return
        path, _, flags = arguments
        if type(path) is str and not (flags or 0) & _WRITES and not path.endswith(_CODE):
            self.note(path if path.startswith("/") else os.path.abspath(path))

    def note(self, path: str) -> None:
        """This file is read."""
        if path not in self._paths:
            self._paths[path] = _changed(path)

    def changed_between(self, start: float, end: float) -> list[str]:
        """Those that, when they were first read, had last been written between two times of the clock."""
        return [path for path in self._own() if start <= self._paths[path] < end]

    def described(self) -> list[dict[str, Any]]:
        """Path, bytes, time of change of each file that is there, and of small ones the digest."""
        found: list[dict[str, Any]] = []
        for path in self._own():
            try:
                status = os.stat(path)
                told = {"path": path, "bytes": status.st_size, "modified": status.st_mtime}
                if status.st_size <= _MOST_BYTES and len(found) < _MOST_DIGESTS:
                    with open(path, "rb") as file:
                        told["sha256"] = hashlib.sha256(file.read()).hexdigest()
            except OSError:
                continue
            found.append(told)
        return found

    def _own(self) -> list[str]:
        """Those that are there, and are of the job rather than of the system."""
        return [
            path
            for path in self._paths
            if not path.startswith(self._prefixes) and os.path.isfile(path)
        ]


def _changed(path: str) -> float:
    """When it was written last; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def standard_input() -> str:
    """The path of the file that this process reads as its standard input, `PIPE`, or empty for neither."""
    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISREG(mode):
            return os.readlink("/proc/self/fd/0")
    except OSError:
        return ""
    return PIPE if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else ""


def feed(source: str) -> None:
    """Makes a file the standard input of this process; nothing where it was none or is gone."""
    if not source.startswith("/"):
        return
    try:
        descriptor = os.open(source, os.O_RDONLY)
    except OSError:
        return
    os.dup2(descriptor, 0)
    os.close(descriptor)
