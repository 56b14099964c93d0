"""The period of a page, from its URL: ``days=30``, or ``since`` and ``until``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date, timedelta

from epochzero.errors import InputError
from epochzero.store.daily_counts import DAY_S, Period
from epochzero.store.search import end_of, time_of

CHOICES = (1, 7, 30, 90, 365)
"""Numbers of days that pages offer."""
DEFAULT_DAYS = 30
LONGEST_DAYS = 3660


@dataclass(frozen=True, slots=True)
class RequestedPeriod:
    """A period and how it was requested.

    Attributes:
        days: number of days up to now; None if two dates were given.
    """

    period: Period
    days: int | None

    @property
    def title(self) -> str:
        """The period as text."""
        if self.days is not None:
            return "the last day" if self.days == 1 else f"the last {self.days} days"
        return f"{self.first} to {self.last}"

    @property
    def first(self) -> str:
        """The first day, in the format of a form."""
        return day_name(int(self.period.since // DAY_S))

    @property
    def last(self) -> str:
        """The last day, in the format of a form."""
        return day_name(int((self.period.until - 1) // DAY_S))

    @property
    def length(self) -> int:
        """Number of days."""
        return max(1, round((self.period.until - self.period.since) / DAY_S))

    @property
    def before(self) -> RequestedPeriod:
        """The preceding period of the same length."""
        since = 2 * self.period.since - self.period.until
        return RequestedPeriod(Period(since, self.period.since), None)


def asked_period(
    days: int | None, since: str, until: str, *, default: int = DEFAULT_DAYS
) -> RequestedPeriod:
    """The period of a URL.

    Args:
        days: number of days up to now.
        since, until: the first and the last day, such as 2026-05-01, or times such as 12h ago; empty for none.
        default: number of days up to now if nothing is given.

    Raises:
        InputError: the period is not valid.
    """
    tomorrow = (int(time.time()) // DAY_S + 1) * float(DAY_S)
    if since or until:
        end = end_of(until) if until else tomorrow
        begin = time_of(since) if since else end - default * DAY_S
        if not 0 < end - begin <= LONGEST_DAYS * DAY_S:
            raise InputError(f"{since} to {until} is not a period; put the earlier day first")
        return RequestedPeriod(Period(begin, end), None)
    count = min(max(1, days or default), LONGEST_DAYS)
    return RequestedPeriod(Period(tomorrow - count * DAY_S, tomorrow), count)


def day_name(day: int) -> str:
    """The date of a day number, such as 2026-05-01."""
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
