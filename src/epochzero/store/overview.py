"""Aggregates over a team's jobs: cost over time and causes of failures, computed in the database.

A period refers to the start times of jobs. Past days are read from sums (`epochzero.store.daily_counts`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Exists,
    Integer,
    Select,
    SQLColumnExpression,
    Subquery,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session, aliased

from epochzero.store.daily_counts import (
    DAY_S,
    END,
    STATEMENTS,
    Period,
    failures_of,
    jobs_of,
    named,
)
from epochzero.store.database import Database
from epochzero.store.issues import IssueFilter
from epochzero.store.queries import EVERY_JOB, JobFilter, filtered, of_team
from epochzero.store.schema import JobRow, KnownFailure

_ALL = 1 << 62
EVERY_ISSUE = IssueFilter()
FAILED = ("failed", "lost")
"""States in which the used GPU time is lost."""


@dataclass(frozen=True, slots=True)
class Count:
    """The jobs that started on one or several days, with the same state and failure category.

    Attributes:
        day: number of the (first) day in UTC since the epoch.
        wasted_gpu_hours: of retries that failed again (`epochzero.store.schema.JobRow`).
        checked: number of failed jobs whose code was checked.
        caught, caught_gpu_hours: of those whose failure the check predicted.
    """

    day: int
    state: str
    category: str
    jobs: int
    gpu_hours: float
    wasted_gpu_hours: float
    caught: int
    caught_gpu_hours: float
    checked: int = 0


@dataclass(frozen=True, slots=True)
class FingerprintCount:
    """Frequency of a failure in a period, including those merged into it.

    Attributes:
        first, last: start of the first and of the last of these jobs.
        title: of the last job with the fingerprint itself.
        new: whether no job before the period failed this way.
    """

    fingerprint: str
    category: str
    title: str
    jobs: int
    gpu_hours: float
    first: float
    last: float
    new: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals of a team's jobs in a period.

    Attributes:
        states, categories: number of jobs by state; number of failed jobs by category.
        gpu_hours: of all jobs; lost: of failed jobs.
    """

    jobs: int
    gpu_hours: float
    lost_gpu_hours: float
    states: Mapping[str, int]
    categories: Mapping[str, int]


def counts(database: Database, team: str, period: Period, *, days: int = 1) -> list[Count]:
    """The jobs of a period, aggregated by day, state and category.

    Args:
        team: the team of the jobs.
        period: in which they started.
        days: number of days that are aggregated, from the first day of the period.
    """
    with database.read() as session:
        query = _counts_query(jobs_of(session, team, period), period, days)
        return [Count(*row) for row in session.execute(query)]


@lru_cache(STATEMENTS)
def _counts_query(of: Subquery, period: Period, days: int) -> Select[*tuple[Any, ...]]:
    """Rows in the form of `Count`."""
    jobs = of.c
    key = (_first_of(jobs.day, period, days), jobs.state, jobs.category)
    sums = (
        _whole(jobs.jobs), func.sum(jobs.gpu_hours), func.sum(jobs.wasted_gpu_hours),
        _whole(jobs.caught), func.sum(jobs.caught_gpu_hours), _whole(jobs.checked),
    )  # fmt: skip
    return select(*key, *sums).group_by(*key).order_by(*key)


