"""Queries of the store: find jobs, and list, filter and search them.

Results are immutable values; ``docs/store.md`` describes their JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select, tuple_
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.records.model import HANG_EVENT, HANG_OVER_EVENT
from epochzero.run.simulate.limits import EVENT
from epochzero.store import schema
from epochzero.store.database import Database
from epochzero.store.search import (
    end_of,
    matching_texts,
    noted,
    parse_search,
    searched_words,
    time_of,
)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Conditions for jobs; None matches all.

    Attributes:
        state, category, user, host: exact values.
        fingerprint: the fingerprint or a prefix of it.
        target: exact; empty for this machine.
        name: may contain the wildcards ``*`` and ``?``.
        same_name: exact name, without wildcards.
        same_failure: one of these exact fingerprints (`epochzero.store.failure_notes.merged_with`).
        search: a part of the name, a prefix of the ID or the fingerprint, or words of the failure or of its notes.
        partition, image: exact; of the scheduler, and of the container of a failed job.
        team: exact; empty for local jobs.
        since, until: limits of the start time, in seconds since the epoch.
        limit: maximum number of jobs, newest first.
    """

    state: str | None = None
    category: str | None = None
    fingerprint: str | None = None
    user: str | None = None
    host: str | None = None
    target: str | None = None
    name: str | None = None
    same_name: str | None = None
    same_failure: tuple[str, ...] | None = None
    search: str | None = None
    partition: str | None = None
    image: str | None = None
    team: str | None = None
    since: float | None = None
    until: float | None = None
    limit: int | None = None


EVERY_JOB = JobFilter()


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in a list; see `epochzero.store.schema.JobRow`.

    Attributes:
        simulated: whether its target was simulated (``run --simulate``).
        hung: what a hanging job waits for; empty if it does not hang.
    """

    id: str
    name: str
    state: str
    user: str
    host: str
    launcher: str
    target: str
    started: float
    ended: float | None
    attempts: int
    gpus: int
    gpu_hours: float
    category: str
    fingerprint: str
    title: str = ""
    simulated: bool = False
    hung: str = ""


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of a list of jobs.

    Attributes:
        after: start of the next page; empty on the last page. A page of a search may be short or
            empty without being the last: it ends after `MOST_SEARCHED` jobs.
    """

    jobs: tuple[JobSummary, ...]
    after: str


SORTS = {"newest": (schema.JobRow.started, True), "oldest": (schema.JobRow.started, False),
         "costliest": (schema.JobRow.gpu_hours, True)}  # fmt: skip
"""Sort orders of a list: the column, and whether it is descending."""


MOST_SEARCHED = 50_000
"""Maximum number of jobs that one page of a search reads."""


def find_jobs(database: Database, wanted: JobFilter = EVERY_JOB) -> list[JobSummary]:
    """The jobs that match a filter, newest first."""
    with database.read() as session:
        jobs = session.scalars(filtered(wanted)).all()
        return summaries(session, jobs)


def job_page(
    database: Database, wanted: JobFilter, *, sort: str = "newest", after: str = ""
) -> JobPage:
    """A page of the jobs that match a filter; all pages together contain each job once.

    Args:
        wanted: the filter; its ``limit`` is the length of a page.
        sort: one of `SORTS`.
        after: `JobPage.after` of the previous page; empty for the first.

    Raises:
        InputError: the sort order or the start of the page does not exist.
    """
    if sort not in SORTS:
        raise InputError(f"{sort!r} is not a sort order; choose one of {', '.join(SORTS)}")
    limit = wanted.limit or 50
    column, falls = SORTS[sort]
    key = (column, schema.JobRow.id)
    order = tuple(column.desc() if falls else column.asc() for column in key)
    query = filtered(replace(wanted, limit=None)).order_by(None).order_by(*order).limit(limit + 1)
    if after:
        query = query.where(_beyond(key, _position(after), falls))
    with database.read() as session:
        end = _end_of_search(session, wanted, sort, after)
        if end is not None:
            query = query.where(~_beyond(key, end, falls))
        # Searched in an index first, because rows are much larger than the searched columns.
        found = session.execute(query.with_only_columns(*key)).all()
        rows = session.scalars(
            select(schema.JobRow)
            .where(schema.JobRow.id.in_([row.id for row in found[:limit]]))
            .order_by(*order)
        ).all()
        last = found[limit - 1] if len(found) > limit else end
        after = f"{last[0]!r}~{last[1]}" if last else ""
        return JobPage(tuple(summaries(session, rows)), after)


