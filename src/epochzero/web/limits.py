"""Rate limits: one token bucket per team or address.

The token bucket of Turner, "New directions in communications", IEEE Communications Magazine, 1986. State is
kept in this process: after a restart, all buckets are full.
"""

from __future__ import annotations

import threading
import time

from fastapi import HTTPException

_MOST = 10_000
"""Above this number of names, entries are dropped once their bucket is full again."""


class Buckets:
    """One bucket per name. Threads may share them.

    Args:
        per_minute: refill rate; a full bucket holds twice as much.
    """

    def __init__(self, per_minute: float) -> None:
        self._rate = per_minute / 60
        self._most = 2.0 * per_minute
        self._levels: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, name: str) -> float:
        """Takes one; returns 0, or the seconds until one is available."""
        if wait := self.wait(name):
            return wait
        self.spend(name, 1.0)
        return 0.0

    def spend(self, name: str, amount: float) -> None:
        """Takes an amount that was not known in advance; the bucket may become negative."""
        now = time.monotonic()
        with self._lock:
            self._levels[name] = (self._level(name, now) - amount, now)
            self._forget(now)

    def wait(self, name: str) -> float:
        """Seconds until one is available; takes nothing."""
        with self._lock:
            return max(0.0, (1.0 - self._level(name, time.monotonic())) / self._rate)

    def _level(self, name: str, now: float) -> float:
        level, when = self._levels.get(name, (self._most, now))
        return min(self._most, level + (now - when) * self._rate)

    def _forget(self, now: float) -> None:
        if len(self._levels) > _MOST:
            full = [name for name in self._levels if self._level(name, now) >= self._most]
            for name in full:
                del self._levels[name]


def too_many(wait: float) -> HTTPException:
    """The response to too many requests."""
    seconds = max(1, int(wait) + 1)
    return HTTPException(
        429, f"too many requests; try again in {seconds} s", {"Retry-After": str(seconds)}
    )
