"""Imports journals into the store: every record exactly once, even if a process is killed.

The number of imported bytes of a journal is stored in the same transaction as its rows. A journal may be
imported repeatedly, by any process; only new records count.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from sqlalchemy import select
from sqlalchemy.orm import Session

from epochzero.errors import InputError
from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import Output, Record
from epochzero.run.records.output import logs_in
from epochzero.store.database import Database, StoreAwayError, StoreError
from epochzero.store.logs import Parts, has_log, part_sizes, parts_in, parts_of, store_outputs
from epochzero.store.outbox import owe
from epochzero.store.outcomes import sum_up
from epochzero.store.rows import Row, rows_of
from epochzero.store.sample_writer import New, known_ranks, write, write_rows
from epochzero.store.schema import AttemptRow, JobRow, Rank

LOST_AFTER_S = 60.0
"""A supervisor writes every second. A local supervisor that is missing and silent for this long is lost."""
_LOST_ELSEWHERE_AFTER_S = 3600.0
_RECORDS_AT_ONCE = 5000
_ASKED_AT_ONCE = 1000
_ENDINGS_AT_ONCE = 250
_JOURNALS_AT_ONCE = 100
_BYTES_AT_ONCE = 64 << 20
_COMPARED_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of journals, and transformations of untrusted content.

    Attributes:
        team: team of the jobs; empty for local jobs.
        record: transforms a record; None drops it.
        text: transforms a part of a log.
        place: namespace of the journals' paths; empty for this host. A service that moves
            to another host, such as a container, must recognize its journals.
        tells: whether webhooks are notified of failures.
    """

    team: str = ""
    record: Callable[[Record], Record | None] = lambda record: record
    text: Callable[[bytes], bytes] = lambda text: text
    place: str = ""
    tells: bool = False


THIS_MACHINE = Origin()


class ConflictError(InputError):
    """The attempt exists already with a different log."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A complete attempt without a journal.

    Attributes:
        identity: identifies it in the store, like a journal's path.
        records: its records, the first of which is `Start`; one `Output` names ``log``.
        log: its open log.
        origin: its source.
        sizes: of the parts of its log, once they are known.
    """

    identity: str
    records: Sequence[Record]
    log: IO[bytes]
    origin: Origin = THIS_MACHINE
    sizes: list[int] = field(default_factory=list, compare=False)

    @property
    def size(self) -> int:
        """Size of the log in bytes."""
        return self.log.seek(0, os.SEEK_END)

    @property
    def parts(self) -> Parts:
        """The parts of its log."""
        return parts_of(self.log, self.origin.text, self.sizes)

    def split(self) -> None:
        """Splits its log before a transaction, which would make others wait for a large log."""
        self.sizes[:] = part_sizes(self.log)


def take_in(database: Database, journal: Path, origin: Origin = THIS_MACHINE) -> int:
    """Imports the new records of a journal, and the logs if the attempt has ended.

    Returns:
        Number of new records.

    Raises:
        StoreError: the store cannot be written. No data are lost; call again.
        InputError: the journal cannot be read, or does not name its job.
    """
    count = 0
    while new := _take_in_some(database, {journal: origin}):
        count += new[journal]
    return count


def take_in_all(
    database: Database, journals: Mapping[Path, Origin]
) -> Mapping[Path, int | Exception]:
    """Imports many journals, as many as possible per transaction.

    Returns:
        For each journal the number of new records, or the reason why it was not imported. Journals that
        cannot be read or that the store rejects do not delay the others.

    Raises:
        StoreAwayError: the database does not respond. No data are lost; call again.
    """
    found: dict[Path, int | Exception] = {}
    for group in _groups(journals):
        found |= _take_in_together(database, group)
    return found


def _groups(journals: Mapping[Path, Origin]) -> Iterator[Mapping[Path, Origin]]:
    """Groups of journals with limited log sizes, so that others do not wait long for the lock."""
    group: dict[Path, Origin] = {}
    size = 0
    for journal, origin in journals.items():
        group[journal] = origin
        with suppress(OSError):
            size += sum(file.stat().st_size for file in os.scandir(journal.parent))
        if len(group) >= _JOURNALS_AT_ONCE or size > _BYTES_AT_ONCE:
            yield group
            group, size = {}, 0
    if group:
        yield group


