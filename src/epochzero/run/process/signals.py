"""Signals as something to wait for, and what this process does with those of a terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType

from epochzero.platform import pipe

FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT, signal.SIGTSTP, signal.SIGWINCH,
)  # fmt: skip

_Handler = Callable[[int, FrameType | None], object] | int | None


class Signals:
    """Collects the signals that a job is to get, for as long as the context lasts.

    Attributes:
        ignored: those that were ignored from the start, as under nohup; they stay so.
    """

    def __init__(self) -> None:
        self.ignored = frozenset(n for n in FORWARDED if signal.getsignal(n) is signal.SIG_IGN)
        self._before: dict[int, _Handler] = {}

    def __enter__(self) -> Signals:
        self._waker, self._wake = pipe()
        self._wake_before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in set(FORWARDED) - self.ignored:
            self._before[number] = signal.signal(number, _noted)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake_before)
        os.close(self._waker)
        os.close(self._wake)

    def fileno(self) -> int:
        """A descriptor that can be read when a signal has come."""
        return self._waker

    def take(self) -> list[int]:
        """The signals that have come since the last call, in their order."""
        try:
            return [number for number in os.read(self._waker, 4096) if number in FORWARDED]
        except BlockingIOError:
            return []

    def stop(self) -> None:
        """Stops this process and its group, as Ctrl-Z does; returns when it may go on."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _noted)


def _noted(number: int, frame: FrameType | None) -> None:
    """Python writes the number of each signal that has a handler to the descriptor."""