def _end_of_search(
    session: Session, wanted: JobFilter, sort: str, after: str
) -> tuple[float, str] | None:
    """The last job that a page of a search reads; None if it reads all.

    No index contains substrings of names: a search without matches would read all jobs.
    """
    if wanted.search is None and wanted.name is None and wanted.fingerprint is None:
        return None
    column, falls = SORTS[sort]
    key = (column, schema.JobRow.id)
    there = JobFilter(team=wanted.team, since=wanted.since, until=wanted.until)
    query = filtered(there).with_only_columns(*key).order_by(None)
    if after:
        query = query.where(_beyond(key, _position(after), falls))
    query = query.order_by(*(c.desc() if falls else c.asc() for c in key))
    row = session.execute(query.offset(MOST_SEARCHED - 1).limit(1)).one_or_none()
    return None if row is None else (row[0], row[1])


def _beyond(key: tuple[Any, Any], position: tuple[float, str], falls: bool) -> ColumnElement[bool]:
    """Condition for jobs after a position in an order."""
    row = tuple_(*key)
    return row < tuple_(*position) if falls else row > tuple_(*position)


def _position(after: str) -> tuple[float, str]:
    value, _, identity = after.partition("~")
    try:
        return float(value), identity
    except ValueError as error:
        raise InputError(f"{after!r}: no page of jobs starts at this job") from error


def find_job(database: Database, word: str) -> str:
    """The ID of a job, given its ID, a prefix of the ID, its name, or ``last``.

    Raises:
        InputError: no job or several jobs match.
    """
    jobs = schema.JobRow
    newest = select(jobs.id).order_by(jobs.started.desc(), jobs.id.desc())
    with database.read() as session:
        if word == "last":
            found = session.scalars(newest.limit(1)).all()
        else:
            begins = jobs.id.startswith(word, autoescape=True)
            found = session.scalars(newest.where(begins).limit(6)).all()
            found = found or session.scalars(newest.where(jobs.name == word).limit(1)).all()
    if not found:
        raise InputError(f"no job {word!r}; `epochzero jobs` lists all jobs")
    if len(found) > 1 and word not in found:
        raise InputError(f"several job IDs start with {word!r}: {', '.join(sorted(found))}")
    return word if word in found else found[0]


