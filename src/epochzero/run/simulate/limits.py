"""Ends a job as the platform does: when it holds too much memory, and when its time is over."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from epochzero.platform import ProcessStatus
from epochzero.run.process.tree import send
from epochzero.run.process.usage import ProcessTree
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobEvent, Record
from epochzero.run.simulate.model import SimulationPlan

EVENT = "simulated"
"""`JobEvent.what` of the platform that an attempt met; its rows are in the details."""
_EVERY_S, _LEAST_S = 0.1, 0.02
_GROWN_A_SECOND = 4 << 30
"""Bytes: the nearer a job is to its limit, the sooner it is looked at again."""
_KILOBYTE = 1024
_COUNTED = ("Pss_Anon:", "Pss_Shmem:")
"""Of its pages those that the kernel cannot take back, as it can those of a file that is mapped."""


class LimitWatcher(Watcher):
    """A watcher that has a thread of its own: a second is too long for memory.

    Attributes:
        state: what a scheduler would say of the job's end (``OUT_OF_MEMORY``, ``TIMEOUT``); empty
            where no limit ended it.
        text: which limit, and how much the job had; empty where no limit ended it.
    """

    def __init__(self, plan: SimulationPlan, grace: float) -> None:
        """Nothing is looked at yet.

        Args:
            plan: of the platform.
            grace: seconds from the end of its time until the job is killed.
        """
        self.state = self.text = ""
        self._plan = plan
        self._memory = plan.memory_bytes
        self._time = plan.time_limit_s
        self._grace = grace
        self._over = threading.Event()
        self._events: list[Record] = []

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """See `Watcher`."""
        self._clock = clock
        if self._memory is not None or self._time is not None:
            self._tree = ProcessTree(pid)
            threading.Thread(target=self._look, daemon=True).start()
        details = {f"{aspect.how} {aspect.what}": aspect.text for aspect in self._plan.aspects}
        yield JobEvent(*clock.now(), EVENT, f"ran on {self._plan.name}, simulated", details=details)

    def tick(self) -> Iterable[Record]:
        """See `Watcher`."""
        events, self._events = self._events, []
        return events

    def ended(self) -> Iterable[Record]:
        """See `Watcher`."""
        self._over.set()
        return self.tick()

    def _look(self) -> None:
        began = time.monotonic()
        kill_at = float("inf")
        pause = _EVERY_S
        while not self._over.wait(pause):
            if self._memory is not None:
                left = self._memory - self._hold(self._memory)
                pause = min(_EVERY_S, max(_LEAST_S, left / _GROWN_A_SECOND))
            now = time.monotonic()
            if self._time is not None and kill_at == float("inf") and now - began > self._time:
                self._tell("TIMEOUT", f"the time limit of {self._time:g} s was reached")
                self._send(signal.SIGTERM)
                kill_at = now + self._grace
            elif now > kill_at:
                self._send(signal.SIGKILL)

    def _hold(self, limit: int) -> int:
        """Kill the largest process while all together hold too much, as the kernel does; how much they hold."""
        processes = self._tree.read()
        # Pages that processes share count once; the kernel takes long to tell, so it is asked late.
        most = sum(process.memory_bytes for process in processes)
        if most <= limit:
            return most
        held = {process: _own_bytes(process) for process in processes}
        total = sum(held.values())
        if total > limit:
            largest = max(held, key=lambda process: held[process])
            self._tell("OUT_OF_MEMORY", f"killed at the memory limit: {total >> 20} MiB in use")
            send(signal.SIGKILL, [largest.pid])
        return total

    def _send(self, number: int) -> None:
        send(number, [process.pid for process in self._tree.read()])

    def _tell(self, state: str, text: str) -> None:
        self.state, self.text = state, text
        self._events.append(JobEvent(*self._clock.now(), "limit_reached", text))


def _own_bytes(process: ProcessStatus) -> int:
    """Resident memory that is not a file's, with a share of the pages that others use too."""
    with suppress(OSError):
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text("ascii").splitlines()
        counted = [int(line.split()[1]) for line in lines if line.startswith(_COUNTED)]
        if counted:
            return sum(counted) * _KILOBYTE
    return process.memory_bytes
