"""Notices when a rank waits for other ranks, and at which line of the user's code."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from epochzero.check.dryrun.child.emit import RecordPipe
from epochzero.check.dryrun.child.frames import Roots
from epochzero.check.dryrun.child.loops import Runtime, loops_around

PhaseOf = Callable[[Iterable[tuple[FrameType, int]]], str]

PAUSE_S = 0.2
IDLE_TIMES = 5
"""So many pauses in which nothing happened make a rank that waits."""
IDLE_S = 0.005
"""Processor time of the main thread in a pause in which nothing happens."""
GROUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "group.py")
_NOT_FOR_RANKS = ("/torch/utils/data/", "/torch/multiprocessing/")


class WaitReporter(threading.Thread):
    """Reports ``waiting`` and ``moving`` of the thread that creates it.

    Args:
        records: where to write.
        runtime: of the loops, whose counters show progress.
        roots: of the user's code.
        phase_of: the phase in which code with these frames runs.
    """

    def __init__(
        self, records: RecordPipe, runtime: Runtime, roots: Roots, phase_of: PhaseOf
    ) -> None:
        super().__init__(daemon=True)
        self._records, self._runtime, self._roots = records, runtime, roots
        self._phase_of = phase_of
        self._main = threading.get_ident()
        self._clock = _clock_of(self._main)

    def run(self) -> None:
        """Watch until the process ends."""
        idle, reported = 0, False
        before = self._progress()
        while True:
            time.sleep(PAUSE_S)
            now = self._progress()
            quiet = now[0] - before[0] < IDLE_S and now[1:] == before[1:]
            before = now
            idle = idle + 1 if quiet else 0
            place = self._place() if idle >= IDLE_TIMES else None
            if place and not reported:
                self._records.emit("waiting", **place)
            elif reported and not place:
                self._records.emit("moving")
            reported = place is not None

    def _progress(self) -> tuple[float, int, int, int]:
        runtime = self._runtime
        return self._clock(), runtime.taken, runtime.work, runtime.exchanges

    def _place(self) -> dict[str, Any] | None:
        """The user's line that waits for other ranks; None if the thread waits for something else."""
        innermost = frame = sys._current_frames().get(self._main)
        while frame is not None and not self._roots.holds(frame.f_code.co_filename):
            frame = frame.f_back
        if innermost is None or frame is None or not _waits(innermost, frame):
            return None
        frames: list[dict[str, Any]] = []
        own: FrameType | None = frame
        while own is not None:
            if self._roots.holds(own.f_code.co_filename):
                frames.insert(0, described_frame(own, own.f_lineno))
            own = own.f_back
        loops = list(loops_around(_stack(frame)))
        return {
            "frames": frames,
            "loops": loops,
            "visited": sorted(self._runtime.visited),
            "phase": self._phase_of(_stack(frame)),
        }


def described_frame(frame: FrameType, line: int) -> dict[str, Any]:
    """A frame as records show it."""
    path = frame.f_code.co_filename
    code = linecache.getline(path, line).strip()[:400]
    return {"path": path, "line": line, "function": frame.f_code.co_name, "code": code}


def _stack(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _waits(innermost: FrameType, own: FrameType) -> bool:
    """Whether the thread is in torch, or in the ``wait`` of a collective that it started before."""
    if innermost is own:
        return ".wait(" in linecache.getline(own.f_code.co_filename, own.f_lineno)
    path = innermost.f_code.co_filename.replace("\\", "/")
    return ("/torch/" in path or path == GROUP) and not any(part in path for part in _NOT_FOR_RANKS)


def _clock_of(thread: int) -> Callable[[], float]:
    """The processor time of a thread; that of the process where the system does not tell it."""
    try:
        clock = time.pthread_getcpuclockid(thread)
    except (AttributeError, OSError):
        return time.process_time
    return lambda: time.clock_gettime(clock)
