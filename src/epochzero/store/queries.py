"""Queries of the store: lists of jobs, and all data about one job.

Results are immutable values; ``docs/store.md`` describes their JSON form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, cast, func, or_, select, tuple_
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.records.model import HANG_EVENT, HANG_OVER_EVENT
from epochzero.run.records.output import logs_in
from epochzero.run.simulate.limits import EVENT
from epochzero.store import schema
from epochzero.store.database import Database
from epochzero.store.logs import chunks_of, read_output
from epochzero.store.recorder import journal_of
from epochzero.store.search import (
    end_of,
    matching_texts,
    noted,
    parse_search,
    searched_words,
    time_of,
)
from epochzero.store.states import FINAL

SCHEMA = "epochzero.job/1"


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
    """A job in a list; see `epochzero.store.schema.Job`.

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


@dataclass(frozen=True, slots=True)
class Log:
    """A log of a rank: bytes written, dropped during the run, and stored."""

    name: str
    size: int
    dropped: int
    stored: int | None


@dataclass(frozen=True, slots=True)
class RankDetails:
    """All data about one rank of an attempt.

    Attributes:
        id: ID of its row.
        rank: None if the supervisor watched the whole job.
        progress: its last progress, in the JSON form of `epochzero.run.records.model.Progress` without ``kind``.
        diagnosis, findings, ranking: in their JSON forms.
        events, decisions, notes: in chronological order.
    """

    id: int
    rank: int | None
    host: str
    state: str
    started: float
    ended: float | None
    exit_code: int | None
    signal: int | None
    why: str
    snapshot: Mapping[str, Any]
    progress: Mapping[str, Any] | None = None
    diagnosis: Mapping[str, Any] | None = None
    findings: tuple[Mapping[str, Any], ...] = ()
    ranking: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Mapping[str, Any], ...] = ()
    logs: tuple[Log, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptDetails:
    """One attempt of a job."""

    number: int
    state: str
    started: float
    ended: float | None
    exit_code: int | None
    gpu_hours: float
    ranks: tuple[RankDetails, ...]


@dataclass(frozen=True, slots=True)
class JobDetails:
    """All data about a job except its samples and the content of its logs."""

    summary: JobSummary
    command: tuple[str, ...]
    folder: str
    world_size: int | None
    scheduler: Mapping[str, str]
    attempts: tuple[AttemptDetails, ...] = field(repr=False)

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        return {"schema": SCHEMA, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Usage:
    """Resource usage of a rank in one interval: means, and the peak of memory."""

    elapsed: float
    cpu_percent: float
    memory_bytes: int
    gpu_percent: float | None
    gpu_memory_bytes: int | None


def find_jobs(database: Database, wanted: JobFilter = EVERY_JOB) -> list[JobSummary]:
    """The jobs that match a filter, newest first.

    Raises:
        StoreError: the database does not respond.
    """
    with database.read() as session:
        jobs = session.scalars(filtered(wanted)).all()
        return _summaries(session, jobs)


def job_page(
    database: Database, wanted: JobFilter, *, sort: str = "newest", after: str = ""
) -> JobPage:
    """A page of the jobs that match a filter; all pages together contain each job once.

    Args:
        database: the store.
        wanted: the filter; its ``limit`` is the length of a page.
        sort: one of `SORTS`.
        after: `JobPage.after` of the previous page; empty for the first.

    Raises:
        InputError: the sort order or the start of the page does not exist.
        StoreError: the database does not respond.
    """
    if sort not in SORTS:
        raise InputError(f"{sort!r} is not a sort order; choose one of {', '.join(SORTS)}")
    limit = wanted.limit or 50
    column, falls = SORTS[sort]
    key = (column, schema.JobRow.id)
    order = tuple(each_column.desc() if falls else each_column.asc() for each_column in key)
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
        return JobPage(tuple(_summaries(session, rows)), after)


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
        StoreError: the database does not respond.
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


def job_details(database: Database, identity: str, *, team: str | None = None) -> JobDetails:
    """All data about a job.

    Args:
        database: the store.
        identity: ID of the job.
        team: required team of the job; None for any.

    Raises:
        InputError: no such job, or it belongs to another team.
        StoreError: the database does not respond.
    """
    with database.read() as session:
        job = session.get(schema.JobRow, identity)
        if job is None or team not in (None, job.team):
            raise InputError(f"no job {identity!r}")
        attempts = session.scalars(
            select(schema.AttemptRow)
            .where(schema.AttemptRow.job_id == identity)
            .order_by(schema.AttemptRow.number)
        ).all()
        return JobDetails(
            summary=_summaries(session, [job])[0],
            command=tuple(job.command),
            folder=job.folder,
            world_size=job.world_size,
            scheduler=job.scheduler,
            attempts=tuple(_attempt(session, attempt) for attempt in attempts),
        )


def usage(database: Database, rank_id: int, *, points: int = 60) -> list[Usage]:
    """The resource usage of a rank over time, in a maximum number of equal intervals.

    Raises:
        StoreError: the database does not respond.
    """
    samples = schema.Sample
    with database.read() as session:
        longest = session.scalar(
            select(func.max(samples.elapsed)).where(samples.rank_id == rank_id)
        )
        if longest is None:
            return []
        stretch = cast(samples.elapsed * (points - 1) / max(longest, 1.0), Integer)
        rows = session.execute(
            select(
                func.max(samples.elapsed),
                func.avg(samples.cpu_percent),
                func.max(samples.memory_bytes),
                func.avg(samples.gpu_percent),
                func.max(samples.gpu_memory_bytes),
            )
            .where(samples.rank_id == rank_id)
            .group_by(stretch)
            .order_by(stretch)
        )
        return [Usage(*row) for row in rows]


def folders(database: Database, identity: str) -> list[Path]:
    """The run directories of a job's last attempt, which may have been deleted.

    Raises:
        StoreError: the database does not respond.
    """
    with database.read() as session:
        return [journal_of(rank).parent for rank in _ranks(session, identity, None)]


def read_log(
    database: Database,
    identity: str,
    *,
    attempt: int | None,
    name: str,
    rank_id: int | None = None,
    text: Callable[[bytes], bytes] = lambda text: text,
) -> Iterator[bytes]:
    """The bytes of a job's log, in parts: from the store, or for a running job from its directory.

    Args:
        database: the store.
        identity: ID of the job.
        attempt: number of the attempt; None for the last.
        name: of the log, such as ``output``.
        rank_id: row of the rank that wrote it; None for the first that has one.
        text: transforms a part of a log that is not redacted yet.

    Raises:
        InputError: the job has no such log, or it is not stored or was pruned.
        StoreError: the database does not respond.
    """
    with database.read() as session:
        there: list[str] = []
        for rank in _ranks(session, identity, attempt):
            if rank_id not in (None, rank.id):
                continue
            outputs = session.scalars(
                select(schema.Output).where(schema.Output.rank_id == rank.id)
            ).all()
            stored = {output.name: output for output in outputs if output.stored is not None}
            written = {} if rank.state in FINAL else logs_in(journal_of(rank).parent)
            if name in stored:
                yield from read_output(session, stored[name])
                return
            if name in written:
                yield from map(text, _read_parts(written[name]))
                return
            there += (*(output.name for output in outputs), *written)
        if name in there:
            raise InputError(
                f"job {identity}: the log {name!r} is not in the store: it was pruned or its files were deleted"
            )
        names = ", ".join(dict.fromkeys(there))
        raise InputError(
            f"job {identity} has no log {name!r}" + (f": there are {names}" if names else "")
        )


def _ranks(session: Session, identity: str, attempt: int | None) -> Sequence[schema.Rank]:
    """The ranks of an attempt; None for the last attempt."""
    attempts = schema.AttemptRow
    numbers = select(func.max(attempts.number)).where(attempts.job_id == identity)
    wanted = numbers.scalar_subquery() if attempt is None else attempt
    return session.scalars(
        select(schema.Rank)
        .join(attempts, attempts.id == schema.Rank.attempt_id)
        .where(attempts.job_id == identity, attempts.number == wanted)
        .order_by(schema.Rank.rank, schema.Rank.id)
    ).all()


def _read_parts(parts: Iterable[Path]) -> Iterator[bytes]:
    """The bytes of a log that may still be written; dropped parts are omitted."""
    for part in parts:
        with suppress(FileNotFoundError):
            yield from chunks_of(part)


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


def _summaries(session: Session, jobs: Sequence[schema.JobRow]) -> list[JobSummary]:
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


def _attempt(session: Session, attempt: schema.AttemptRow) -> AttemptDetails:
    ranks = session.scalars(
        select(schema.Rank)
        .where(schema.Rank.attempt_id == attempt.id)
        .order_by(schema.Rank.rank, schema.Rank.id)
    ).all()
    return AttemptDetails(
        number=attempt.number,
        state=attempt.state,
        started=attempt.started,
        ended=attempt.ended,
        exit_code=attempt.exit_code,
        gpu_hours=attempt.gpu_hours,
        ranks=tuple(_rank(session, rank) for rank in ranks),
    )


def _rank(session: Session, rank: schema.Rank) -> RankDetails:
    progress = _dicts(session, schema.ProgressRow, rank, last=True)
    failures = session.scalars(
        select(schema.FailureRow)
        .where(schema.FailureRow.rank_id == rank.id)
        .order_by(schema.FailureRow.id)
    ).all()
    return RankDetails(
        id=rank.id,
        rank=rank.rank,
        host=rank.host,
        state=rank.state,
        started=rank.started,
        ended=rank.ended,
        exit_code=rank.exit_code,
        signal=rank.signal,
        why=rank.why,
        snapshot=rank.snapshot,
        progress=progress[-1] if progress else None,
        diagnosis=failures[-1].diagnosis if failures else None,
        findings=tuple(
            row.finding
            for row in session.scalars(
                select(schema.FindingRow)
                .where(schema.FindingRow.rank_id == rank.id)
                .order_by(schema.FindingRow.id)
            )
        ),
        ranking=tuple(
            row.item
            for row in session.scalars(
                select(schema.RankedPlace)
                .where(schema.RankedPlace.rank_id == rank.id)
                .order_by(schema.RankedPlace.position)
            )
        ),
        events=_dicts(session, schema.EventRow, rank),
        decisions=_dicts(session, schema.DecisionRow, rank),
        notes=_dicts(session, schema.Note, rank),
        logs=tuple(
            Log(output.name, output.size, output.dropped, output.stored)
            for output in session.scalars(
                select(schema.Output)
                .where(schema.Output.rank_id == rank.id)
                .order_by(schema.Output.id)
            )
        ),
    )


_Sequenced = (
    type[schema.ProgressRow] | type[schema.EventRow] | type[schema.DecisionRow] | type[schema.Note]
)


def _dicts(
    session: Session, table: _Sequenced, rank: schema.Rank, *, last: bool = False
) -> tuple[dict[str, Any], ...]:
    """The rows of a rank in a table, without their foreign keys."""
    order = table.sequence.desc() if last else table.sequence
    query = select(table).where(table.rank_id == rank.id).order_by(order)
    names = [c.name for c in table.__table__.columns if c.name not in ("rank_id", "sequence")]
    found = session.scalars(query.limit(1) if last else query)
    return tuple({name: getattr(row, name) for name in names} for row in found)
