"""The tables: jobs, attempts, ranks and their records; teams with their tokens and settings.

A rank is the part of a job that one supervisor watches: a rank, a node, or the whole job. Times are in
seconds since the epoch, sizes in bytes. JSON columns contain the documented JSON forms of the records.
"""

from __future__ import annotations

from typing import Annotated, Any

from sqlalchemy import (
    JSON,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    UniqueConstraint,
    func,
    literal_column,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import BigInteger, Float, Integer, String, Text

REVISION = "0008"
"""The newest migration; the store must be at this revision."""

_JSON = JSON().with_variant(JSONB(), "postgresql")
# SQLite generates row IDs only in a column that is exactly INTEGER.
_ID = BigInteger().with_variant(Integer(), "sqlite")
_OfRank = Annotated[
    int, mapped_column(ForeignKey("ranks.id", ondelete="CASCADE"), primary_key=True)
]


class Base(DeclarativeBase):
    """Names every constraint, so that migrations can refer to it."""

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


class JobRow(Base):
    """A job with the state of its last attempt, so that a list reads one table.

    Attributes:
        id: prefixed with the team for jobs of a team (`epochzero.store.teams.job_key`).
        team: team in a server; empty for local jobs.
        title: short description of the failure.
        wasted_gpu_hours: of attempts after the first that failed too.
        checked: 1 if it failed and its unchanged code was checked, else 0.
        caught: 1 if that check predicted the failure, else 0.
        text_id: the searchable text of its failure (`FailureText`); None for none.
        partition, image: of the scheduler and of its container, if known.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        # Indexes for the server's pages: each starts with the team and ends with a sort order.
        Index(
            "ix_jobs_counts",
            *("team", "started", "state", "category", "fingerprint"),
            *("gpu_hours", "wasted_gpu_hours", "caught", "checked"),
        ),
        Index("ix_jobs_newest", "team", "started", "id", "name", "fingerprint", "text_id"),
        Index("ix_jobs_costliest", "team", "gpu_hours", "id"),
        *(
            Index(f"ix_jobs_of_{name}", "team", name, "started", "id")
            for name in ("state", "category", "user", "host", "target")
        ),
        Index("ix_jobs_of_text", "team", "text_id"),
        Index("ix_jobs_of_fingerprint", "team", "fingerprint", "started", "gpu_hours"),
        Index("ix_jobs_of_name", "team", "name", "started", "id"),
    )

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
    team: Mapped[str] = mapped_column(default="", server_default="")
    title: Mapped[str] = mapped_column(default="", server_default="")
    wasted_gpu_hours: Mapped[float] = mapped_column(default=0.0, server_default="0")
    caught: Mapped[int] = mapped_column(default=0, server_default="0")
    checked: Mapped[int] = mapped_column(default=0, server_default="0")
    text_id: Mapped[int | None]
    partition: Mapped[str] = mapped_column(default="", server_default="")
    image: Mapped[str] = mapped_column(default="", server_default="")


class AttemptRow(Base):
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
    """The part of a job that one supervisor watches.

    Attributes:
        journal: ``host:path`` of its journal, which identifies it.
        taken: number of imported bytes of the journal.
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


class FailureRow(Base):
    """The diagnosis of a rank; ``checked`` is 1 if its unchanged code was checked."""

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
    checked: Mapped[int] = mapped_column(default=0, server_default="0")


class FailureText(Base):
    """The words of failures, for search; jobs that failed with the same words share one row.

    Attributes:
        fingerprint: empty for failures without one.
        words: lowercase words, separated by spaces (`epochzero.store.search.words_of`).
    """

    __tablename__ = "failure_texts"
    __table_args__ = (
        UniqueConstraint("team", "digest"),
        Index(
            "ix_failure_texts_words",
            func.to_tsvector(literal_column("'simple'::regconfig"), literal_column("words")),
            postgresql_using="gin",
        ).ddl_if(dialect="postgresql"),
    )

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    team: Mapped[str] = mapped_column(String(20))
    fingerprint: Mapped[str]
    digest: Mapped[str] = mapped_column(String(32))
    words: Mapped[str]


class FindingRow(Base):
    """A finding of check for a job."""

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
    """A likely location of the bug behind a failure, most likely first."""

    __tablename__ = "rankings"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    rank_id: Mapped[int] = mapped_column(ForeignKey("ranks.id", ondelete="CASCADE"), index=True)
    position: Mapped[int]
    path: Mapped[str]
    score: Mapped[float]
    item: Mapped[dict[str, Any]]


class SampleRow(Base):
    """Resource usage of a rank's processes and node at one time (`epochzero.run.records.model.Sample`)."""

    __tablename__ = "samples"

    rank_id: Mapped[_OfRank]
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


class ProgressRow(Base):
    """Progress of a rank (`epochzero.run.records.model.JobProgress`)."""

    __tablename__ = "progress"

    rank_id: Mapped[_OfRank]
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    elapsed: Mapped[float]
    step: Mapped[int | None]
    steps: Mapped[int | None]
    epoch: Mapped[float | None]
    epochs: Mapped[float | None]
    checkpoint: Mapped[str]
    loss: Mapped[float | None]


class EventRow(Base):
    """An event (`epochzero.run.records.model.JobEvent`)."""

    __tablename__ = "events"

    rank_id: Mapped[_OfRank]
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    elapsed: Mapped[float]
    what: Mapped[str]
    text: Mapped[str]
    rank: Mapped[int | None]
    details: Mapped[dict[str, Any]]


class DecisionRow(Base):
    """A retry decision (`epochzero.run.records.model.Decision`)."""

    __tablename__ = "decisions"

    rank_id: Mapped[_OfRank]
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    action: Mapped[str]
    after: Mapped[float]
    reason: Mapped[str]
    policy: Mapped[str]
    avoid: Mapped[list[str]]
    saved_gpu_hours: Mapped[float]
    risked_gpu_hours: Mapped[float] = mapped_column(default=0.0, server_default="0")


class NoteRow(Base):
    """A note of a person or of another tool."""

    __tablename__ = "notes"

    rank_id: Mapped[_OfRank]
    sequence: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float]
    author: Mapped[str]
    text: Mapped[str]


