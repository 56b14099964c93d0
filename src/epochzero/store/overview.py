"""What a team's jobs cost over time, and why they failed: numbers of many jobs, made in the database.

A period is of the times at which jobs started. What is over is read from sums (`epochzero.store.daily_counts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Exists,
    Integer,
    SQLColumnExpression,
    Subquery,
    and_,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
    union,
)
from sqlalchemy.orm import Session, aliased

from epochzero.store.daily_counts import DAY_S, END, Period, failures_of, jobs_of
from epochzero.store.database import Database
from epochzero.store.queries import of_team
from epochzero.store.schema import JobRow, KnownFailure

_ALL = 1 << 62
FAILED = ("failed", "lost")
"""States in which what a job used is lost."""


@dataclass(frozen=True, slots=True)
class Count:
    """The jobs that started on one day, or on some, are in one state, and failed for one reason.

    Attributes:
        day: number of the day in UTC since the epoch; of several the first.
        wasted_gpu_hours: of retries that failed again (`epochzero.store.schema.Job`).
        caught, caught_gpu_hours: of jobs whose failure a check would have told before the start.
    """

    day: int
    state: str
    category: str
    jobs: int
    gpu_hours: float
    wasted_gpu_hours: float
    caught: int
    caught_gpu_hours: float


@dataclass(frozen=True, slots=True)
class FingerprintCount:
    """How often a failure was seen in a period, with those that are merged into it.

    Attributes:
        first, last: when the first and the last of these jobs started.
        title: of the last job with the fingerprint itself.
        new: whether no job before the period failed so.
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
    """A team's jobs in numbers, of a stretch of time.

    Attributes:
        states, categories: jobs by each; of categories those that failed.
        gpu_hours: of all jobs; lost: of those that failed.
    """

    jobs: int
    gpu_hours: float
    lost_gpu_hours: float
    states: Mapping[str, int]
    categories: Mapping[str, int]


def counts(database: Database, team: str, period: Period, *, days: int = 1) -> list[Count]:
    """All jobs of a period, summed up by day, state and category.

    Args:
        database: the store.
        team: whose jobs.
        period: in which they started.
        days: how many are summed up as one, from the first of the period on.

    Raises:
        StoreError: the database does not answer.
    """
    with database.read() as session:
        jobs = jobs_of(session, team, period).c
        key = (_first_of(jobs.day, period, days), jobs.state, jobs.category)
        query = (
            select(
                *key,
                *(_whole(column) for column in (jobs.jobs, jobs.caught)),
                *(
                    func.sum(column)
                    for column in (jobs.gpu_hours, jobs.wasted_gpu_hours, jobs.caught_gpu_hours)
                ),
            )
            .group_by(*key)
            .order_by(*key)
        )
        return [
            Count(day, state, category, count, hours, wasted, caught, caught_hours)
            for day, state, category, count, caught, hours, wasted, caught_hours in session.execute(
                query
            )
        ]