def _first_of(day: ColumnElement[int], period: Period, days: int) -> ColumnElement[int]:
    """The first of the days that a day is aggregated with."""
    if days == 1:
        return day
    first, size = (literal_column(str(n), Integer) for n in (int(period.since // DAY_S), days))
    return first + (day - first) // size * size


def overview(database: Database, team: str, *, since: float = 0.0) -> Overview:
    """The totals of a team.

    Args:
        team: the team of the jobs.
        since: only jobs that started later, in seconds since the epoch.
    """
    found = counts(database, team, Period(since, END))
    failed = [count for count in found if count.state in FAILED]
    return Overview(
        jobs=sum(count.jobs for count in found),
        gpu_hours=sum(count.gpu_hours for count in found),
        lost_gpu_hours=sum(count.gpu_hours for count in failed),
        states=_sums((count.state, count.jobs) for count in found),
        categories=_sums((count.category, count.jobs) for count in failed),
    )


def fingerprints(
    database: Database,
    team: str,
    period: Period,
    *,
    category: str | None = None,
    only_new: bool = False,
    but_not_in: Period | None = None,
    wanted: IssueFilter = EVERY_ISSUE,
    of_jobs: JobFilter = EVERY_JOB,
    sort: Literal["jobs", "gpu_hours"] = "jobs",
    limit: int = 50,
) -> list[FingerprintCount]:
    """The failures of a period, the most frequent or the most expensive first.

    Merged failures count as one (`epochzero.store.failure_notes.merge`).

    Args:
        team: the team of the jobs.
        period: in which they started.
        category: only failures of this category.
        only_new: only failures that did not occur before the period.
        but_not_in: only failures that did not occur in this other period.
        wanted: only failures of these issues.
        of_jobs: only failures that such a job of the period had.
        sort: the sort column.
        limit: maximum number of failures.
    """
    with database.read() as session:
        seen = failures_of(session, team, period)
        minute = time.time() // 60 * 60 if wanted else 0.0
        merges = _merges(session, team)
        query = _names_query(
            seen, team, period, category, sort, only_new, but_not_in, wanted, of_jobs, minute,
            is_merged=bool(merges),
        )  # fmt: skip
        names = session.scalars(query, {"limit": limit}).all()
        among = frozenset(names)
        every = [*names, *(fingerprint for fingerprint, into in merges.items() if into in among)]
        totals_query = _totals_query(
            seen,
            team,
            period,
            category,
            is_merged=bool(merges),
            is_postgresql=database.is_postgresql,
        )
        rows = session.execute(totals_query, {"names": every})
        totals = {row.shown: FingerprintCount(*row) for row in rows}
        return [totals[name] for name in names if name in totals]


def _merges(session: Session, team: str) -> Mapping[str, str]:
    """The merged fingerprints of a team, which are few, and those that they are merged into."""
    query = select(KnownFailure.fingerprint, KnownFailure.merged_into).where(
        KnownFailure.team == team, KnownFailure.merged_into > ""
    )
    return {row.fingerprint: row.merged_into for row in session.execute(query)}


@lru_cache(STATEMENTS)
def _names_query(
    seen: Subquery,
    team: str,
    period: Period,
    category: str | None,
    sort: str,
    only_new: bool,
    but_not_in: Period | None,
    wanted: IssueFilter,
    of_jobs: JobFilter,
    now: float,
    *,
    is_merged: bool,
) -> Select[str]:
    """The displayed fingerprints in order; see `fingerprints`."""
    columns = _of_shown(seen, team, category, is_merged=is_merged).subquery().c
    sums = [func.sum(columns[name]).desc() for name in dict.fromkeys((sort, "jobs"))]
    every = select(columns.shown).group_by(columns.shown).order_by(*sums, columns.shown)
    limit = bindparam("limit", type_=Integer)
    if not (only_new or but_not_in or wanted or of_jobs != EVERY_JOB):
        return every.limit(limit)  # Keeping the first ones costs less than sorting all.
    # Expensive conditions are evaluated only for the first ones: a database evaluates a subquery with its own LIMIT
    # in order, and only as far as necessary.
    ranked = every.limit(_ALL).cte()
    query = select(ranked.c.shown)
    if only_new:
        query = query.where(_is_new(team, period, ranked.c.shown))
    if but_not_in is not None:
        query = query.where(~_is_met(team, but_not_in, ranked.c.shown))
    if wanted:
        query = query.where(wanted.matches(team, ranked.c.shown, now))
    if of_jobs != EVERY_JOB:
        query = query.where(ranked.c.shown.in_(_of_jobs(team, period, of_jobs)))
    return query.limit(limit)


def _of_jobs(team: str, period: Period, wanted: JobFilter) -> Select[str]:
    """The displayed fingerprints of the matching jobs of a period."""
    jobs = filtered(replace(wanted, team=team, since=period.since, until=period.until))
    subquery = jobs.with_only_columns(JobRow.fingerprint).order_by(None).distinct().subquery()
    return select(_shown(team, subquery.c.fingerprint))


def by_day(
    database: Database, team: str, period: Period, names: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """The number of jobs per day of a period with each of some failures, including those merged into them."""
    first, end = int(period.since // DAY_S), int(-(-period.until // DAY_S))
    found = {name: [0] * (end - first) for name in names}
    if not found:
        return {}
    with database.read() as session:
        merges = _merges(session, team).items()
        shown = {name: name for name in names}
        shown |= {fingerprint: into for fingerprint, into in merges if into in found}
        of = failures_of(session, team, period, by_day=True)
        query = _days_query(of, is_postgresql=database.is_postgresql)
        for fingerprint, day, jobs in session.execute(query, {"names": list(shown)}):
            found[shown[fingerprint]][day - first] += jobs
    return {name: tuple(jobs) for name, jobs in found.items()}


@lru_cache(STATEMENTS)
def _days_query(of: Subquery, *, is_postgresql: bool) -> Select[str, int, int]:
    seen = of.c
    return (
        select(seen.fingerprint, seen.day, _whole(seen.jobs))
        .where(named(seen.fingerprint, is_postgresql=is_postgresql))
        .group_by(seen.fingerprint, seen.day)
    )


def _of_shown(
    seen: Subquery, team: str, category: str | None, *, is_merged: bool
) -> Select[*tuple[Any, ...]]:
    """The rows of some failures, each with its displayed fingerprint as ``shown``."""
    own = seen.c.fingerprint
    query = select((_shown(team, own) if is_merged else own).label("shown"), *seen.c)
    return query if category is None else query.where(seen.c.category == category)


@lru_cache(STATEMENTS)
def _totals_query(
    seen: Subquery,
    team: str,
    period: Period,
    category: str | None,
    *,
    is_merged: bool,
    is_postgresql: bool,
) -> Select[*tuple[Any, ...]]:
    """Rows in the form of `FingerprintCount`."""
    among = named(seen.c.fingerprint, is_postgresql=is_postgresql)
    rows = _of_shown(seen, team, category, is_merged=is_merged).where(among).subquery().c
    sums = select(
        rows.shown,
        func.max(rows.category).label("category"),
        _whole(rows.jobs).label("jobs"),
        func.sum(rows.gpu_hours).label("gpu_hours"),
        func.min(rows.first).label("first"),
        func.max(rows.last).label("last"),
    )
    columns = sums.group_by(rows.shown).subquery().c
    return select(
        columns.shown, columns.category, _title(team, columns.shown), columns.jobs, columns.gpu_hours,
        columns.first, columns.last, _is_new(team, period, columns.shown),
    )  # fmt: skip


def _shown(team: str, fingerprint: ColumnElement[str]) -> ColumnElement[str]:
    """The displayed fingerprint of each failure: the one that it is merged into, or its own.

    Few failures are merged: their list is read once, where a join would look up each failure.
    """
    merged = aliased(KnownFailure)
    those = select(merged.fingerprint).where(merged.team == team, merged.merged_into > "")
    into = select(merged.merged_into).where(merged.team == team, merged.fingerprint == fingerprint)
    return case((fingerprint.in_(those), into.scalar_subquery()), else_=fingerprint)


def _title(team: str, fingerprint: ColumnElement[str]) -> ColumnElement[str]:
    newest = aliased(JobRow)
    title = (
        select(newest.title)
        .where(of_team(team, newest), newest.fingerprint == fingerprint)
        .order_by(newest.started.desc())
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(title, "")


def _is_new(team: str, period: Period, fingerprint: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether no job failed this way before a period, including merged failures.

    The first job of a fingerprint is one index lookup; a condition for any earlier job might read all of them.
    """
    merged = aliased(KnownFailure)
    first_merged = (
        select(func.min(_first(team, merged.fingerprint)))
        .where(merged.team == team, merged.merged_into == fingerprint)
        .scalar_subquery()
    )
    return and_(
        func.coalesce(_first(team, fingerprint), period.since) >= period.since,
        func.coalesce(first_merged, period.since) >= period.since,
    )


def _is_met(team: str, period: Period, fingerprint: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a job of a period failed this way, including merged failures."""
    merged = aliased(KnownFailure)

    def met(column: SQLColumnExpression[str]) -> Exists:
        job = aliased(JobRow)
        within = job.started >= period.since, job.started < period.until
        return exists().where(of_team(team, job), job.fingerprint == column, *within)

    of_merged = exists().where(
        merged.team == team, merged.merged_into == fingerprint, met(merged.fingerprint)
    )
    return or_(met(fingerprint), of_merged)


def _first(team: str, fingerprint: SQLColumnExpression[str]) -> ColumnElement[float]:
    job = aliased(JobRow)
    return (
        select(func.min(job.started))
        .where(of_team(team, job), job.fingerprint == fingerprint)
        .scalar_subquery()
    )


def _whole(column: ColumnElement[Any]) -> ColumnElement[int]:
    """An integer sum; PostgreSQL returns a decimal."""
    return cast(func.sum(column), BigInteger)


def _sums(pairs: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for name, number in pairs:
        found[name] += number
    return dict(found)
