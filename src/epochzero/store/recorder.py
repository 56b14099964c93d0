"""Takes journals into the store: every record exactly once, whoever is killed in between.

How many bytes of a journal have been taken in is kept with the rows that they became, in one
transaction. A journal may be taken in again at any time, by any process; only what is new counts.
"""

from __future__ import annotations

import os
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.journal import NAME, read_journal
from epochzero.run.model import Concluded, Ended, Output, Record, Snapshot, Started, to_dict
from epochzero.run.output import logs_in
from epochzero.store import schema
from epochzero.store.database import Database, StoreError
from epochzero.store.inserting import insert_once
from epochzero.store.logs import store_outputs
from epochzero.store.rows import rows_of
from epochzero.store.schema import Attempt, Failure, Job, Rank
from epochzero.store.states import FINAL

__all__ = ["LOST_AFTER_S", "identity_of", "journal_of", "mark_lost", "sweep", "take_in"]

LOST_AFTER_S = 60.0
"""A supervisor writes every second. One of this machine that is gone and silent so long is lost."""
_LOST_ELSEWHERE_AFTER_S = 3600.0
_MOST_AT_ONCE = 5000


def take_in(database: Database, journal: Path) -> int:
    """Takes in what a journal has that the store does not; the logs too, when the attempt ended.

    Returns:
        How many records were new.

    Raises:
        StoreError: the store cannot be written. Nothing is lost: call again.
        InputError: the journal cannot be read, or does not say which job it is of.
    """
    count = 0
    while new := _take_in_some(database, journal):
        count += new
    return count


def sweep(database: Database, runs: Path) -> int:
    """Takes in all journals below a folder of runs, and marks the attempts that were lost.

    Returns:
        How many records were new. A journal that cannot be read is passed over.

    Raises:
        StoreError: the store cannot be written.
    """
    with database.read() as session:
        known = {rank.journal: rank.taken for rank in session.scalars(select(Rank))}
    count = 0
    for journal in sorted(runs.glob(f"*/*/{NAME}")):
        try:
            if known.get(identity_of(journal), -1) < journal.stat().st_size:
                count += take_in(database, journal)
        except StoreError:
            raise
        except (InputError, OSError):
            continue
    mark_lost(database)
    return count


def mark_lost(database: Database, *, now: float | None = None) -> None:
    """Ends, in the store, the ranks whose supervisor died without a word.

    Args:
        database: the store.
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    silent = select(Rank).where(Rank.state == "running", Rank.heartbeat < now - LOST_AFTER_S)
    with database.read() as session:
        if not any(_is_lost(rank, now) for rank in session.scalars(silent)):
            return
    with database.write() as session:
        for rank in session.scalars(silent.with_for_update()).all():
            if _is_lost(rank, now):
                rank.state, rank.ended = "lost", rank.heartbeat
                _sum_up(session, rank)
                folder = journal_of(rank).parent
                for output in _left_in(folder, rank):
                    _apply(session, rank, output)
                store_outputs(session, rank, folder)


def _left_in(folder: Path, rank: Rank) -> Iterator[Output]:
    """The logs of a rank whose supervisor could not say any more what they hold."""
    for name, parts in logs_in(folder).items():
        with suppress(OSError):
            paths = tuple(part.name for part in parts)
            size = sum(part.stat().st_size for part in parts)
            yield Output(rank.heartbeat, 0.0, name, paths, size)


def _is_lost(rank: Rank, now: float) -> bool:
    if rank.host != socket.gethostname():
        return rank.heartbeat < now - _LOST_ELSEWHERE_AFTER_S
    try:
        os.kill(rank.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _take_in_some(database: Database, journal: Path) -> int:
    identity = identity_of(journal)
    with database.write() as session:
        rank = session.scalars(
            select(Rank).where(Rank.journal == identity).with_for_update()
        ).one_or_none()
        start = rank.taken if rank else 0
        new = list(islice(read_journal(journal, start), _MOST_AT_ONCE))
        if not new:
            return 0
        records = [record for _, record in new]
        rank = rank or _begin(session, identity, records)
        if rank.taken > start:
            return 0  # Another process began with the same journal at the same moment.
        added: dict[type[schema.Base], list[dict[str, Any]]] = defaultdict(list)
        for sequence, record in new:
            _apply(session, rank, record)
            for table, values in rows_of(record, rank.id, sequence):
                added[table].append(values)
        for table, rows in added.items():
            session.execute(insert(table), rows)
        rank.taken = new[-1][0]
        rank.heartbeat = max(rank.heartbeat, *(record.time for record in records))
        if any(isinstance(record, Started | Ended | Concluded) for record in records):
            session.flush()
            _sum_up(session, rank)
        if rank.state in FINAL:
            store_outputs(session, rank, journal.parent)
    return len(new)


def identity_of(journal: Path) -> str:
    """What the store knows a journal by: paths alone are not unique in a team's."""
    return f"{socket.gethostname()}:{journal.resolve()}"


