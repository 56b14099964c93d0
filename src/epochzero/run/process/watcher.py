"""What looks at a job while it runs: samples, progress, hangs. The supervisor knows no more of them.

A watcher lives in a thread of its own. However slow it is, and whatever it raises, the job and its
output go on: a watcher that raises is left alone from then on, and an `JobEvent` says so.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobEvent, Record

TICK_S = 1.0
_OUTPUT_S = 0.1
_MOST_OUTPUT = 1 << 18


class EndJob(Exception):  # noqa: N818 - it is no error
    """A watcher raises it when the job is to be ended; it continues watching.

    Attributes:
        why: as `End.why` will have it.
        exit_code: of the attempt; None for the job's own.
        grace: seconds until the job is killed; None for those of the run.
        details: of the event that tells of it.
    """

    def __init__(
        self,
        why: str,
        exit_code: int | None,
        text: str,
        *,
        grace: float | None = None,
        **details: str,
    ) -> None:
        super().__init__(text)
        self.why = why
        self.exit_code = exit_code
        self.grace = grace
        self.details = details


class Watcher:
    """Looks at one attempt. All methods are called from one thread, and return new records.

    Any of them may raise `EndJob`. A subclass overrides those that it needs.
    """

    _clock: Clock
    _folder: Path

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """The job runs.

        Args:
            pid: of the job's first process, which leads its process group.
            folder: of the attempt, where a watcher may leave files.
            clock: for the times of records.
        """
        self._clock, self._folder = clock, folder
        return ()

    def output(self, name: str, data: bytes) -> Iterable[Record]:
        """The job has written; called ten times a second at most.

        Args:
            name: ``stdout`` or ``stderr``; a terminal is ``stdout``.
            data: what came since the last call, of much only the newest 256 KiB. It may begin and
                end within a line.
        """
        return ()

    def tick(self) -> Iterable[Record]:
        """Another second has passed."""
        return ()

    def ended(self) -> Iterable[Record]:
        """The job has ended; its process tree is gone. Should return within seconds."""
        return ()


def load(*packages: str) -> None:
    """Imports packages whole, before a watcher imports a part of one when it needs it.

    A thread that imports a part waits for the package, and one that imports the package for the
    part: Python ends such a deadlock with an error.
    """
    for package in packages:
        importlib.import_module(package)


class WatcherThread:
    """One watcher in its thread."""

    def __init__(
        self,
        watcher: Watcher,
        keep: Callable[[Record], object],
        clock: Clock,
        end: Callable[[EndJob], object],
    ) -> None:
        """Nothing runs yet.

        Args:
            watcher: who looks.
            keep: takes the records; may be called from several threads.
            clock: of the attempt.
            end: ends the job; may be called from several threads.
        """
        self._watcher = watcher
        self._end = end
        self._keep = keep
        self._clock = clock
        self._name = type(watcher).__name__
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._came: dict[str, _Newest] = {}

    def start(self, pid: int, folder: Path) -> None:
        """The job runs: from now on the watcher looks."""
        # What hangs in a watcher must not hold the process.
        self._thread = threading.Thread(target=self._watch, args=(pid, folder), daemon=True)
        self._thread.start()

    def on_output(self, stream: str, data: bytes) -> None:
        """Holds output until the watcher's next turn."""
        with self._lock:
            held = self._came.setdefault(stream, _Newest())
            held.add(data)

    def end(self, patience: float) -> None:
        """The job has ended. A watcher that needs longer than ``patience`` seconds is left behind."""
        self._over.set()
        if self._thread is None:
            return
        self._thread.join(patience)
        if self._thread.is_alive():
            self._tell("watcher_slow", f"{self._name} did not stop in time and was abandoned")

    def _watch(self, pid: int, folder: Path) -> None:
        # Whatever a watcher raises, the job continues.
        try:
            self._keep_all(self._watcher.started(pid, folder, self._clock))
            next_tick = time.monotonic() + TICK_S
            while not self._over.wait(_OUTPUT_S):
                self._give_output()
                if time.monotonic() >= next_tick:
                    next_tick += TICK_S
                    self._keep_all(self._watcher.tick())
            self._give_output()
            self._keep_all(self._watcher.ended())
        except Exception as error:
            self._tell("watcher_failed", f"{self._name} failed: {type(error).__name__}: {error}")

    def _give_output(self) -> None:
        with self._lock:
            came, self._came = self._came, {}
        for stream, newest in came.items():
            self._keep_all(self._watcher.output(stream, newest.bytes()))

    def _keep_all(self, records: Iterable[Record]) -> None:
        try:
            for record in records:
                self._keep(record)
        except EndJob as wish:
            self._end(wish)

    def _tell(self, what: str, text: str) -> None:
        self._keep(JobEvent(*self._clock.now(), what, text))


class _Newest:
    """The last bytes of what a stream has brought, in pieces."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) >= _MOST_OUTPUT:
            self._size -= len(self._pieces.popleft())

    def bytes(self) -> bytes:
        return b"".join(self._pieces)[-_MOST_OUTPUT:]
