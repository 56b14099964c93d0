"""What looks at a job while it runs: samples, progress, hangs. The supervisor knows no more of them.

A watcher lives in a thread of its own. However slow it is, and whatever it raises, the job and its
output go on: a watcher that raises is left alone from then on, and an `Event` says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from epochzero.run.model import Record

__all__ = ["Clock", "Watcher"]


class Clock:
    """The time of an attempt, as records have it: ``Event(*clock.now(), "stall", "...")``."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def now(self) -> tuple[float, float]:
        """Seconds since the epoch, and seconds since the attempt began by a clock that never jumps."""
        return time.time(), time.monotonic() - self._began


class Watcher(Protocol):
    """Looks at one attempt. All methods are called from one thread, and return new records."""

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """The job runs.

        Args:
            pid: of the job's first process, which leads its process group.
            folder: of the attempt, where a watcher may leave files.
            clock: for the times of records.
        """
        ...

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """The job has written; called ten times a second at most.

        Args:
            name: ``stdout`` or ``stderr``; a terminal is ``stdout``.
            data: what came since the last call, of much only the newest 256 KiB. It may begin and
                end within a line.
        """
        ...

    def tick(self) -> Iterable[Record]:
        """Another second has passed."""
        ...

    def ended(self) -> Iterable[Record]:
        """The job has ended; its process tree is gone. Should return within seconds."""
        ...
