"""Stops work that runs away: a rule that would read a strange file for ever.

The processor time of this process is counted, so that a busy machine changes no answer. It works
where Python can be interrupted: in the main thread, on systems with ``setitimer`` (not on Windows),
between two of its instructions and within regular expressions. Elsewhere nothing is stopped. A wait,
as for a disk that does not answer, takes no processor time and is not stopped either.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(BaseException):
    """The time is over; no `Exception`, so that no rule takes it for one of its own."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Lets what is done within take so many seconds of processor time.

    Raises:
        Stopped: it takes longer.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(number: int, frame: object) -> None:
    raise Stopped
