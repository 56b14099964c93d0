"""Precomputed sums per day, so that queries over a year do not read every job.

The jobs of a day are summed once the day is over. Its failures are also summed in a block of 32 days, and in one of
a few windows that end yesterday and together cover the periods that pages offer. A database trigger marks days whose
jobs arrive late, change or are deleted. Days without valid sums, such as today, are computed from the jobs, so results are always correct.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Integer,
    Select,
    Subquery,
    Text,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from epochzero.store.database import Database
from epochzero.store.schema import Base, Counted, DayCount, FailureCount, JobRow, StaleDay

DAY_S = 86_400
BLOCK = 32
"""Number of days that are summed together; the triggers use the same number."""
WINDOWS = (6, 29, 89, 364)
"""Days before today where windows start, so that the last 7, 30, 90 or 365 days are whole windows and today."""
END = 1e11
"""The year 5138: later times come from a wrong clock and are counted on no day; the triggers use the same limit."""
_ALL = 1 << 62
_MOST_SPANS = 100
_NO_BLOCK = -2
"""Its lock is held while a team is summed; `epochzero.store.outbox` uses -1."""
_ONE = literal(1, BigInteger)
"""Of the type of the sums: only of parts with equal types, PostgreSQL leaves out the columns that a query does not use."""
STATEMENTS = 128
"""Number of cached statements of each kind: building one takes longer than executing it."""


@dataclass(frozen=True, slots=True)
class Period:
    """Start (inclusive) and end (exclusive), in seconds since the epoch."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of a period that is read from one kind of sums.

    Attributes:
        days: number of days per sum; 0 if the jobs themselves are read.
    """

    days: int
    since: float
    until: float

    @property
    def numbers(self) -> tuple[int, int]:
        """The number of its first day and of the day after its last."""
        return int(self.since // DAY_S), int(self.until // DAY_S)


def uncounted(database: Database, team: str, *, now: float) -> list[tuple[int, int]]:
    """The missing sums, each by its number of days and its first day: blocks, newest first; without any, windows.

    Args:
        team: the team whose jobs are counted.
        now: seconds since the epoch; the current day is excluded.
    """
    today = int(now // DAY_S)
    with database.read() as session:
        first = session.scalar(
            select(func.min(JobRow.started)).where(JobRow.team == team, JobRow.started >= 0)
        )
        stale = session.scalar(select(func.min(StaleDay.day)).where(StaleDay.team == team))
        days = [] if first is None else [int(first // DAY_S)]
        days += [] if stale is None else [stale]
        if not days:
            return []
        begin = min(days) // BLOCK * BLOCK
        fresh = _fresh(session, team, begin, today)
    blocks = [
        (BLOCK, block)
        for block in reversed(range(begin, today, BLOCK))
        if any(pair not in fresh for pair in _wanted(block, today))
    ]
    starts, ends = [today - days for days in WINDOWS], [today, *(today - days for days in WINDOWS)]
    windows = [(end - start, start) for start, end in zip(starts, ends, strict=False)]
    return blocks or [window for window in windows if window[1] >= begin and window not in fresh]


def sum_up(database: Database, team: str, missing: tuple[int, int], *, now: float) -> None:
    """Computes missing or outdated sums.

    Args:
        team: the team whose jobs are counted.
        missing: from `uncounted`; of a block, the sums of its past days are computed too.
        now: as for `uncounted`.
    """
    days, block = missing
    with database.write() as session:
        # One server sums at a time, and waits for transactions that write jobs of these days.
        if database.is_postgresql:
            for number in (_NO_BLOCK, block // BLOCK):
                lock = func.pg_advisory_xact_lock(func.hashtext(team), cast(number, Integer))
                session.execute(select(lock))
        if days != BLOCK:
            _sum_up_window(session, team, days, block)
            return
        today = int(now // DAY_S)
        fresh = _fresh(session, team, block, block + BLOCK)
        old = [day for size, day in _wanted(block, today) if (size, day) not in fresh and size == 1]
        if old:
            # Days in between are summed again: one query is cheaper than many.
            _sum_up_days(session, team, old[0], old[-1] + 1)
        if block + BLOCK <= today and (old or (BLOCK, block) not in fresh):
            _sum_up_block(session, team, block)
        changed = StaleDay.day >= block, StaleDay.day < block + BLOCK
        session.execute(delete(StaleDay).where(StaleDay.team == team, *changed))
        if old:
            overlapping = Counted.day <= old[-1], Counted.day + Counted.days > old[0]
            windows = Counted.team == team, Counted.days.not_in((1, BLOCK))
            session.execute(delete(Counted).where(*windows, *overlapping))


def jobs_of(session: Session, team: str, period: Period) -> Subquery:
    """Rows in the form of `DayCount`, without the team, that together cover the jobs of a period."""
    return _jobs(team, _spans(session, team, period, 1), _is_postgresql(session))


@lru_cache(STATEMENTS)
def _jobs(team: str, spans: Sequence[_Span], is_postgresql: bool) -> Subquery:
    parts = (
        _counted_jobs(team, span) if span.days else _live_jobs(team, span, is_postgresql)
        for span in spans
    )
    return _rows_of(parts)


def failures_of(session: Session, team: str, period: Period, *, by_day: bool = False) -> Subquery:
    """Rows in the form of `FailureCount`, without team and days, that together cover the failures of a period.

    Args:
        session: a reading session.
        team: of the jobs.
        period: in which they started.
        by_day: whether each row covers at most one day.
    """
    spans = _spans(session, team, period, 1 if by_day else _ALL)
    return _failures(team, spans, _is_postgresql(session))


@lru_cache(STATEMENTS)
def _failures(team: str, spans: Sequence[_Span], is_postgresql: bool) -> Subquery:
    parts = (
        _counted_failures(team, span) if span.days else _live_failures(team, span, is_postgresql)
        for span in spans
    )
    return _rows_of(parts)


def _rows_of(parts: Iterable[Select[*tuple[Any, ...]]]) -> Subquery:
    """All rows of some queries.

    SQLite would merge a single query into the one around it, and then read the jobs of all time in the order of
    fingerprints to avoid sorting those of the period; a limit prevents that.
    """
    first, *others = parts
    return union_all(first, *others).subquery() if others else first.limit(_ALL).subquery()


def _counted_jobs(team: str, span: _Span) -> Select[*tuple[Any, ...]]:
    columns = list(DayCount.__table__.columns)[1:]
    first, end = span.numbers
    return select(*columns).where(DayCount.team == team, DayCount.day >= first, DayCount.day < end)


def _live_jobs(team: str, span: _Span, is_postgresql: bool) -> Select[*tuple[Any, ...]]:
    return select(
        _day(is_postgresql).label("day"), JobRow.state, JobRow.category, JobRow.target, _ONE.label("jobs"),
        JobRow.gpu_hours, JobRow.wasted_gpu_hours, JobRow.caught,
        (JobRow.caught * JobRow.gpu_hours).label("caught_gpu_hours"), JobRow.checked,
        JobRow.started.label("last"),
    ).where(*_within(team, span))  # fmt: skip


def _counted_failures(team: str, span: _Span) -> Select[*tuple[Any, ...]]:
    columns = list(FailureCount.__table__.columns)[2:]
    # One condition per day, so that the index also finds the fingerprint, its next column.
    firsts = range(*span.numbers, span.days)
    return select(*columns).where(
        FailureCount.team == team, FailureCount.days == span.days, FailureCount.day.in_(firsts)
    )


def _live_failures(team: str, span: _Span, is_postgresql: bool) -> Select[*tuple[Any, ...]]:
    return select(
        _day(is_postgresql).label("day"), JobRow.fingerprint, JobRow.category, _ONE.label("jobs"),
        JobRow.gpu_hours, JobRow.started.label("first"), JobRow.started.label("last"),
    ).where(*_within(team, span), JobRow.fingerprint != "")  # fmt: skip


def _spans(session: Session, team: str, period: Period, most: int) -> tuple[_Span, ...]:
    """The parts of a period in order: the largest possible sums of at most some days, then single jobs."""
    live = _Span(0, period.since, period.until)
    fresh = _fresh(session, team, period.since / DAY_S, period.until / DAY_S)
    days = [day for size, day in fresh if size == 1]
    if not days:
        return (live,)
    first = max(math.ceil(period.since / DAY_S), min(days))
    last = int(min(period.until / DAY_S, max(days) + 1))
    if first >= last:
        return (live,)
    spans: list[_Span] = []
    for part in _parts(period, first, last, {pair for pair in fresh if pair[0] <= most}):
        if spans and spans[-1].days == part.days:
            spans[-1] = _Span(part.days, spans[-1].since, part.until)
        elif part.since < part.until:
            spans.append(part)
    # Databases limit the number of parts of a compound query.
    return tuple(spans) if len(spans) <= _MOST_SPANS else (live,)


def _parts(
    period: Period, first: int, last: int, fresh: Collection[tuple[int, int]]
) -> Iterator[_Span]:
    largest = {day: size for size, day in sorted(fresh) if day + size <= last}
    yield _Span(0, period.since, float(first * DAY_S))
    day = first
    while day < last:
        size = largest.get(day, 0)
        end = day + (size or 1)
        yield _Span(size, float(day * DAY_S), float(end * DAY_S))
        day = end
    yield _Span(0, float(last * DAY_S), period.until)


def _sums() -> CompoundSelect[int, int]:
    """Number of days and first day of each sum that starts in a range of days, and 0 with each changed day."""
    team, low, high = (
        bindparam("team", type_=Text),
        bindparam("low", type_=Integer),
        bindparam("high", type_=Integer),
    )
    counted = select(Counted.days, Counted.day).where(
        Counted.team == team, Counted.day >= low, Counted.day < high
    )
    changed = select(literal(0), StaleDay.day).where(
        StaleDay.team == team, StaleDay.day >= low, StaleDay.day < high
    )
    return union_all(counted, changed)


_SUMS = _sums()


def _fresh(session: Session, team: str, begin: float, end: float) -> frozenset[tuple[int, int]]:
    """The valid sums among some days: number of days and first day of each."""
    low, high = math.floor(max(begin, -END / DAY_S)), math.ceil(min(end, END / DAY_S))
    rows = session.execute(_SUMS, {"team": team, "low": low, "high": high}).all()
    stale = [day for days, day in rows if not days]
    return frozenset(
        (days, first)
        for days, first in rows
        if days and not any(first <= day < first + days for day in stale)
    )


def _wanted(block: int, today: int) -> Iterator[tuple[int, int]]:
    """The sums of a block that can be computed: its past days, then the whole block."""
    for day in range(block, min(block + BLOCK, today)):
        yield 1, day
    if block + BLOCK <= today:
        yield BLOCK, block


def _sum_up_days(session: Session, team: str, first: int, end: int) -> None:
    """Computes the sums of single days from their jobs."""
    span = _Span(0, float(first * DAY_S), float(end * DAY_S))
    row = _live_jobs(team, span, _is_postgresql(session)).subquery().c
    key = (row.day, row.state, row.category, row.target)
    sums = (
        func.sum(row.jobs), func.sum(row.gpu_hours), func.sum(row.wasted_gpu_hours),
        func.sum(row.caught), func.sum(row.caught_gpu_hours), func.sum(row.checked),
        func.max(row.last),
    )  # fmt: skip
    ours = DayCount.team == team, DayCount.day >= first, DayCount.day < end
    _replace(session, DayCount, ours, select(literal(team), *key, *sums).group_by(*key))
    row = _live_failures(team, span, _is_postgresql(session)).subquery().c
    _replace_failures(session, team, range(first, end), row)


def _sum_up_block(session: Session, team: str, block: int) -> None:
    """Computes the sum of a block from the sums of its days."""
    span = _Span(1, float(block * DAY_S), float((block + BLOCK) * DAY_S))
    row = _counted_failures(team, span).subquery().c
    _replace_failures(session, team, range(block, block + BLOCK, BLOCK), row)


def _sum_up_window(session: Session, team: str, days: int, first: int) -> None:
    """Replaces the window of the same length that ended earlier."""
    for table in (FailureCount, Counted):
        session.execute(delete(table).where(table.team == team, table.days == days))
    period = Period(float(first * DAY_S), float((first + days) * DAY_S))
    _replace_failures(
        session, team, range(first, first + days, days), failures_of(session, team, period).c
    )


def _replace_failures(
    session: Session, team: str, firsts: range, row: ReadOnlyColumnCollection[str, Any]
) -> None:
    """Replaces the sums of the given days and marks them as valid."""
    days = firsts.step
    size, first = (literal_column(str(number), Integer) for number in (days, firsts.start))
    key = (first + (row.day - first) // size * size, row.fingerprint, row.category)
    sums = (func.sum(row.jobs), func.sum(row.gpu_hours), func.min(row.first), func.max(row.last))
    rows = select(literal(team), size, *key, *sums).group_by(*key)

    def those(table: type[Counted | FailureCount]) -> Sequence[ColumnElement[bool]]:
        of_size = table.team == team, table.days == days
        return *of_size, table.day >= firsts.start, table.day < firsts.stop

    _replace(session, FailureCount, those(FailureCount), rows)
    session.execute(delete(Counted).where(*those(Counted)))
    marks = [{"team": team, "days": days, "day": first} for first in firsts]
    session.execute(insert(Counted), marks)


def _replace(
    session: Session, table: type[Base], those: Sequence[ColumnElement[bool]], rows: Select[Any]
) -> None:
    session.execute(delete(table).where(*those))
    session.execute(insert(table).from_select(list(table.__table__.columns), rows))


def _within(team: str, span: _Span) -> Sequence[ColumnElement[bool]]:
    return JobRow.team == team, JobRow.started >= span.since, JobRow.started < span.until


def named(column: ColumnElement[str], *, is_postgresql: bool) -> ColumnElement[bool]:
    """Condition that a column has one of the values of the parameter ``names``.

    For PostgreSQL they are one array: its driver neither caches nor prepares statements with many parameters.
    """
    if is_postgresql:
        return column == func.any(cast(bindparam("names"), ARRAY(Text)))
    return column.in_(bindparam("names", expanding=True))


def _is_postgresql(session: Session) -> bool:
    return session.get_bind().dialect.name == "postgresql"


def _day(is_postgresql: bool) -> ColumnElement[int]:
    """The number of the day; a cast rounds in PostgreSQL, and SQLite may lack ``floor``."""
    days = JobRow.started / DAY_S
    return cast(func.floor(days) if is_postgresql else days, BigInteger)