def _first_of(day: ColumnElement[int], period: Period, days: int) -> ColumnElement[int]:
    """The first of the days that one is summed up with."""
    if days == 1:
        return day
    first, size = (literal_column(str(one), Integer) for one in (int(period.since // DAY_S), days))
    return first + (day - first) // size * size


def overview(database: Database, team: str, *, since: float = 0.0) -> Overview:
    """A team's numbers.

    Args:
        database: the store.
        team: whose.
        since: of jobs that began later, in seconds since the epoch.

    Raises:
        StoreError: the database does not answer.
    """
    found = counts(database, team, Period(since, END))
    failed = [one for one in found if one.state in FAILED]
    return Overview(
        jobs=sum(one.jobs for one in found),
        gpu_hours=sum(one.gpu_hours for one in found),
        lost_gpu_hours=sum(one.gpu_hours for one in failed),
        states=_sums((one.state, one.jobs) for one in found),
        categories=_sums((one.category, one.jobs) for one in failed),
    )


def fingerprints(
    database: Database,
    team: str,
    period: Period,
    *,
    category: str | None = None,
    only_new: bool = False,
    but_not_in: Period | None = None,
    sort: Literal["jobs", "gpu_hours"] = "jobs",
    limit: int = 50,
) -> list[FingerprintCount]:
    """The failures of a period, the most frequent or the costliest first.

    Those that are merged are one failure (`epochzero.store.failure_notes.merge`).

    Args:
        database: the store.
        team: whose jobs.
        period: in which they started.
        category: only failures of this category.
        only_new: only those that no job before the period had.
        but_not_in: only those that no job of this other period had.
        sort: by which number.
        limit: at most so many.

    Raises:
        StoreError: the database does not answer.
    """
    with database.read() as session:
        seen = failures_of(session, team, period)
        ranked = _ranked(seen, team, category, sort)
        wanted = select(ranked.c.fingerprint)
        if only_new:
            wanted = wanted.where(_is_new(team, period, ranked.c.fingerprint))
        if but_not_in is not None:
            wanted = wanted.where(~_is_met(team, but_not_in, ranked.c.fingerprint))
        names = session.scalars(wanted.limit(limit)).all()
        return _told(session, seen, team, period, names, category)


def leading(
    database: Database, team: str, period: Period, *, each: int
) -> tuple[list[FingerprintCount], list[FingerprintCount]]:
    """The most frequent failures of a period, and the most frequent new ones: asked for at once.

    Args:
        database: the store.
        team: whose jobs.
        period: in which they started.
        each: at most so many of both.

    Raises:
        StoreError: the database does not answer.
    """
    with database.read() as session:
        seen = failures_of(session, team, period)
        ranked = _ranked(seen, team, None, "jobs")
        most = select(ranked.c.fingerprint).limit(each).subquery()
        new = _is_new(team, period, ranked.c.fingerprint)
        most_new = select(ranked.c.fingerprint).where(new).limit(each).subquery()
        names = session.scalars(union(select(most), select(most_new))).all()
        found = _told(session, seen, team, period, names, None)
        found.sort(key=lambda one: (-one.jobs, one.fingerprint))
        return found[:each], [one for one in found if one.new][:each]


def _ranked(seen: Subquery, team: str, category: str | None, sort: str) -> CTE:
    """The fingerprints of a period as they are shown, in an order: what costs a search each is asked of the first.

    A database reads a part that has an end of its own in its order, and only as far as it must.
    """
    sums = {name: func.sum(seen.c[name]).label(name) for name in dict.fromkeys((sort, "jobs"))}
    each = select(seen.c.fingerprint, *sums.values()).group_by(seen.c.fingerprint)
    one = (each if category is None else each.where(seen.c.category == category)).subquery()
    shown, merging = _shown(team, one.c.fingerprint)
    order = [func.sum(one.c[name]).desc() for name in sums]
    query = select(shown.label("fingerprint")).select_from(one).outerjoin(*merging)
    return query.group_by(shown).order_by(*order, shown).limit(_ALL).cte()


def _told(
    session: Session,
    seen: Subquery,
    team: str,
    period: Period,
    names: Sequence[str],
    category: str | None,
) -> list[FingerprintCount]:
    """The numbers of some failures, in the order of their names."""
    merged = select(KnownFailure.fingerprint).where(
        KnownFailure.team == team, KnownFailure.merged_into.in_(names)
    )
    every = {*names, *session.scalars(merged)}
    shown, merging = _shown(team, seen.c.fingerprint)
    sums = (
        select(
            shown.label("fingerprint"),
            func.max(seen.c.category).label("category"),
            _whole(seen.c.jobs).label("jobs"),
            func.sum(seen.c.gpu_hours).label("gpu_hours"),
            func.min(seen.c.first).label("first"),
            func.max(seen.c.last).label("last"),
        )
        .select_from(seen)
        .outerjoin(*merging)
        .where(seen.c.fingerprint.in_(every))
        .group_by(shown)
    )
    one = (sums if category is None else sums.where(seen.c.category == category)).subquery().c
    query = select(
        one.fingerprint, one.category, _title(team, one.fingerprint), one.jobs, one.gpu_hours,
        one.first, one.last, _is_new(team, period, one.fingerprint),
    )  # fmt: skip
    found = {row.fingerprint: FingerprintCount(*row) for row in session.execute(query)}
    return [found[name] for name in names if name in found]


def _shown(
    team: str, fingerprint: ColumnElement[str]
) -> tuple[ColumnElement[str], tuple[Any, ColumnElement[bool]]]:
    """As what a fingerprint is shown, and what is joined for that."""
    said = aliased(KnownFailure)
    is_merged = and_(said.team == team, said.fingerprint == fingerprint, said.merged_into != "")
    return func.coalesce(said.merged_into, fingerprint), (said, is_merged)


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
    """Whether no job failed so before a period, nor with what is merged.

    The first job of a fingerprint is one look into an index; a database that were asked whether there is an
    earlier one might read them all.
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
    """Whether a job of a period failed so, or with what is merged."""
    merged = aliased(KnownFailure)

    def met(one: SQLColumnExpression[str]) -> Exists:
        job = aliased(JobRow)
        within = job.started >= period.since, job.started < period.until
        return exists().where(of_team(team, job), job.fingerprint == one, *within)

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
    """A sum; PostgreSQL's of whole numbers is a decimal one."""
    return cast(func.sum(column), BigInteger)


def _sums(pairs: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for name, number in pairs:
        found[name] += number
    return dict(found)
