"""The tables: jobs, their attempts, the ranks of these, and what each rank left.

A rank here is what one supervisor watched: a rank or a node of a job, or the whole of it. Times are
seconds since the epoch, sizes bytes. JSON columns hold the documented JSON forms of the records.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, MetaData, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import BigInteger, Float, Integer, String, Text

__all__ = [
    "REVISION",
    "Attempt",
    "Base",
    "Chunk",
    "Decision",
    "Event",
    "Failure",
    "Finding",
    "Job",
    "Note",
    "Output",
    "OutputChunk",
    "Progress",
    "Rank",
    "RankedPlace",
    "Sample",
]

REVISION = "0001"
"""The newest migration; the store must be at this one."""

_JSON = JSON().with_variant(JSONB(), "postgresql")
# SQLite counts rows by itself only in a column that is exactly INTEGER.
_ID = BigInteger().with_variant(Integer(), "sqlite")


class Base(DeclarativeBase):
    """Gives every constraint a name, so that a migration can speak of it."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy reads it from the class)
        dict[str, Any]: _JSON,
        list[str]: _JSON,
        int: BigInteger(),
        float: Float(53),
        str: Text(),
    }


class Job(Base):
    """A job; how its last attempt is or was, so that a listing reads one table."""

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str]
    command: Mapped[list[str]]
    folder: Mapped[str]
    user: Mapped[str] = mapped_column(index=True)
    host: Mapped[str]
    launcher: Mapped[str]
    target: Mapped[str]
    scheduler: Mapped[dict[str, Any]]
    world_size: Mapped[int | None]
    gpus: Mapped[int]
    started: Mapped[float] = mapped_column(index=True)
    ended: Mapped[float | None]
    state: Mapped[str] = mapped_column(index=True)
    attempts: Mapped[int]
    gpu_hours: Mapped[float]
    category: Mapped[str] = mapped_column(index=True)
    fingerprint: Mapped[str] = mapped_column(index=True)


class Attempt(Base):
    """One start of a job's command, on all its ranks."""

    __tablename__ = "attempts"
    __table_args__ = (UniqueConstraint("job_id", "number"),)

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    number: Mapped[int]
    started: Mapped[float]
    ended: Mapped[float | None]
    state: Mapped[str]
    exit_code: Mapped[int | None]
    gpu_hours: Mapped[float]


class Rank(Base):
    """What one supervisor watched.

    Attributes:
        journal: ``host:path`` of its journal, its identity.
        taken: bytes of the journal that are in the store.
        heartbeat: time of its last record.
        driver, cuda, python, commit, ...: of its snapshot.
    """

    __tablename__ = "ranks"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    attempt_id: Mapped[int] = mapped_column(
        ForeignKey("attempts.id", ondelete="CASCADE"), index=True
    )
    rank: Mapped[int | None]
    host: Mapped[str]
    pid: Mapped[int]
    journal: Mapped[str] = mapped_column(unique=True)
    taken: Mapped[int]
    heartbeat: Mapped[float]
    started: Mapped[float]
    ended: Mapped[float | None]
    state: Mapped[str] = mapped_column(index=True)
    exit_code: Mapped[int | None]
    signal: Mapped[int | None]
    why: Mapped[str]
    commit: Mapped[str]
    snapshot: Mapped[dict[str, Any]]


class Failure(Base):
    """The diagnosis of a rank's end."""

    __tablename__ = "failures"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    rank_id: Mapped[int] = mapped_column(ForeignKey("ranks.id", ondelete="CASCADE"), index=True)
    time: Mapped[float]
    fingerprint: Mapped[str] = mapped_column(index=True)
    category: Mapped[str] = mapped_column(index=True)
    dimension: Mapped[str]
    root_cause: Mapped[str]
    phase: Mapped[str]
    retry: Mapped[str]
    confidence: Mapped[float]
    gpu_hours: Mapped[float]
    title: Mapped[str]
    root_text: Mapped[str]
    root_rank: Mapped[int | None]
    diagnosis: Mapped[dict[str, Any]]


