"""Files that a job reads, recorded when they are opened and inspected after a failure; its standard input."""

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
_TICK_S = 0.01
"""How far a modification time may be behind the clock: the kernel takes that of its last tick."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CODE = (".py", ".pyc", ".so")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")


class Inputs:
    """Records files that Python opens; files that compiled code opens itself are not seen."""

    def __init__(self, without: str) -> None:
        """Create an empty record.

        Args:
            without: a directory whose files are not inputs.
        """
        self._paths: dict[str, float] = {}
        self._prefixes = tuple({*_SYSTEM, sys.prefix + "/", sys.base_prefix + "/", without + "/"})

    def listen(self) -> None:
        """Record files until the end of the process."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or len(self._paths) >= MOST_FILES:
            return
        path, _, flags = arguments
        if type(path) is str and not (flags or 0) & _WRITES and not path.endswith(_CODE):
            self.note(path if path.startswith("/") else os.path.abspath(path))

    def note(self, path: str) -> None:
        """Record a file."""
        if path not in self._paths:
            self._paths[path] = _changed(path)

    def changed_between(self, start: float, end: float) -> list[str]:
        """Files that, when first read, had last been modified between two times."""
        return [path for path in self._own() if start <= self._paths[path] + _TICK_S < end]

    def described(self) -> list[dict[str, Any]]:
        """Path, size and modification time of each existing file; the digest of small ones."""
        found: list[dict[str, Any]] = []
        for path in self._own():
            try:
                status = os.stat(path)
                record = {"path": path, "bytes": status.st_size, "modified": status.st_mtime}
                if status.st_size <= _MOST_BYTES and len(found) < _MOST_DIGESTS:
                    with open(path, "rb") as file:
                        record["sha256"] = hashlib.sha256(file.read()).hexdigest()
            except OSError:
                continue
            found.append(record)
        return found

    def _own(self) -> list[str]:
        """Existing files that belong to the job rather than to the system."""
        return [
            path
            for path in self._paths
            if not path.startswith(self._prefixes) and os.path.isfile(path)
        ]


def _changed(path: str) -> float:
    """Modification time; 0 if the file does not exist."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def standard_input() -> str:
    """Path of the file that is the standard input, `PIPE`, or empty for anything else."""
    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISREG(mode):
            return os.readlink("/proc/self/fd/0")
    except OSError:
        return ""
    return PIPE if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else ""


def feed(source: str) -> None:
    """Make a file the standard input of this process; do nothing if it was no file or no longer exists."""
    if not source.startswith("/"):
        return
    try:
        descriptor = os.open(source, os.O_RDONLY)
    except OSError:
        return
    os.dup2(descriptor, 0)
    os.close(descriptor)
