"""What is thrown away: logs and samples of old jobs first, the jobs themselves on request."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Select, delete, func, select

from epochzero.errors import InputError
from epochzero.run.journal import NAME
from epochzero.store.database import Database
from epochzero.store.logs import forget_outputs
from epochzero.store.recorder import THIS_MACHINE, Origin, identity_of
from epochzero.store.schema import AttemptRow, Chunk, JobRow, Output, OutputChunk, Rank, Sample
from epochzero.store.states import FINAL


class RunningError(InputError):
    """A job that runs cannot be thrown away: what it writes next would bring it back."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was thrown away: jobs touched, bytes of compressed logs."""

    jobs: int
    log_bytes: int


def prune(
    database: Database,
    *,
    before: float,
    keep_failed: bool = False,
    whole: bool = False,
    pretend: bool = False,
) -> Pruned:
    """Throws away the logs and samples of jobs that ended long ago.

    Args:
        database: the store.
        before: jobs that ended before, in seconds since the epoch.
        keep_failed: leaves jobs that did not succeed as they are.
        whole: throws away the jobs themselves too, with all that is known of them. Their folders
            must be gone before (`prune_folders`): what is there is taken in again.
        pretend: only says what it would throw away.

    Raises:
        StoreError: the store cannot be written.
    """
    states = ("succeeded",) if keep_failed else tuple(FINAL)
    old = select(JobRow.id).where(JobRow.ended < before, JobRow.state.in_(states))
    ranks = select(Rank.id).join(AttemptRow).where(AttemptRow.job_id.in_(old))
    with database.write() as session:
        jobs = session.scalar(select(func.count()).select_from(old.subquery())) or 0
        forget_outputs(session, ranks)
        session.execute(delete(Sample).where(Sample.rank_id.in_(ranks)))
        orphans = Chunk.digest.not_in(select(OutputChunk.digest))
        size = session.scalar(select(func.sum(func.length(Chunk.data))).where(orphans)) or 0
        session.execute(delete(Chunk).where(orphans))
        if whole:
            session.execute(delete(JobRow).where(JobRow.id.in_(old)))
        if pretend:
            session.rollback()
    return Pruned(jobs, size)


def prune_folders(
    database: Database, runs: Path, *, before: float, origin: Origin = THIS_MACHINE
) -> int:
    """Removes the folders of attempts that the store has whole.

    Args:
        database: the store.
        runs: folder of the runs.
        before: attempts that ended, and whose journals were last written by the clock here, before;
            in seconds since the epoch. A job's own clock may be wrong.
        origin: where they come from.

    Returns:
        How many were removed.

    Raises:
        StoreError: the database does not answer.
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
    """The rank of a journal of which the store has all, if it has ended."""
    return select(Rank.id).where(
        Rank.journal == identity_of(journal, origin),
        Rank.state.in_(FINAL),
        Rank.taken >= size,
    )


def stored(database: Database, journals: Iterable[Path], origin: Origin) -> Sequence[Path]:
    """Those of some journals whose attempts have ended and are in the store whole, with their logs.

    One that was lost is not among them: its sender may come back and continue.

    Raises:
        StoreError: the database does not answer.
    """
    left_out = select(Output.id).where(Output.rank_id == Rank.id, Output.stored.is_(None))
    found = []
    with database.read() as session:
        for journal in journals:
            with suppress(FileNotFoundError):
                whole = _whole(journal, origin, journal.stat().st_size)
                if session.scalar(whole.where(Rank.state != "lost", ~left_out.exists())):
                    found.append(journal)
    return found


def delete_job(database: Database, identity: str, origin: Origin = THIS_MACHINE) -> None:
    """Throws away a job: its folders on this machine, its logs, and all that is known of it.

    Parts of its logs that other jobs have too stay theirs.

    Args:
        database: the store.
        identity: of the job.
        origin: where it comes from.

    Raises:
        RunningError: it has not ended.
        InputError: there is no such job, or a folder of it cannot be removed.
        StoreError: the store cannot be written.
    """
    ranks = select(Rank.id).join(AttemptRow).where(AttemptRow.job_id == identity)
    with database.read() as session:
        state = session.scalar(select(JobRow.state).where(JobRow.id == identity))
        journals = session.scalars(select(Rank.journal).where(Rank.id.in_(ranks))).all()
    if state is None:
        raise InputError(f"{identity}: there is no such job")
    if state not in FINAL:
        raise RunningError(f"{identity}: the job still runs: end it first")
    _remove_folders(journals, origin)
    with database.write() as session:
        outputs = select(Output.id).where(Output.rank_id.in_(ranks))
        parts = select(OutputChunk.digest).where(OutputChunk.output_id.in_(outputs)).distinct()
        digests = session.scalars(parts).all()
        session.execute(delete(JobRow).where(JobRow.id == identity))
        others = select(OutputChunk.digest).where(OutputChunk.digest == Chunk.digest)
        for digest in digests:
            session.execute(delete(Chunk).where(Chunk.digest == digest, ~others.exists()))


def _remove_folders(journals: Sequence[str], origin: Origin) -> None:
    """First of all: a journal that is still there would be taken in again."""
    for identity in journals:
        place, _, path = identity.partition(":")
        journal = Path(path)
        if place not in (socket.gethostname(), origin.place) or journal.name != NAME:
            continue
        job = journal.parent.parent
        shutil.rmtree(job, ignore_errors=True)
        if job.exists():
            raise InputError(f"{job}: cannot be removed; nothing else of the job was thrown away")
