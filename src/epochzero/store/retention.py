"""Deletes old data: first logs and samples, and on request the jobs themselves."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, Select, delete, exists, func, select

from epochzero.errors import InputError
from epochzero.run.records.journal import NAME
from epochzero.store.database import Database
from epochzero.store.logs import forget_outputs
from epochzero.store.recorder import THIS_MACHINE, Origin, identity_of
from epochzero.store.schema import (
    AttemptRow,
    Chunk,
    FailureText,
    JobRow,
    OutputChunk,
    OutputRow,
    Rank,
    SampleRow,
)  # fmt: skip
from epochzero.store.states import FINAL


class RunningError(InputError):
    """A running job cannot be deleted: its next records would restore it."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted: number of jobs, and bytes of compressed logs."""

    jobs: int
    log_bytes: int


def prune(
    database: Database,
    *,
    before: float,
    keep_failed: bool = False,
    whole: bool = False,
    pretend: bool = False,
    team: str | None = None,
) -> Pruned:
    """Deletes the logs and samples of old jobs.

    Args:
        before: only jobs that ended before this time, in seconds since the epoch.
        keep_failed: skips jobs that did not succeed.
        whole: also delete the jobs and all their records. Their directories
            must be deleted first (`prune_folders`), or their journals are imported again.
        pretend: only returns what would be deleted.
        team: only jobs of this team; None for all.
    """
    states = ("succeeded",) if keep_failed else tuple(FINAL)
    old = select(JobRow.id).where(JobRow.ended < before, JobRow.state.in_(states))
    if team is not None:
        old = old.where(JobRow.team == team)
    ranks = select(Rank.id).join(AttemptRow).where(AttemptRow.job_id.in_(old))
    with database.write() as session:
        jobs = session.scalar(select(func.count()).select_from(old.subquery())) or 0
        forget_outputs(session, ranks)
        session.execute(delete(SampleRow).where(SampleRow.rank_id.in_(ranks)))
        orphans = Chunk.digest.not_in(select(OutputChunk.digest))
        size = session.scalar(select(func.sum(func.length(Chunk.data))).where(orphans)) or 0
        session.execute(delete(Chunk).where(orphans))
        if whole:
            session.execute(delete(JobRow).where(JobRow.id.in_(old)))
            session.execute(delete(FailureText).where(~_is_used()))
        if pretend:
            session.rollback()
    return Pruned(jobs, size)


def prune_folders(
    database: Database, runs: Path, *, before: float, origin: Origin = THIS_MACHINE
) -> int:
    """Deletes the directories of attempts that are completely stored.

    Args:
        runs: the runs directory.
        before: only attempts that ended before this time and whose journals were last modified before it by the
            local clock, in seconds since the epoch. A job's own clock may be wrong.
        origin: source of the journals.

    Returns:
        Number of deleted directories.
    """
    count = 0
    with database.read() as session:
        for journal in runs.glob(f"*/*/{NAME}"):
            status = journal.stat()
            if status.st_mtime >= before:
                continue
            whole = _whole(journal, origin, status.st_size)
            if session.scalar(whole) is not None:
                shutil.rmtree(journal.parent, ignore_errors=True)
                count += 1
    return count


def _whole(journal: Path, origin: Origin, size: int) -> Select[int]:
    """The rank of a completely imported journal, if it has ended."""
    return select(Rank.id).where(
        Rank.journal == identity_of(journal, origin),
        Rank.state.in_(FINAL),
        Rank.taken >= size,
    )


def stored(database: Database, journals: Iterable[Path], origin: Origin) -> Mapping[Path, int]:
    """The given journals whose attempts have ended and are completely stored, including logs, with their sizes.

    Lost attempts are excluded: their sender may return and continue.
    """
    left_out = select(OutputRow.id).where(OutputRow.rank_id == Rank.id, OutputRow.stored.is_(None))
    found = {}
    with database.read() as session:
        for journal in journals:
            with suppress(FileNotFoundError):
                size = journal.stat().st_size
                whole = _whole(journal, origin, size)
                if session.scalar(whole.where(Rank.state != "lost", ~left_out.exists())):
                    found[journal] = size
    return found


def delete_job(database: Database, identity: str, origin: Origin = THIS_MACHINE) -> None:
    """Deletes a job: its local directories, its logs, and all its records.

    Parts of its logs that other jobs share remain.

    Raises:
        RunningError: the job has not ended.
        InputError: no such job, or one of its directories cannot be removed.
    """
    ranks = select(Rank.id).join(AttemptRow).where(AttemptRow.job_id == identity)
    with database.read() as session:
        state = session.scalar(select(JobRow.state).where(JobRow.id == identity))
        journals = session.scalars(select(Rank.journal).where(Rank.id.in_(ranks))).all()
    if state is None:
        raise InputError(f"{identity}: no such job")
    if state not in FINAL:
        raise RunningError(f"{identity}: the job is still running; stop it first")
    _remove_folders(journals, origin)
    with database.write() as session:
        outputs = select(OutputRow.id).where(OutputRow.rank_id.in_(ranks))
        parts = select(OutputChunk.digest).where(OutputChunk.output_id.in_(outputs)).distinct()
        digests = session.scalars(parts).all()
        text = session.scalar(select(JobRow.text_id).where(JobRow.id == identity))
        session.execute(delete(JobRow).where(JobRow.id == identity))
        session.execute(delete(FailureText).where(FailureText.id == text, ~_is_used()))
        others = select(OutputChunk.digest).where(OutputChunk.digest == Chunk.digest)
        for digest in digests:
            session.execute(delete(Chunk).where(Chunk.digest == digest, ~others.exists()))


def _is_used() -> ColumnElement[bool]:
    """Condition that a job has a searchable text."""
    return exists().where(JobRow.team == FailureText.team, JobRow.text_id == FailureText.id)


def _remove_folders(journals: Sequence[str], origin: Origin) -> None:
    """Called first: an existing journal would be imported again."""
    for identity in journals:
        place, _, path = identity.partition(":")
        journal = Path(path)
        if place not in (socket.gethostname(), origin.place) or journal.name != NAME:
            continue
        job = journal.parent.parent
        shutil.rmtree(job, ignore_errors=True)
        if job.exists():
            raise InputError(f"{job} cannot be deleted; nothing of the job was deleted")
