"""How tests wait for what happens in other processes, and how they bound work, without a clock."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 600.0
"""Ends a test that would wait for ever. No result depends on it: a busy machine is only slower."""


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Waits until a condition holds; fails if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


@contextmanager
def bounded_work() -> Iterator[None]:
    """Fails after a minute of processor time.

    For inputs on which a pattern or a loop with the wrong complexity takes hours, and the right one
    a second.
    """

    def stop(*_: object) -> None:
        raise AssertionError("more than a minute of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 60.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def count_calls(work: Callable[[], object]) -> int:
    """How many calls some work makes: a measure of its cost that is the same on every machine."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
