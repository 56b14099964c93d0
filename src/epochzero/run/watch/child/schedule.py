"""When to look closer: as often as the time that it takes allows.

Looking may take a share of the job's time, at even distances. At milestones, close together in the
beginning and ever farther apart, some free seconds may be spent in addition: a short job is seen too. Where what is trained
changes, as by another optimizer, the milestones begin again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

DENSE = 12
APART = math.log(1.06)
SHORT_S = 0.002
"""Of a step: even counting costs a share of it that is felt, and most steps are not observed at all."""
PHASES, PHASE_S = 3, 0.05
"""How often the milestones begin again, and the free seconds that each time adds."""
DESCRIBED_EVALUATIONS = 200
"""Maximum number of evaluations whose weights are recorded, to recognize them in a restored state."""
_SETTLED, _RESTS = 1000, 5
"""Iterations before steps are left out, and how many in a row are."""


class Schedule:
    """Counts the seconds spent on looking.

    Args:
        share: of the job's time that may be spent.
        free_s: seconds that may be spent in addition, at milestones.
        every: look in each iteration that is a multiple of this, whatever it takes; 0 for by time.
        always: whether to look at an iteration whatever it takes.
        clock: seconds of the thread that trains, in the unit of ``spent``: on a busy machine a second of the wall clock
            holds a fraction of one.
    """

    def __init__(
        self,
        share: float = 0.02,
        free_s: float = 0.2,
        every: int = 0,
        always: Callable[[int], bool] = lambda number: False,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._share = share
        self._free = free_s
        self._every = every
        self._always = always
        self._clock = clock
        self._began = self._now = clock()
        self._since = 0.0
        self._phase = self._phases = 0
        self.spent = 0.0

    def due(self, number: int, skipped: int = 0, *, evaluates: bool = False) -> bool:
        """Whether to look at the iteration, or evaluation, of this number, after so many that were left out."""
        if self._every:
            return number % self._every == 0
        if self._always(number):
            return True
        now = self._now = self._clock()
        self._began = min(self._began, now)  # Another thread trains than the one that was started.
        left = self._share * (now - self._began) - self.spent
        # Evaluations come when iterations have spent what is free: some of it is theirs alone.
        free = self._free + PHASE_S if evaluates else self._free
        is_milestone = _is_milestone(number if evaluates else number - self._phase, skipped)
        return left >= 0 or (is_milestone and left >= -free)

    def changed(self, number: int) -> None:
        """From the iteration of this number on, something else is trained, or in another way."""
        if number > self._phase and self._phases < PHASES:
            self._phase, self._phases = number, self._phases + 1
            self._free += PHASE_S

    def rest(self, number: int) -> int:
        """How many iterations from this one on are not observed, as their steps are short."""
        is_short = self._now - self._began < SHORT_S * number
        return _RESTS if is_short and number >= _SETTLED and not self._every else 0

    @property
    def elapsed(self) -> float:
        """Seconds of the job so far."""
        return self._clock() - self._began

    def begin(self) -> None:
        """An inspection begins."""
        # Of this thread: on a machine that others use as well, waiting is not ours.
        self._since = time.thread_time()

    def end(self) -> None:
        """The inspection is over."""
        self.spent += time.thread_time() - self._since


def _is_milestone(number: int, skipped: int = 0) -> bool:
    """The first dozen, then each that is six per cent farther than the last; also if that was skipped."""
    if number < DENSE:
        return True
    before = math.floor(math.log(max(1, number - skipped)) / APART)
    return before != math.floor(math.log(number + 1) / APART)
