"""Parsed files on disk, so that the next commit costs only what changed."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from epochzero.code.languages import language_of
from epochzero.code.parse import parse
from epochzero.code.parsed import PARSER_VERSION, Parsed
from epochzero.code.snapshot import LARGEST_BYTES
from epochzero.code.workers import parse_all
from epochzero.platform import usable_cpus

if TYPE_CHECKING:
    from epochzero.code.snapshot import File, Snapshot


LIMIT_BYTES = 512 << 20
FILE_NAME = "code.sqlite"
APPLICATION = 0x455A4331
"""Marks the file as ours, in the place that SQLite has for that."""
LAYOUT = 1
BUSY_S = 5.0
JOURNAL_BYTES = 16 << 20
USED_EVERY_S = 24 * 3600
"""How exactly the last use is known; finer would turn every reading into writing."""
KEPT = 0.8
"""The part of the limit that stays when the cache is full."""
ASKED_AT_ONCE = 500

_SCHEMA = (
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {LAYOUT}",
    "CREATE TABLE IF NOT EXISTS parsed ("
    "key TEXT NOT NULL, used INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE UNIQUE INDEX IF NOT EXISTS parsed_key ON parsed (key)",
    "CREATE INDEX IF NOT EXISTS parsed_used ON parsed (used, size)",
)
_FORGET = """
DELETE FROM parsed WHERE rowid IN (
  SELECT rowid FROM (
    SELECT rowid, size, sum(size) OVER (ORDER BY used, rowid) AS running FROM parsed)
  WHERE running - size < ?)
"""


_Result = TypeVar("_Result")


class Key(NamedTuple):
    """What a parse depends on, in addition to the parser's version: the content and what the path says it is."""

    blob: str
    language: str

    @classmethod
    def of(cls, file: File) -> Key:
        """The key of a file."""
        return cls(file.blob, language_of(file.path))


