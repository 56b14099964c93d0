"""Several contained runs at once; all end when the user interrupts one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from epochzero.check.dryrun.process import end_all

_POLL_S = 0.1
Given = TypeVar("Given")
Told = TypeVar("Told")


def together(run: Callable[[Given], Told], given: Iterable[Given], workers: int) -> list[Told]:
    """What each run tells, in the order of what they are given.

    Args:
        run: runs something contained.
        given: what to run.
        workers: how many at once.

    Raises:
        KeyboardInterrupt: the user interrupted; no run is left.
    """
    with ThreadPoolExecutor(workers) as pool:
        told = [pool.submit(run, one) for one in given]
        try:
            while wait(told, _POLL_S).not_done:
                pass  # Python hears of a signal between two waits, whichever thread it came to.
        except KeyboardInterrupt:
            # One that ends may begin another before it hears of it.
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(told, _POLL_S).not_done:
                end_all()
            raise
    return [one.result() for one in told]