def _take_in_together(
    database: Database, journals: Mapping[Path, Origin]
) -> Mapping[Path, int | Exception]:
    found: Counter[Path] = Counter(dict.fromkeys(journals, 0))
    try:
        while new := _take_in_some(database, journals):
            found.update(new)
    except StoreAwayError:
        raise
    except Exception as error:
        if len(journals) == 1:
            return dict.fromkeys(journals, error)
        results: dict[Path, int | Exception] = {}
        for journal, origin in journals.items():
            result = _take_in_together(database, {journal: origin})[journal]
            results[journal] = result + found[journal] if isinstance(result, int) else result
        return results
    return found


def _take_in_some(database: Database, journals: Mapping[Path, Origin]) -> dict[Path, int]:
    """Imports new records of some journals in one transaction; returns their number."""
    by_identity = {identity_of(journal, origin): journal for journal, origin in journals.items()}
    read: dict[str, list[tuple[int, Record]]] = {}
    with database.write() as session:
        known = known_ranks(session, by_identity)
        new: list[New] = []
        for identity, journal in sorted(by_identity.items()):
            start = known[identity].taken if identity in known else 0
            records = read_journal(journal, start)
            if some := list(islice(records, max(1, _RECORDS_AT_ONCE // len(journals)))):
                read[identity] = some
                new.append(_grown(identity, journal, journals[journal], start, some))
        written = write(session, new, known) if new else set()
        changed = (s.identity for s in new if s.changes_job and s.identity in written)
        _owe(session, {identity: journals[by_identity[identity]] for identity in changed})
    return {by_identity[identity]: len(read[identity]) for identity in written}


def _grown(
    identity: str, journal: Path, origin: Origin, start: int, read: Sequence[tuple[int, Record]]
) -> New:
    redacted = ((sequence, origin.record(record)) for sequence, record in read)
    records = [(sequence, record) for sequence, record in redacted if record is not None]
    parts = parts_in(journal.parent, origin.text)
    return New(identity, origin.team, records, start, read[-1][0], parts)


def sweep(database: Database, runs: Path) -> int:
    """Imports all journals below a runs directory, and marks lost attempts.

    Returns:
        Number of new records. Journals that cannot be read are skipped.
    """
    journals = sorted(runs.glob(f"*/*/{NAME}"))
    grown = dict.fromkeys(_behind(database, journals), THIS_MACHINE)
    count = 0
    for result in take_in_all(database, grown).values():
        if isinstance(result, int):
            count += result
        elif isinstance(result, StoreError) or not isinstance(result, InputError):
            raise result
    mark_lost(database)
    return count


def _behind(database: Database, journals: Iterable[Path]) -> Iterator[Path]:
    """The journals that are not completely imported."""
    waiting = iter(journals)
    while some := {identity_of(journal): journal for journal in islice(waiting, _ASKED_AT_ONCE)}:
        with database.read() as session:
            query = select(Rank.journal, Rank.taken).where(Rank.journal.in_(some))
            taken = {row.journal: row.taken for row in session.execute(query)}
        for identity, journal in some.items():
            with suppress(OSError):
                if taken.get(identity, -1) < journal.stat().st_size:
                    yield journal


def add_endings(database: Database, endings: Iterable[Ending]) -> frozenset[str]:
    """Adds completed attempts, all or none; attempts that already exist are not changed.

    Returns:
        The IDs of the new ones.

    Raises:
        ConflictError: the store, or another of the endings, contains the same attempt with a different log.
        InputError: an ending does not name its job.
    """
    wanted: dict[str, Ending] = {}
    for ending in endings:
        if not _same_log(wanted.setdefault(ending.identity, ending), ending):
            raise _conflict(ending)
    # In a fixed order: two writers that wait for each other's rows would deadlock.
    waiting = iter(sorted(wanted))
    added: set[str] = set()
    with database.write() as session:
        while some := list(islice(waiting, _ENDINGS_AT_ONCE)):
            known = known_ranks(session, some)
            new = [_ended(wanted[identity]) for identity in some if identity not in known]
            added |= write(session, new, known)
            _check_logs(session, [wanted[text] for text in some if text not in added])
        _owe(session, {identity: wanted[identity].origin for identity in added})
    return frozenset(added)


def _check_logs(session: Session, endings: Sequence[Ending]) -> None:
    """Compares repeated logs with the stored ones: ignoring a difference would lose another run's log.

    Raises:
        ConflictError: the stored log differs.
    """
    ranks = known_ranks(session, [ending.identity for ending in endings]) if endings else {}
    for ending in endings:
        if not has_log(session, ranks[ending.identity].id, ending.parts, ending.size):
            raise _conflict(ending)


def _same_log(first: Ending, second: Ending) -> bool:
    if first is second:
        return True
    if first.size != second.size:
        return False
    first.log.seek(0)
    second.log.seek(0)
    while data := first.log.read(_COMPARED_AT_ONCE):
        if data != second.log.read(len(data)):
            return False
    return True


def _conflict(ending: Ending) -> ConflictError:
    started = _ended(ending).started
    return ConflictError(
        f"job {started.job}, attempt {started.attempt}: a different log of this attempt was received before; "
        "nothing of this request was stored. Send another run under another job ID or as the next attempt"
    )


def _owe(session: Session, written: Mapping[str, Origin]) -> None:
    """Called last, because it may wait for other writers."""
    telling = {identity: origin.team for identity, origin in written.items() if origin.tells}
    if telling:
        owe(session, telling)


def _ended(ending: Ending) -> New:
    records = list(enumerate(ending.records, 1))
    return New(ending.identity, ending.origin.team, records, 0, len(records), ending.parts)


def mark_lost(
    database: Database, origin: Origin = THIS_MACHINE, *, now: float | None = None
) -> None:
    """Marks ranks as lost whose supervisor exited without a final record.

    Args:
        origin: source of the journals.
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    silent = (
        select(Rank)
        .join(AttemptRow, AttemptRow.id == Rank.attempt_id)
        .join(JobRow, JobRow.id == AttemptRow.job_id)
        .where(Rank.state == "running", JobRow.team == origin.team)
        .order_by(Rank.id)
    )
    with database.read() as session:
        if not any(_is_lost(rank, now) for rank in session.scalars(silent)):
            return
    with database.write() as session:
        found = session.scalars(silent.with_for_update(of=Rank)).all()
        lost = [rank for rank in found if _is_lost(rank, now)]
        rows: list[Row] = []
        parts: dict[int, Parts] = {}
        for rank in lost:
            rank.state, rank.ended = "lost", rank.heartbeat
            folder = journal_of(rank).parent
            parts[rank.id] = parts_in(folder, origin.text)
            for output in _left_in(folder, rank):
                rows += rows_of(output, rank.id, 0)
        write_rows(session, rows)
        sum_up(session, {rank.attempt_id for rank in lost})
        store_outputs(session, parts)


def _left_in(folder: Path, rank: Rank) -> Iterator[Output]:
    """The logs of a rank whose supervisor did not record them."""
    for name, parts in logs_in(folder).items():
        with suppress(OSError):
            paths = tuple(part.name for part in parts)
            size = sum(part.stat().st_size for part in parts)
            yield Output(rank.heartbeat, 0.0, name, paths, size)


def _is_lost(rank: Rank, now: float) -> bool:
    if rank.host != socket.gethostname():
        return _last_heard(rank) < now - _LOST_ELSEWHERE_AFTER_S
    if rank.heartbeat > now - LOST_AFTER_S:
        return False
    try:
        os.kill(rank.pid, 0)
    except (ProcessLookupError, OverflowError):  # A journal may contain any number.
        return True
    except PermissionError:
        return False
    return False


def _last_heard(rank: Rank) -> float:
    """Time of the last sign of life of a rank: by the local clock for local journals, else by its own clock."""
    try:
        return journal_of(rank).stat().st_mtime
    except OSError:
        return rank.heartbeat


def identity_of(journal: Path, origin: Origin = THIS_MACHINE) -> str:
    """ID of a journal in the store; paths alone are not unique within a team."""
    return f"{origin.place or socket.gethostname()}:{journal.resolve()}"


def journal_of(rank: Rank) -> Path:
    """Path of a rank's journal on its host; its logs are next to it."""
    return Path(rank.journal.partition(":")[2])
