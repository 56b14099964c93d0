"""What is thrown away: logs and samples of old jobs first, the jobs themselves on request."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, func, select, update

from epochzero.store.database import Database
from epochzero.store.recorder import identity_of
from epochzero.store.schema import Attempt, Chunk, Job, Output, OutputChunk, Rank, Sample
from epochzero.store.states import FINAL

__all__ = ["Pruned", "prune", "prune_folders"]


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
        whole: throws away the jobs themselves too, with all that is known of them.
        pretend: only says what it would throw away.

    Raises:
        StoreError: the store cannot be written.
    """
    states = ("succeeded",) if keep_failed else tuple(FINAL)
    old = select(Job.id).where(Job.ended < before, Job.state.in_(states))
    ranks = select(Rank.id).join(Attempt).where(Attempt.job_id.in_(old))
    with database.write() as session:
        jobs = session.scalar(select(func.count()).select_from(old.subquery())) or 0
        outputs = select(Output.id).where(Output.rank_id.in_(ranks))
        session.execute(delete(OutputChunk).where(OutputChunk.output_id.in_(outputs)))
        session.execute(update(Output).where(Output.rank_id.in_(ranks)).values(stored=None))
        session.execute(delete(Sample).where(Sample.rank_id.in_(ranks)))
        orphans = Chunk.digest.not_in(select(OutputChunk.digest))
        size = session.scalar(select(func.sum(func.length(Chunk.data))).where(orphans)) or 0
        session.execute(delete(Chunk).where(orphans))
        if whole:
            session.execute(delete(Job).where(Job.id.in_(old)))
        if pretend:
            session.rollback()
    return Pruned(jobs, size)


def prune_folders(database: Database, runs: Path, *, before: float) -> int:
    """Removes the folders of attempts of this machine that the store has whole.

    Args:
        database: the store.
        runs: folder of the runs.
        before: attempts that ended before, in seconds since the epoch.

    Returns:
        How many were removed.

    Raises:
        StoreError: the database does not answer.
    """
    done = select(Rank).where(Rank.state.in_(FINAL), Rank.ended < before)
    with database.read() as session:
        taken = {rank.journal: rank.taken for rank in session.scalars(done)}
    count = 0
    for journal in runs.glob("*/*/journal.jsonl"):
        if taken.get(identity_of(journal), -1) >= journal.stat().st_size:
            shutil.rmtree(journal.parent, ignore_errors=True)
            count += 1
    return count
