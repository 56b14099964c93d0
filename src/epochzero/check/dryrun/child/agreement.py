"""Decisions that all ranks of a job must take in the same way.

How many iterations of a loop are skipped depends on the clock. If each rank decided for itself, they
would run different numbers of iterations and wait for each other forever. The first rank to reach a
decision takes it, and the others follow.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO

try:
    import fcntl
except ImportError:  # ranks are forked, which no system without it can
    fcntl = None  # type: ignore[assignment]

_NONE = "-"


class Agreement:
    """Decisions by name.

    Args:
        file: an empty file that forked processes share.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._read = 0
        self._decided: dict[str, int | None] = {}

    def decide(self, name: str, own: int | None) -> int | None:
        """The decision of this name: the one already taken, otherwise the own."""
        if name in self._decided:
            return self._decided[name]
        descriptor = self._file.fileno()
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        try:
            self._catch_up()
            if name not in self._decided:
                self._decided[name] = own
                line = f"{name}={_NONE if own is None else own}\n".encode()
                os.pwrite(descriptor, line, self._read)
                self._read += len(line)
        finally:
            fcntl.lockf(descriptor, fcntl.LOCK_UN)
        return self._decided[name]

    def _catch_up(self) -> None:
        """Read what other ranks have decided since."""
        while data := os.pread(self._file.fileno(), 1 << 16, self._read):
            whole = data.rpartition(b"\n")[0] + b"\n"
            self._read += len(whole)
            for line in whole.decode().splitlines():
                name, _, value = line.rpartition("=")
                with suppress(ValueError):
                    self._decided[name] = None if value == _NONE else int(value)