class OutputRow(Base):
    """A log of a rank.

    Attributes:
        paths: its files, in the directory of the journal.
        size, dropped: bytes written in total, and the number of these that were dropped.
        stored: bytes in the chunks; None while the attempt runs, and after pruning.
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
    """A compressed part of logs; equal parts are stored once."""

    __tablename__ = "chunks"

    digest: Mapped[str] = mapped_column(String(32), primary_key=True)
    size: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)


class OutputChunk(Base):
    """The chunks of a log, in order."""

    __tablename__ = "output_chunks"
    __table_args__ = (Index(None, "digest"),)

    output_id: Mapped[int] = mapped_column(
        ForeignKey("outputs.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(32), ForeignKey("chunks.digest"))


class Team(Base):
    """A group that shares jobs in a server."""

    __tablename__ = "teams"

    name: Mapped[str] = mapped_column(String(20), primary_key=True)
    created: Mapped[float]


class Token(Base):
    """Access token of a person or program; the token itself is not stored.

    Attributes:
        name: of the person or machine.
        role: reader, writer or admin.
        digest: SHA-256 of the token.
        expires: None for never.
    """

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    team: Mapped[str] = mapped_column(String(20))
    name: Mapped[str]
    role: Mapped[str]
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created: Mapped[float]
    expires: Mapped[float | None]
    revoked: Mapped[float | None]


class SignIn(Base):
    """A browser session started with a token.

    Attributes:
        digest: SHA-256 of its cookie.
        csrf: the token of its forms.
    """

    __tablename__ = "sessions"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    csrf: Mapped[str]
    created: Mapped[float]
    expires: Mapped[float]


class AuditEntry(Base):
    """An entry of the audit log."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "team", "time"),)

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    time: Mapped[float]
    team: Mapped[str]
    who: Mapped[str]
    action: Mapped[str]
    object: Mapped[str]
    address: Mapped[str]


class WebhookRule(Base):
    """Condition under which a team is notified of a failure.

    Attributes:
        what: new_fingerprint or gpu_hours.
        hours: minimum GPU hours, for gpu_hours.
    """

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    team: Mapped[str] = mapped_column(String(20), index=True)
    url: Mapped[str]
    what: Mapped[str]
    hours: Mapped[float | None]
    created: Mapped[float]


class Delivery(Base):
    """A pending or completed notification of a failed attempt.

    Attributes:
        identity: lets its receiver detect duplicates.
        tried: number of delivery attempts.
        due: time of the next attempt; None if none follows.
    """

    __tablename__ = "deliveries"

    job_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True
    )
    attempt: Mapped[int] = mapped_column(primary_key=True)
    rule_id: Mapped[int] = mapped_column(
        _ID, ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True
    )
    team: Mapped[str] = mapped_column(String(20))
    identity: Mapped[str] = mapped_column(String(32))
    tried: Mapped[int]
    due: Mapped[float | None] = mapped_column(index=True)


