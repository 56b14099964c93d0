"""When to look closer: as often as the time that it takes allows.

A short job is looked at in every iteration, until the free seconds are spent; a long one at even
distances, so that looking takes no more than a share of its time.
"""

from __future__ import annotations

import time

__all__ = ["Schedule"]


class Schedule:
    """Counts the seconds spent on looking.

    Args:
        share: of the job's time that may be spent.
        free_s: seconds that may be spent in addition, at any time.
        every: look in each iteration that is a multiple of this, whatever it takes; 0 for by time.
    """

    def __init__(self, share: float = 0.03, free_s: float = 1.0, every: int = 0) -> None:
        self._share = share
        self._free = free_s
        self._every = every
        self._began = time.perf_counter()
        self._since = 0.0
        self.spent = 0.0

    def due(self, iteration: int) -> bool:
        """Whether to look at this iteration."""
        if self._every:
            return iteration % self._every == 0
        elapsed = time.perf_counter() - self._began
        return self.spent <= self._free + self._share * elapsed

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.spent += time.perf_counter() - self._since
