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
    """The results of the runs, in the order of their inputs.

    Args:
        run: runs one contained job.
        given: inputs of the runs.
        workers: number of parallel runs.

    Raises:
        KeyboardInterrupt: the user interrupted; no run is left.
    """
    with ThreadPoolExecutor(workers) as pool:
        submitted = [pool.submit(run, argument) for argument in given]
        try:
            while wait(submitted, _POLL_S).not_done:
                pass  # Python handles a signal between two waits, whichever thread received it.
        except KeyboardInterrupt:
            # A run that ends may start another before it notices the interruption.
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(submitted, _POLL_S).not_done:
                end_all()
            raise
    return [future.result() for future in submitted]
