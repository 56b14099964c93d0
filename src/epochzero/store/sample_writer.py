"""Writes what is new of any number of ranks, in a few statements for all of them.

The one way into the tables of jobs: for a journal that grows, and for many attempts that are over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.model import Concluded, Ended, Note, Record, Snapshot, Started, to_dict
from epochzero.store.bulk_insert import insert_each_once, insert_or_update, insert_rows
from epochzero.store.logs import Parts, forget_outputs, store_outputs
from epochzero.store.outcomes import sum_up
from epochzero.store.rows import Row, attempt_row, job_row, rank_row, rows_of
from epochzero.store.schema import AttemptRow, Base, JobRow, Output, Rank
from epochzero.store.states import FINAL
from epochzero.store.teams import job_key


@dataclass(frozen=True, slots=True)
class New:
    """What the store does not have yet of a rank.

    Attributes:
        identity: of its journal.
        team: whose.
        records: each with its sequence, the byte of the journal after it.
        start, end: the bytes of the journal that they were read from.
        parts: where its logs are.
    """

    identity: str
    team: str
    records: Sequence[tuple[int, Record]]
    start: int
    end: int
    parts: Parts

    @property
    def started(self) -> Started:
        """What the rank began with.

        Raises:
            InputError: it is not there.
        """
        for _, record in self.records:
            if isinstance(record, Started):
                return record
        raise InputError(f"{self.identity}: the journal does not say which job it is of")

    @property
    def shows_life(self) -> bool:
        """Whether the job itself is heard: silence is no end, a network that was away comes back."""
        return not all(isinstance(record, Note) for _, record in self.records)

    @property
    def changes_job(self) -> bool:
        """Whether the rows of the attempt and the job change too."""
        return any(isinstance(record, Started | Ended | Concluded) for _, record in self.records)


def known_ranks(session: Session, identities: Collection[str]) -> dict[str, Rank]:
    """The ranks that the store has, by their identities; nobody else changes them meanwhile."""
    query = select(Rank).where(Rank.journal.in_(identities)).order_by(Rank.journal)
    return {rank.journal: rank for rank in session.scalars(query.with_for_update())}


def write(session: Session, pieces: Sequence[New], known: Mapping[str, Rank]) -> set[str]:
    """Adds what is new of ranks to their rows and those below, and to their attempts and jobs.

    Args:
        session: that writes.
        pieces: in the order of their identities, one of each: two writers that waited for each
            other's rows would wait for ever.
        known: those that the store has.

    Returns:
        The identities of those that it was added of; the others somebody else has added to
        at this moment.

    Raises:
        InputError: one that the store does not have does not say which job it is of.
    """
    begun = _begin(session, [one for one in pieces if one.identity not in known])
    ranks = {**known, **begun}
    added = [(ranks[one.identity], one) for one in pieces]
    added = [(rank, one) for rank, one in added if rank.taken == one.start]
    found_again = [rank for rank, one in added if rank.state == "lost" and one.shows_life]
    for rank in found_again:
        rank.state, rank.ended = "running", None
    if found_again:
        forget_outputs(session, [rank.id for rank in found_again])  # They have grown meanwhile.
    for rank, one in added:
        _apply(rank, one)
    rows = (
        row
        for rank, one in added
        for sequence, record in one.records
        for row in rows_of(record, rank.id, sequence)
    )
    write_rows(session, rows)
    changed = [rank for rank, one in added if one.changes_job]
    sum_up(session, {rank.attempt_id for rank in (*changed, *found_again)})
    store_outputs(session, {rank.id: one.parts for rank, one in added if rank.state in FINAL})
    return {one.identity for _, one in added}


def write_rows(session: Session, rows: Iterable[Row]) -> None:
    """Adds rows below ranks, each table's at once. Of a log what is told last counts."""
    tables: dict[type[Base], list[dict[str, Any]]] = defaultdict(list)
    for table, values in rows:
        tables[table].append(values)
    insert_or_update(session, Output, ("rank_id", "name"), tables.pop(Output, []))
    for table, found in tables.items():
        insert_rows(session, table, found)


def _begin(session: Session, pieces: Sequence[New]) -> dict[str, Rank]:
    """The rows of jobs, attempts and ranks, which others may make at the same time."""
    if not pieces:
        return {}
    begun = [(one, one.started, job_key(one.team, one.started.job)) for one in pieces]
    insert_each_once(session, JobRow, [job_row(job, one.team, start) for one, start, job in begun])
    insert_each_once(session, AttemptRow, [attempt_row(job, start) for _, start, job in begun])
    attempts = {
        (job, number): attempt_id
        for job, number, attempt_id in session.execute(
            select(AttemptRow.job_id, AttemptRow.number, AttemptRow.id).where(
                AttemptRow.job_id.in_({job for _, _, job in begun})
            )
        )
    }
    ranks = [
        rank_row(attempts[job, start.attempt], one.identity, start) for one, start, job in begun
    ]
    insert_each_once(session, Rank, ranks)
    return known_ranks(session, [one.identity for one in pieces])


def _apply(rank: Rank, new: New) -> None:
    """What records change in the row of their rank."""
    rank.taken = new.end
    for _, record in new.records:
        rank.heartbeat = max(rank.heartbeat, record.time)
        if isinstance(record, Snapshot):
            rank.snapshot, rank.commit = to_dict(record), record.commit
        elif isinstance(record, Ended):
            # The system's clock may have been set meanwhile; what a job cost must not depend on that.
            rank.ended = rank.started + record.elapsed
            rank.exit_code, rank.signal = record.exit_code, record.signal
            rank.why = record.why
            rank.state = _state(record)


def _state(ended: Ended) -> str:
    if ended.exit_code == 0:
        return "succeeded"
    return {"user": "cancelled", "another_rank": "ended"}.get(ended.why, "failed")
