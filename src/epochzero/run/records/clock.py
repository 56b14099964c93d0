"""The two clocks of an attempt."""

from __future__ import annotations

import time


class Clock:
    """The time of an attempt, as records have it: ``Event(*clock.now(), "stall", "...")``."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def now(self) -> tuple[float, float]:
        """Seconds since the epoch, and seconds since the attempt began by a clock that never jumps."""
        return time.time(), time.monotonic() - self._began