def filtered(wanted: JobFilter) -> Select[Any]:
    """The query for the jobs that match a filter, newest first."""
    jobs = schema.JobRow
    query = select(jobs).order_by(jobs.started.desc(), jobs.id.desc())
    for name in ("team", "state", "category", "user", "host", "target", "partition", "image"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(getattr(jobs, name) == value)
    if wanted.fingerprint is not None:
        query = query.where(jobs.fingerprint.startswith(wanted.fingerprint, autoescape=True))
    if wanted.name is not None:
        escaped = wanted.name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        pattern = escaped.replace("*", "%").replace("?", "_")
        query = query.where(jobs.name.like(pattern, escape="\\"))
    if wanted.same_failure is not None:
        query = query.where(jobs.fingerprint.in_(wanted.same_failure))
    if wanted.same_name is not None:
        query = query.where(jobs.name == wanted.same_name)
    if wanted.search is not None:
        query = query.where(_found(wanted.search, wanted.team))
    if wanted.since is not None:
        query = query.where(jobs.started >= wanted.since)
    if wanted.until is not None:
        query = query.where(jobs.started < wanted.until)
    return query if wanted.limit is None else query.limit(wanted.limit)


def _found(text: str, team: str | None) -> ColumnElement[bool]:
    """Condition that a search finds a job."""
    jobs = schema.JobRow
    conditions = [
        jobs.name.icontains(text, autoescape=True),
        jobs.id.startswith(text, autoescape=True),
        jobs.fingerprint.startswith(text, autoescape=True),
    ]
    if words := searched_words(text):
        texts = select(schema.FailureText.id).where(matching_texts(words))
        issues = select(schema.KnownFailure.fingerprint).where(noted(team or "", words))
        if team is not None:
            texts = texts.where(schema.FailureText.team == team)
            issues = issues.where(schema.KnownFailure.team == team)
        conditions += [jobs.text_id.in_(texts), jobs.fingerprint.in_(issues)]
    return or_(*conditions)


def with_search(wanted: JobFilter, text: str) -> JobFilter:
    """Adds a search such as ``KeyError user:ann since:7d`` to a filter (`epochzero.store.search`).

    Raises:
        InputError: a filter of the search has no meaning for jobs, or its value is not valid.
    """
    query = parse_search(text)
    return replace(with_filters(wanted, query.filters), search=query.text or None)


def with_filters(wanted: JobFilter, filters: Mapping[str, str]) -> JobFilter:
    """Adds filters of the search language to a filter.

    Raises:
        InputError: as for `with_search`.
    """
    values: dict[str, Any] = {}
    for name, value in filters.items():
        if name in ("is", "owner"):
            raise InputError(f"{name}: filters failures, not jobs; search on the page of failures")
        parse = {"since": time_of, "until": end_of}.get(name, str)
        values[{"node": "host"}.get(name, name)] = parse(value)
    return replace(wanted, **values)


def of_team(team: str, jobs: type[schema.JobRow] = schema.JobRow) -> ColumnElement[bool]:
    """Condition that a job belongs to a team."""
    return jobs.team == team


def _simulated(session: Session, jobs: Sequence[str]) -> frozenset[str]:
    """The jobs that ran on a simulated platform."""
    attempts, ranks, events = schema.AttemptRow, schema.Rank, schema.EventRow
    return frozenset(
        session.scalars(
            select(attempts.job_id)
            .join(ranks, ranks.attempt_id == attempts.id)
            .join(events, events.rank_id == ranks.id)
            .where(attempts.job_id.in_(jobs), events.what == EVENT)
        )
    )


def _hangs(session: Session, jobs: Sequence[str]) -> Mapping[str, str]:
    """The running jobs that hang, and what a rank of each waits for."""
    attempts, ranks, events = schema.AttemptRow, schema.Rank, schema.EventRow
    rows = session.execute(
        select(attempts.job_id, ranks.id, events.what, events.text)
        .join(ranks, ranks.attempt_id == attempts.id)
        .join(events, events.rank_id == ranks.id)
        .where(attempts.job_id.in_(jobs), ranks.state == "running")
        .where(events.what.in_((HANG_EVENT, HANG_OVER_EVENT)))
        .order_by(ranks.id, events.sequence)
    )
    last = {(job, rank): (what, text) for job, rank, what, text in rows}
    return {job: text for (job, _), (what, text) in last.items() if what == HANG_EVENT}


def summaries(session: Session, jobs: Sequence[schema.JobRow]) -> list[JobSummary]:
    """Return the summaries of jobs, in their order."""
    simulated = _simulated(session, [job.id for job in jobs])
    hangs = _hangs(session, [job.id for job in jobs if job.state == "running"])
    columns = [f.name for f in fields(JobSummary) if f.name not in ("simulated", "hung")]
    return [
        JobSummary(
            **{name: getattr(job, name) for name in columns},
            simulated=job.id in simulated,
            hung=hangs.get(job.id, ""),
        )
        for job in jobs
    ]