class Cache:
    """Parsed files by their content; several processes may use it at once.

    Nothing that can be wrong with the file is an error: a damaged or foreign one is set aside, and
    where none can be written the work continues without.

    Args:
        folder: where the file is; made when it is not there.
        limit_bytes: what the file may take, about; what was not used for longest goes first.

    Attributes:
        path: the file.
        problem: why the cache cannot be used, or only be read; empty while all is well.
        set_aside: where a damaged or foreign file was moved; None when there was none.
    """

    def __init__(self, folder: str | os.PathLike[str], limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = Path(folder) / FILE_NAME
        self.problem = ""
        self.set_aside: Path | None = None
        self._limit = limit_bytes
        self._lock = RLock()
        self._database: sqlite3.Connection | None = None
        self._in_use(lambda _database: None)

    def load_many(self, keys: Sequence[Key]) -> dict[Key, Parsed]:
        """The parsed files that are there, by their keys."""
        return self._in_use(lambda database: _load(database, keys)) or {}

    def store_many(self, parsed: Mapping[Key, bytes]) -> None:
        """Keeps `Parsed.to_bytes` of files, in one transaction."""
        if parsed:
            self._in_use(lambda database: _store(database, parsed, self._limit))

    def close(self) -> None:
        """Lets go of the file; the next use opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    def __del__(self) -> None:
        self.close()  # Python 3.13 warns of connections that nobody closes.

    def _in_use(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Does something with the database; None where that is not possible."""
        with self._lock:
            for _ in range(2):
                try:
                    if self._database is None:
                        self._database = _open(self.path)
                    return work(self._database)
                except (sqlite3.OperationalError, OSError) as error:
                    self.problem = f"{self.path}: {error}"
                    return None
                except sqlite3.DatabaseError as error:
                    self.problem = f"{self.path}: {error}"
                    self._put_aside()
            return None

    def _put_aside(self) -> None:
        """Makes room for a new file."""
        self.close()
        aside = self.path.with_suffix(".damaged")
        try:
            os.replace(self.path, aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        except OSError:
            return  # the next attempt fails in the same way, and the work continues without
        self.set_aside = aside
        self.problem = ""


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if _is_empty(database):
            database.execute("PRAGMA journal_mode = WAL")
            with _transaction(database):
                for statement in _SCHEMA:
                    database.execute(statement)
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
    except BaseException:
        database.close()
        raise
    return database


def _is_empty(database: sqlite3.Connection) -> bool:
    """Whether the file has no tables yet.

    Raises:
        sqlite3.DatabaseError: it belongs to another program or version.
    """
    # In one transaction: another process may create the tables in between.
    with _transaction(database, "DEFERRED"):
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (layout,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (application, layout) == (APPLICATION, LAYOUT):
        return False
    if tables or application:
        raise sqlite3.DatabaseError("belongs to another program or version")
    return True


def _name(key: Key) -> str:
    return f"{PARSER_VERSION}:{key.language}:{key.blob}"


def _load(database: sqlite3.Connection, keys: Sequence[Key]) -> dict[Key, Parsed]:
    by_name = {_name(key): key for key in keys}
    names = list(by_name)
    found: dict[Key, Parsed] = {}
    stale: list[tuple[int, str]] = []
    now = int(time.time())
    for begin in range(0, len(names), ASKED_AT_ONCE):
        asked = names[begin : begin + ASKED_AT_ONCE]
        marks = ",".join("?" * len(asked))
        rows = database.execute(f"SELECT key, used, data FROM parsed WHERE key IN ({marks})", asked)
        for name, used, data in rows:
            with suppress(ValueError):  # a damaged entry is as good as none
                found[by_name[name]] = Parsed.from_bytes(data)
            if used < now - USED_EVERY_S:
                stale.append((now, name))
    if stale:
        # A cache that can only be read is still of use.
        with suppress(sqlite3.OperationalError), _transaction(database):
            database.executemany("UPDATE parsed SET used = ? WHERE key = ?", stale)
    return found


def _store(database: sqlite3.Connection, parsed: Mapping[Key, bytes], limit: int) -> None:
    now = int(time.time())
    rows = [(_name(key), now, len(data), data) for key, data in parsed.items()]
    with _transaction(database):
        database.executemany("INSERT OR REPLACE INTO parsed VALUES (?, ?, ?, ?)", rows)
        (size,) = database.execute("SELECT coalesce(sum(size), 0) FROM parsed").fetchone()
        if size > limit:
            database.execute(_FORGET, (size - int(KEPT * limit),))


@contextmanager
def _transaction(database: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    database.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


# -- A whole snapshot --------------------------------------------------------------------------

SMALL_BYTES = 1_500_000
"""Less than this is parsed sooner than worker processes start."""
PENDING_BYTES = 32 << 20


def parse_snapshot(
    snapshot: Snapshot,
    files: Sequence[File],
    cache: Cache | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Parsed]:
    """Files of a snapshot, parsed; what the cache has is not even read.

    Args:
        snapshot: where the files are.
        files: which of them. One above `LARGEST_BYTES` and one that its name calls binary are
            not read: they come out empty.
        cache: what is known already; what is new is added.
        workers: how many processes at most; as many as this one may use cores when not given.
        on_progress: called with the number of files that are done and of all.

    Returns:
        A `Parsed` for each file, in their order.

    Raises:
        InputError: a file cannot be read.
    """
    keys = [Key.of(file) for file in files]
    unread = {
        key: parse(b"", file.path)
        for key, file in zip(keys, files, strict=True)
        if file.size > LARGEST_BYTES or key.language == "binary"
    }
    wanted = {key: file for key, file in zip(keys, files, strict=True) if key not in unread}
    found = cache.load_many(list(wanted)) if cache else {}
    missing = {key: file for key, file in wanted.items() if key not in found}
    report = on_progress or (lambda _done, _total: None)
    report(len(found), len(wanted))
    pending: dict[Key, bytes] = {}
    size = 0
    for key, data in _parse(snapshot, missing, _processes(workers, missing.values())):
        found[key] = Parsed.from_bytes(data)
        report(len(found), len(wanted))
        if cache is None:
            continue
        pending[key] = data
        size += len(data)
        if size > PENDING_BYTES:
            cache.store_many(pending)
            pending, size = {}, 0
    if cache:
        cache.store_many(pending)
    return [unread[key] if key in unread else found[key] for key in keys]


def _processes(workers: int | None, files: Iterable[File]) -> int:
    """How many processes are worth their start; 0 for none but this."""
    if sum(file.size for file in files) < SMALL_BYTES:
        return 0
    allowed = workers if workers is not None else usable_cpus()
    return allowed if allowed > 1 and sys.executable else 0


def _parse(
    snapshot: Snapshot, missing: Mapping[Key, File], processes: int
) -> Iterator[tuple[Key, bytes]]:
    """The parsed files, as they are stored, in the order in which they are done."""
    keys = {file: key for key, file in missing.items()}
    content = snapshot.read(missing.values())
    if not processes:
        for file, data in content:
            yield keys[file], parse(data, file.path).to_bytes()
        return
    order = list(missing)
    numbers = {key: number for number, key in enumerate(order)}
    jobs = ((numbers[keys[file]], file.path, data) for file, data in content)
    for number, parsed in parse_all(jobs, processes):
        yield order[number], parsed