class KnownFailure(Base):
    """An issue: what a team knows about the failures with one fingerprint, created with the first of them.

    Attributes:
        resolution: how it was resolved; empty if it never was.
        resolved: when; None if it is open.
        resolved_commit: commit or version with the fix; jobs of earlier code do not reopen it.
        merged_into: the fingerprint that it is merged into; empty for none.
        owner: who works on it; empty for nobody.
        first_seen, first_job, first_commit: of the first job that failed this way, even if that job was deleted.
        regressed, regressed_job: when and by which job it was reopened; None if it was not.
        ignored_until: until when it is hidden; None if it is not.
    """

    __tablename__ = "known_failures"
    __table_args__ = (Index(None, "team", "merged_into"), Index(None, "team", "owner"))

    team: Mapped[str] = mapped_column(String(20), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    resolution: Mapped[str] = mapped_column(default="")
    resolved_by: Mapped[str] = mapped_column(default="")
    resolved: Mapped[float | None]
    resolved_commit: Mapped[str] = mapped_column(default="", server_default="")
    merged_into: Mapped[str] = mapped_column(default="")
    owner: Mapped[str] = mapped_column(default="", server_default="")
    first_seen: Mapped[float | None]
    first_job: Mapped[str] = mapped_column(default="", server_default="")
    first_commit: Mapped[str] = mapped_column(default="", server_default="")
    regressed: Mapped[float | None]
    regressed_job: Mapped[str] = mapped_column(default="", server_default="")
    ignored_until: Mapped[float | None]


class OwnerRule(Base):
    """Assigns new issues of a team to an owner.

    Attributes:
        kind: path, user or partition.
        pattern: glob, such as ``models/vit/*``.
    """

    __tablename__ = "owner_rules"

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    team: Mapped[str] = mapped_column(String(20), index=True)
    kind: Mapped[str]
    pattern: Mapped[str]
    owner: Mapped[str]


class SavedSearch(Base):
    """A named search of a team: a page and its query string."""

    __tablename__ = "saved_searches"

    team: Mapped[str] = mapped_column(String(20), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    address: Mapped[str]
    author: Mapped[str]


class KnownFailureNote(Base):
    """A person's note on the failures with one fingerprint."""

    __tablename__ = "known_failure_notes"
    __table_args__ = (Index(None, "team", "fingerprint"),)

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    team: Mapped[str] = mapped_column(String(20))
    fingerprint: Mapped[str]
    time: Mapped[float]
    author: Mapped[str]
    text: Mapped[str]


# Can be recomputed at any time (`epochzero.store.daily_counts`), so backups omit it.
_COUNTED: dict[str, Any] = {"sqlite_with_rowid": False, "info": {"derived": True}}


class Counted(Base):
    """Marks days of a team as summed.

    Attributes:
        days: 1, `epochzero.store.daily_counts.BLOCK`, or of a window of recent days.
        day: number of the first day since the epoch.
    """

    __tablename__ = "counted"
    __table_args__ = (_COUNTED,)

    team: Mapped[str] = mapped_column(primary_key=True)
    days: Mapped[int] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True)


class StaleDay(Base):
    """A summed day with jobs that arrived, changed or were deleted since; written by a trigger."""

    __tablename__ = "stale_days"
    __table_args__ = (Index(None, "team", "day"), {"info": {"derived": True}})

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    team: Mapped[str]
    day: Mapped[int]


class DayCount(Base):
    """The jobs that started on one day with the same state and category.

    Attributes:
        caught_gpu_hours: of jobs whose failure their check predicted.
        last: start of the last of them.
    """

    __tablename__ = "day_counts"
    __table_args__ = (_COUNTED,)

    team: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(primary_key=True)
    category: Mapped[str] = mapped_column(primary_key=True)
    target: Mapped[str] = mapped_column(primary_key=True)
    jobs: Mapped[int]
    gpu_hours: Mapped[float]
    wasted_gpu_hours: Mapped[float]
    caught: Mapped[int]
    caught_gpu_hours: Mapped[float]
    checked: Mapped[int] = mapped_column(default=0, server_default="0")
    last: Mapped[float]


class FailureCount(Base):
    """The jobs that started on one or several days and failed with one fingerprint.

    Attributes:
        days, day: as in `Counted`.
        first, last: start of the first and of the last of them.
    """

    __tablename__ = "failure_counts"
    __table_args__ = (_COUNTED,)

    team: Mapped[str] = mapped_column(primary_key=True)
    days: Mapped[int] = mapped_column(primary_key=True)
    day: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    category: Mapped[str] = mapped_column(primary_key=True)
    jobs: Mapped[int]
    gpu_hours: Mapped[float]
    first: Mapped[float]
    last: Mapped[float]
