"""Opens a store, SQLite by default and PostgreSQL for teams, and migrates its tables.

>>> database = open_database("sqlite:////tmp/epochzero.db")  # doctest: +SKIP
>>> with database.read() as session: ...                     # doctest: +SKIP
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool, QueuePool

from epochzero.errors import InputError
from epochzero.store.schema import REVISION

_BUSY_S = 30
_CONNECT_S = 5
_UNANSWERED_MS = 15_000
"""A host that is down neither responds nor reports an error."""
# An arbitrary number that no other program uses for its advisory lock in this database.
_MIGRATION_LOCK = 0x45706F63685A
_FIRST_RELEASED = "0008"
"""The first migration of the release."""
_WRITES = "epochzero_writes"
_migrating = threading.Lock()
"""Alembic has one global context per process, shared by all threads and databases."""


class StoreError(InputError):
    """The store cannot be opened, read or written; data that were not imported remain in the journals."""


class StoreAwayError(StoreError):
    """No transaction can be started: the database is unreachable or locked."""


class StoreFullError(StoreError):
    """The store's disk is full or its quota is exceeded."""


class Database:
    """An open store.

    Args:
        engine: SQLAlchemy engine.
        name: the address without a password, for messages.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name
        self._reading = threading.local()

    @property
    def is_postgresql(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A read-only session; within `shared_read` of this thread, that one.

        Raises:
            StoreError: the database does not respond.
        """
        if (outer := getattr(self._reading, "session", None)) is not None:
            with self._errors():
                yield outer
            return
        with self._errors(), self._engine.connect() as connection, Session(connection) as session:
            yield session

    @contextmanager
    def shared_read(self) -> Iterator[None]:
        """One session for all reads of this thread until the end: fewer transactions, one state of the data.

        Raises:
            StoreError: the database does not respond.
        """
        with self.read() as session:
            self._reading.session = session
            try:
                yield
            finally:
                self._reading.session = None

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose changes are committed at its end, or rolled back on an error.

        Raises:
            StoreAwayError: the database does not respond, or is locked for too long.
            StoreError: the store cannot be written, or rejects a row.
        """
        with self._errors(), ExitStack() as stack:
            with self._errors(StoreAwayError):
                connection = stack.enter_context(self._engine.connect())
                connection = connection.execution_options(**{_WRITES: True})
                session = stack.enter_context(Session(connection))
                stack.enter_context(session.begin())
                session.connection()  # Starts the transaction now instead of at the first statement.
            yield session

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def _errors(self, kind: type[StoreError] = StoreError) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            raise InputError(
                f"the database cannot store this: {_first_line(error.orig)}"
            ) from error
        except DBAPIError as error:
            if _is_full(error.orig):
                kind = StoreFullError
            raise kind(f"{self.name}: {_first_line(error.orig)}") from error
        except SQLAlchemyError as error:
            raise kind(f"{self.name}: {_first_line(error)}") from error


def open_database(
    address: str | Path, *, busy: float = _BUSY_S, stays_open: bool = False
) -> Database:
    """Opens a store and migrates its tables to the current version.

    Args:
        address: ``postgresql://user@host/name``, ``sqlite:///path``, or the path of an SQLite file.
        busy: seconds to wait for the lock of an SQLite file.
        stays_open: whether an SQLite file remains open between sessions, for processes with many sessions
            that do not fork. The last process that closes it writes the whole write-ahead log into it.

    Raises:
        StoreError: the database or its driver does not exist, permission is denied, or a newer version
            of EpochZero has written it.
    """
    database = _opened(_url(address), busy, stays_open)
    try:
        with database._errors(), database._engine.connect() as connection:
            _bring_up_to_date(connection, database.name)
    except StoreError:
        database.close()
        raise
    return database


def open_to_read(address: str | Path) -> Database | None:
    """Opens an existing store with tables of this version; returns None if none exists.

    Raises:
        StoreError: as `open_database`.
    """
    url = _url(address)
    file = url.database if url.get_backend_name() == "sqlite" else None
    if file is not None and not Path(file).is_file():
        return None
    database = _opened(url)
    try:
        with database._errors(), database._engine.connect() as connection:
            if _revision(connection) == REVISION:
                return database
    except StoreError:
        database.close()
        raise
    database.close()
    return None


def _url(address: str | Path) -> URL:
    words = str(address)
    if "://" not in words:
        return URL.create("sqlite", database=str(Path(words).absolute()))
    try:
        url = make_url(words)
    except (ArgumentError, ValueError) as error:
        raise StoreError(
            f"{words.partition('@')[2] or words} is not a database address: {error}"
        ) from error
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(
            f"{url.drivername}: unsupported; a store is an SQLite file or postgresql://..."
        )
    return url


def _opened(url: URL, busy: float = _BUSY_S, stays_open: bool = False) -> Database:
    """Opens the database without checking its tables."""
    name = url.render_as_string(hide_password=True)
    try:
        return Database(_engine(url, busy, stays_open), name)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StoreError(
            f"{name}: no driver for this database ({error}). PostgreSQL requires: pip install 'epochzero[postgres]'"
        ) from error


def _engine(url: URL, busy: float, stays_open: bool) -> Engine:
    if url.get_backend_name() == "postgresql":
        patience = {"connect_timeout": _CONNECT_S, "tcp_user_timeout": _UNANSWERED_MS}
        return create_engine(url, pool_pre_ping=True, connect_args=patience)
    _make_private(url.database)
    # Each session has its own file handle: nothing is shared between threads or forks.
    pool: dict[str, Any] = {"poolclass": NullPool}
    if stays_open:
        pool = {"poolclass": QueuePool, "max_overflow": -1}
    engine = create_engine(url, connect_args={"timeout": busy}, **pool)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(file: str | None) -> None:
    """Restricts an SQLite file to its owner, because it contains logs and commands.

    SQLite gives its journal and write-ahead log the mode of the file. Existing ones of an earlier
    version are changed too. Files of other users are left unchanged.
    """
    if not file or file == ":memory:" or file.startswith("file:"):
        return
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    for name in (file, f"{file}-wal", f"{file}-shm", f"{file}-journal"):
        with suppress(OSError):
            if stat.S_IMODE(os.stat(name).st_mode) & 0o077:
                os.chmod(name, 0o600)


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    """Enables the write-ahead log: readers and a writer do not block each other, and a kill loses no data."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Takes the write lock at the start: two transactions that read and then write would deadlock."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _bring_up_to_date(connection: Connection, name: str) -> None:
    if _revision(connection) == REVISION:
        return
    connection.rollback()
    connection = connection.execution_options(**{_WRITES: True})
    with connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        revision = _revision(connection)
        if revision is not None and revision > REVISION:
            raise StoreError(
                f"{name} was written by a newer version of EpochZero (schema {revision}, this version uses "
                f"{REVISION}). Update EpochZero."
            )
        if revision is not None and revision < _FIRST_RELEASED:
            # The first migration brings the tables of before the release up to date, whichever they are.
            connection.execute(text("DELETE FROM alembic_version"))
        if revision != REVISION:
            _migrate(connection)


def _revision(connection: Connection) -> str | None:
    if not sqlalchemy.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", "epochzero.store:migrations")
    configuration.attributes["connection"] = connection
    with _migrating:
        command.upgrade(configuration, REVISION)


def _is_full(error: BaseException | None) -> bool:
    """Whether an error means that no space is left. SQLite reports an exceeded quota as an I/O error.

    Sources: SQLite, "Result and Error Codes"; PostgreSQL, Appendix A, "PostgreSQL Error Codes".
    """
    sqlite = getattr(error, "sqlite_errorname", "")
    postgresql = getattr(error, "sqlstate", "")
    return sqlite in ("SQLITE_FULL", "SQLITE_IOERR_WRITE") or postgresql == "53100"


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
