"""Processor-time limits of rules, so that a rule cannot run forever on an unusual file.

The limit counts the processor time of this process, so that a busy machine changes no result. It works where Python can be
interrupted: in the main thread, on systems with ``setitimer`` (not on Windows), between two bytecode instructions and
within regular expressions. Elsewhere there is no limit. Waiting, for example for a disk, takes no processor time and is
not limited either.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TimeExceeded(BaseException):
    """The time limit is exceeded; not an `Exception`, so that no rule catches it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Limit the processor time of a block.

    Raises:
        Stopped: the block takes longer.
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
    raise TimeExceeded
