"""The period that a page is about, as it stands in its address: ``days=30``, or ``since`` and ``until``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from epochzero.errors import InputError
from epochzero.store.daily_counts import DAY_S, Period

CHOICES = (1, 7, 30, 90, 365)
"""Days that a page offers."""
DEFAULT_DAYS = 30
LONGEST_DAYS = 3660


@dataclass(frozen=True, slots=True)
class Asked:
    """A period, with the words that a person chose it by.

    Attributes:
        days: up to now; None where the two days were given.
    """

    period: Period
    days: int | None

    @property
    def title(self) -> str:
        """The period in words."""
        if self.days is not None:
            return "the last day" if self.days == 1 else f"the last {self.days} days"
        return f"{self.first} to {self.last}"

    @property
    def first(self) -> str:
        """The first day, as a form has it."""
        return day_name(int(self.period.since // DAY_S))

    @property
    def last(self) -> str:
        """The last day, as a form has it."""
        return day_name(int((self.period.until - 1) // DAY_S))

    @property
    def length(self) -> int:
        """How many days it has."""
        return round((self.period.until - self.period.since) / DAY_S)

    @property
    def before(self) -> Asked:
        """As long a period, that ends where this one begins."""
        since = 2 * self.period.since - self.period.until
        return Asked(Period(since, self.period.since), None)


def asked_period(days: int | None, since: str, until: str, *, default: int = DEFAULT_DAYS) -> Asked:
    """The period of an address.

    Args:
        days: so many up to now.
        since, until: the first and the last day, such as 2026-05-01; empty for none.
        default: days up to now where nothing is given.

    Raises:
        InputError: this is no period.
    """
    tomorrow = (int(time.time()) // DAY_S + 1) * float(DAY_S)
    if since or until:
        end = moment_of(until) + DAY_S if until else tomorrow
        begin = moment_of(since) if since else end - default * DAY_S
        if not 0 < end - begin <= LONGEST_DAYS * DAY_S:
            raise InputError(f"{since} to {until} is no period: give the earlier day first")
        return Asked(Period(begin, end), None)
    count = min(max(1, days or default), LONGEST_DAYS)
    return Asked(Period(tomorrow - count * DAY_S, tomorrow), count)


def moment_of(day: str) -> float:
    """When a day begins, in seconds since the epoch.

    Raises:
        InputError: this is no day.
    """
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise InputError(f"{day!r} is no day: write 2026-05-01") from error


def day_name(day: int) -> str:
    """A day of a count, such as 2026-05-01."""
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