def journal_of(rank: Rank) -> Path:
    """Where the journal of a rank lies on its host, with its logs beside it."""
    return Path(rank.journal.partition(":")[2])


def _begin(session: Session, identity: str, records: Iterable[Record]) -> Rank:
    """The rows of a job, its attempt and its rank, which others may make at the same time."""
    started = next((record for record in records if isinstance(record, Started)), None)
    if started is None:
        raise InputError(f"{identity}: the journal does not say which job it is of")
    insert_once(
        session,
        Job,
        id=started.job,
        name=started.name,
        command=list(started.command),
        folder=started.folder,
        user=started.user,
        host=started.host,
        launcher=started.launcher,
        target=started.target,
        scheduler=dict(started.scheduler),
        world_size=started.world_size,
        gpus=started.gpus,
        started=started.time,
        state="running",
        attempts=started.attempt,
        gpu_hours=0.0,
        category="",
        fingerprint="",
    )
    insert_once(
        session,
        Attempt,
        job_id=started.job,
        number=started.attempt,
        started=started.time,
        state="running",
        gpu_hours=0.0,
    )
    attempt_id = session.scalars(
        select(Attempt.id).where(Attempt.job_id == started.job, Attempt.number == started.attempt)
    ).one()
    insert_once(
        session,
        Rank,
        attempt_id=attempt_id,
        rank=started.rank,
        host=started.host,
        pid=started.pid,
        journal=identity,
        taken=0,
        heartbeat=started.time,
        started=started.time,
        state="running",
        why="",
        commit="",
        snapshot={},
    )
    return session.scalars(select(Rank).where(Rank.journal == identity).with_for_update()).one()


def _apply(session: Session, rank: Rank, record: Record) -> None:
    """What a record changes in the row of its rank, or in that of a log."""
    if isinstance(record, Snapshot):
        rank.snapshot, rank.commit = to_dict(record), record.commit
    elif isinstance(record, Ended):
        # The system's clock may have been set meanwhile; what a job cost must not depend on that.
        rank.ended = rank.started + record.elapsed
        rank.exit_code, rank.signal = record.exit_code, record.signal
        rank.why = record.why
        rank.state = _state(record)
    elif isinstance(record, Output):
        insert_once(
            session,
            schema.Output,
            rank_id=rank.id,
            name=record.name,
            paths=[],
            size=0,
            dropped=0,
        )
        output = session.scalars(
            select(schema.Output).where(
                schema.Output.rank_id == rank.id, schema.Output.name == record.name
            )
        ).one()
        output.paths, output.size = list(record.paths), record.size
        output.dropped = record.dropped


def _state(ended: Ended) -> str:
    if ended.exit_code == 0:
        return "succeeded"
    return {"user": "cancelled", "another_rank": "ended"}.get(ended.why, "failed")


def _sum_up(session: Session, rank: Rank) -> None:
    """Brings the rows of the attempt and the job up to what their ranks say."""
    attempt = session.get_one(Attempt, rank.attempt_id)
    job = session.get_one(Job, attempt.job_id, with_for_update=True, populate_existing=True)
    ranks = session.scalars(select(Rank).where(Rank.attempt_id == attempt.id)).all()
    attempt.state = _state_of_all([one.state for one in ranks])
    attempt.started = min(one.started for one in ranks)
    over = attempt.state in FINAL
    attempt.ended = max(one.ended or one.heartbeat for one in ranks) if over else None
    codes = [one.exit_code for one in ranks if one.exit_code is not None]
    attempt.exit_code = next((code for code in codes if code), codes[0] if codes else None)
    if attempt.ended is not None:
        attempt.gpu_hours = job.gpus * max(0.0, attempt.ended - attempt.started) / 3600
    session.flush()
    attempts = session.scalars(
        select(Attempt).where(Attempt.job_id == job.id).order_by(Attempt.number)
    ).all()
    job.attempts, job.state, job.ended = len(attempts), attempts[-1].state, attempts[-1].ended
    job.started = min(one.started for one in attempts)
    job.gpu_hours = sum(one.gpu_hours for one in attempts)
    job.category, job.fingerprint = _failure(session, attempts[-1])


def _state_of_all(states: list[str]) -> str:
    """A rank that failed or was ended decides, then one that still runs."""
    order = ("failed", "cancelled", "lost", "running", "ended", "succeeded")
    return min(states, key=order.index)


def _failure(session: Session, attempt: Attempt) -> tuple[str, str]:
    """Category and fingerprint of the failure that came first on any rank."""
    first = session.execute(
        select(Failure.category, Failure.fingerprint)
        .join(Rank, Rank.id == Failure.rank_id)
        .where(Rank.attempt_id == attempt.id)
        .order_by(Rank.ended, Failure.id)
    ).first()
    return (first[0], first[1]) if first else ("", "")
