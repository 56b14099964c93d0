"""All data about one job: its attempts, ranks, logs and use of the machine.

Results are immutable values; ``docs/store.md`` describes their JSON form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Integer, cast, func, select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.records.output import logs_in
from epochzero.store import schema
from epochzero.store.database import Database
from epochzero.store.logs import chunks_of, read_output
from epochzero.store.queries import JobSummary, summaries
from epochzero.store.recorder import journal_of
from epochzero.store.states import FINAL

SCHEMA = "epochzero.job/1"
_Sequenced = (
    type[schema.ProgressRow]
    | type[schema.EventRow]
    | type[schema.DecisionRow]
    | type[schema.NoteRow]
)
_Row = TypeVar("_Row", schema.FailureRow, schema.FindingRow, schema.RankedPlace, schema.OutputRow)


@dataclass(frozen=True, slots=True)
class StoredLog:
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
        progress: its last progress, in the JSON form of `epochzero.run.records.model.JobProgress` without ``kind``.
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
    logs: tuple[StoredLog, ...] = ()


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


def job_details(database: Database, identity: str, *, team: str | None = None) -> JobDetails:
    """All data about a job.

    Args:
        identity: ID of the job.
        team: required team of the job; None for any.

    Raises:
        InputError: no such job, or it belongs to another team.
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
            summary=summaries(session, [job])[0],
            command=tuple(job.command),
            folder=job.folder,
            world_size=job.world_size,
            scheduler=job.scheduler,
            attempts=tuple(_attempt(session, attempt) for attempt in attempts),
        )


def usage(database: Database, rank_id: int, *, points: int = 60) -> list[Usage]:
    """The resource usage of a rank over time, in a maximum number of equal intervals."""
    samples = schema.SampleRow
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
    """The run directories of a job's last attempt, which may have been deleted."""
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
        identity: ID of the job.
        attempt: number of the attempt; None for the last.
        name: of the log, such as ``output``.
        rank_id: row of the rank that wrote it; None for the first that has one.
        text: transforms a part of a log that is not redacted yet.

    Raises:
        InputError: the job has no such log, or it is not stored or was pruned.
    """
    with database.read() as session:
        there: list[str] = []
        for rank in _ranks(session, identity, attempt):
            if rank_id not in (None, rank.id):
                continue
            outputs = _rows(session, schema.OutputRow, rank, schema.OutputRow.id)
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
    failures = _rows(session, schema.FailureRow, rank, schema.FailureRow.id)
    findings = _rows(session, schema.FindingRow, rank, schema.FindingRow.id)
    places = _rows(session, schema.RankedPlace, rank, schema.RankedPlace.position)
    outputs = _rows(session, schema.OutputRow, rank, schema.OutputRow.id)
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
        findings=tuple(row.finding for row in findings),
        ranking=tuple(row.item for row in places),
        events=_dicts(session, schema.EventRow, rank),
        decisions=_dicts(session, schema.DecisionRow, rank),
        notes=_dicts(session, schema.NoteRow, rank),
        logs=tuple(StoredLog(log.name, log.size, log.dropped, log.stored) for log in outputs),
    )


def _rows(session: Session, table: type[_Row], rank: schema.Rank, order: Any) -> Sequence[_Row]:
    """The rows of a rank in a table."""
    return session.scalars(select(table).where(table.rank_id == rank.id).order_by(order)).all()


def _dicts(
    session: Session, table: _Sequenced, rank: schema.Rank, *, last: bool = False
) -> tuple[dict[str, Any], ...]:
    """The rows of a rank in a table, without their foreign keys."""
    order = table.sequence.desc() if last else table.sequence
    query = select(table).where(table.rank_id == rank.id).order_by(order)
    names = [c.name for c in table.__table__.columns if c.name not in ("rank_id", "sequence")]
    found = session.scalars(query.limit(1) if last else query)
    return tuple({name: getattr(row, name) for name in names} for row in found)
