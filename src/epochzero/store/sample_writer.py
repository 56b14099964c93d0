"""Writes the new records of any number of ranks in a few statements.

All writes to the tables of jobs pass through this module: growing journals and completed attempts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.records.model import Conclusion, End, JobSnapshot, Note, Record, Start, to_dict
from epochzero.store.bulk_insert import insert_each_once, insert_or_update, insert_rows
from epochzero.store.logs import Parts, forget_outputs, store_outputs
from epochzero.store.outcomes import sum_up
from epochzero.store.rows import Row, attempt_row, job_row, rank_row, rows_of
from epochzero.store.schema import AttemptRow, Base, JobRow, OutputRow, Rank
from epochzero.store.states import FINAL
from epochzero.store.teams import job_key


@dataclass(frozen=True, slots=True)
class New:
    """New records of one rank.

    Attributes:
        identity: of its journal.
        team: of the job.
        records: each with its sequence, the offset of the journal after it.
        start, end: offsets of the journal that they were read from.
        parts: the rank's logs.
    """

    identity: str
    team: str
    records: Sequence[tuple[int, Record]]
    start: int
    end: int
    parts: Parts

    @property
    def started(self) -> Start:
        """The first record of the rank.

        Raises:
            InputError: it is missing.
        """
        for _, record in self.records:
            if isinstance(record, Start):
                return record
        raise InputError(f"{self.identity}: the journal does not name its job")

    @property
    def shows_life(self) -> bool:
        """Whether the job itself is alive: silence does not mean that it ended, because networks recover."""
        return not all(isinstance(record, Note) for _, record in self.records)

    @property
    def changes_job(self) -> bool:
        """Whether the rows of the attempt and the job change too."""
        return any(isinstance(record, Start | End | Conclusion) for _, record in self.records)


def known_ranks(session: Session, identities: Collection[str]) -> dict[str, Rank]:
    """The existing ranks by ID, locked against concurrent changes."""
    query = select(Rank).where(Rank.journal.in_(identities)).order_by(Rank.journal)
    return {rank.journal: rank for rank in session.scalars(query.with_for_update())}


def write(session: Session, pieces: Sequence[New], known: Mapping[str, Rank]) -> set[str]:
    """Writes new records of ranks, and updates their attempts and jobs.

    Args:
        session: a writing session.
        pieces: ordered by ID, one per rank: two writers that wait for each other's rows would deadlock.
        known: the existing ranks.

    Returns:
        The IDs of the ranks that were written; other processes have written to the rest
        at the same time.

    Raises:
        InputError: a new rank does not name its job.
    """
    begun = _begin(session, [piece for piece in pieces if piece.identity not in known])
    ranks = {**known, **begun}
    added = [(ranks[piece.identity], piece) for piece in pieces]
    added = [(rank, sample) for rank, sample in added if rank.taken == sample.start]
    found_again = [rank for rank, sample in added if rank.state == "lost" and sample.shows_life]
    for rank in found_again:
        rank.state, rank.ended = "running", None
    if found_again:
        # They may have grown in the meantime.
        forget_outputs(session, [rank.id for rank in found_again])
    for rank, sample in added:
        _apply(rank, sample)
    rows = (
        row
        for rank, sample in added
        for sequence, record in sample.records
        for row in rows_of(record, rank.id, sequence)
    )
    write_rows(session, rows)
    changed = [rank for rank, sample in added if sample.changes_job]
    sum_up(session, {rank.attempt_id for rank in (*changed, *found_again)})
    store_outputs(session, {rank.id: sample.parts for rank, sample in added if rank.state in FINAL})
    return {sample.identity for _, sample in added}


def write_rows(session: Session, rows: Iterable[Row]) -> None:
    """Adds rows of ranks, one statement per table. For logs, the last record counts."""
    tables: dict[type[Base], list[dict[str, Any]]] = defaultdict(list)
    for table, values in rows:
        tables[table].append(values)
    insert_or_update(session, OutputRow, ("rank_id", "name"), tables.pop(OutputRow, []))
    for table, found in tables.items():
        insert_rows(session, table, found)


def _begin(session: Session, pieces: Sequence[New]) -> dict[str, Rank]:
    """The rows of jobs, attempts and ranks, which other processes may create at the same time."""
    if not pieces:
        return {}
    begun = [(piece, piece.started, job_key(piece.team, piece.started.job)) for piece in pieces]
    insert_each_once(session, JobRow, [job_row(job, s.team, start) for s, start, job in begun])
    insert_each_once(session, AttemptRow, [attempt_row(job, start) for _, start, job in begun])
    attempts = {
        (job, number): attempt_id
        for job, number, attempt_id in session.execute(
            select(AttemptRow.job_id, AttemptRow.number, AttemptRow.id).where(
                AttemptRow.job_id.in_({job for _, _, job in begun})
            )
        )
    }
    ranks = [rank_row(attempts[job, start.attempt], s.identity, start) for s, start, job in begun]
    insert_each_once(session, Rank, ranks)
    return known_ranks(session, [piece.identity for piece in pieces])


def _apply(rank: Rank, new: New) -> None:
    """Applies records to the row of their rank."""
    rank.taken = new.end
    for _, record in new.records:
        rank.heartbeat = max(rank.heartbeat, record.time)
        if isinstance(record, JobSnapshot):
            rank.snapshot, rank.commit = to_dict(record), record.commit
        elif isinstance(record, End):
            # The system's clock may have been changed; the cost of a job must not depend on it.
            rank.ended = rank.started + record.elapsed
            rank.exit_code, rank.signal = record.exit_code, record.signal
            rank.why = record.why
            rank.state = _state(record)


def _state(ended: End) -> str:
    if ended.exit_code == 0:
        return "succeeded"
    return {"user": "cancelled", "another_rank": "ended"}.get(ended.why, "failed")