class Finding(Base):
    """What a check says, or would have said, of a job."""

    __tablename__ = "findings"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    rank_id: Mapped[int] = mapped_column(ForeignKey("ranks.id", ondelete="CASCADE"), index=True)
    rule: Mapped[str] = mapped_column(index=True)
    severity: Mapped[str]
    category: Mapped[str]
    path: Mapped[str]
    line: Mapped[int | None]
    message: Mapped[str]
    finding: Mapped[dict[str, Any]]


class RankedPlace(Base):
    """A place where the bug of a failure may be, the likeliest first."""

    __tablename__ = "rankings"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    rank_id: Mapped[int] = mapped_column(ForeignKey("ranks.id", ondelete="CASCADE"), index=True)
    position: Mapped[int]
    path: Mapped[str]
    score: Mapped[float]
    item: Mapped[dict[str, Any]]


class Sample(Base):
    """What a rank's processes and node used at one moment (`epochzero.run.model.Sample`)."""

    __tablename__ = "samples"

    rank_id: Mapped[int] = mapped_column(
        ForeignKey("ranks.id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    elapsed: Mapped[float]
    processes: Mapped[int]
    cpu_percent: Mapped[float]
    memory_bytes: Mapped[int]
    memory_available_bytes: Mapped[int]
    read_bytes: Mapped[int]
    written_bytes: Mapped[int]
    disk_free_bytes: Mapped[int]
    received_bytes: Mapped[int]
    sent_bytes: Mapped[int]
    gpu_percent: Mapped[float | None]
    gpu_memory_bytes: Mapped[int | None]
    gpus: Mapped[dict[str, Any] | None] = mapped_column(_JSON)


class Progress(Base):
    """How far a rank was (`epochzero.run.model.Progress`)."""

    __tablename__ = "progress"

    rank_id: Mapped[int] = mapped_column(
        ForeignKey("ranks.id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    elapsed: Mapped[float]
    step: Mapped[int | None]
    steps: Mapped[int | None]
    epoch: Mapped[float | None]
    epochs: Mapped[float | None]
    checkpoint: Mapped[str]
    loss: Mapped[float | None]


class Event(Base):
    """Something that happened (`epochzero.run.model.Event`)."""

    __tablename__ = "events"

    rank_id: Mapped[int] = mapped_column(
        ForeignKey("ranks.id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    elapsed: Mapped[float]
    what: Mapped[str]
    text: Mapped[str]
    rank: Mapped[int | None]
    details: Mapped[dict[str, Any]]


class Decision(Base):
    """Whether a job was started again (`epochzero.run.model.Decision`)."""

    __tablename__ = "decisions"

    rank_id: Mapped[int] = mapped_column(
        ForeignKey("ranks.id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    action: Mapped[str]
    after: Mapped[float]
    reason: Mapped[str]
    policy: Mapped[str]
    avoid: Mapped[list[str]]
    saved_gpu_hours: Mapped[float]


class Note(Base):
    """A remark of a person or of another tool."""

    __tablename__ = "notes"

    rank_id: Mapped[int] = mapped_column(
        ForeignKey("ranks.id", ondelete="CASCADE"), primary_key=True
    )
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    author: Mapped[str]
    text: Mapped[str]


class Output(Base):
    """A log of a rank.

    Attributes:
        paths: its parts, in the folder of the journal.
        size, dropped: bytes that were written in all, and those of them that were not kept.
        stored: bytes in the chunks; None as long as the attempt runs, and after pruning.
    """

    __tablename__ = "outputs"
    __table_args__ = (UniqueConstraint("rank_id", "name"),)

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    rank_id: Mapped[int] = mapped_column(ForeignKey("ranks.id", ondelete="CASCADE"))
    name: Mapped[str]
    paths: Mapped[list[str]]
    size: Mapped[int]
    dropped: Mapped[int]
    stored: Mapped[int | None]


class Chunk(Base):
    """A part of logs, compressed; equal parts are kept once."""

    __tablename__ = "chunks"

    digest: Mapped[str] = mapped_column(String(32), primary_key=True)
    size: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)


class OutputChunk(Base):
    """Which chunks a log is made of, in order."""

    __tablename__ = "output_chunks"
    __table_args__ = (Index(None, "digest"),)

    output_id: Mapped[int] = mapped_column(
        ForeignKey("outputs.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(32), ForeignKey("chunks.digest"))
