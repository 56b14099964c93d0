"""Opening a store: new, old, newer, locked, unreachable, and addresses that are none."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.orm import Session

from epochzero.store import schema
from epochzero.store.database import Database, StoreError, open_database
from tests.store.jobs import is_declared


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based")
def test_the_migrations_make_what_the_code_expects(database: Database) -> None:
    with database.read() as session:
        options = {"include_object": is_declared}
        context = MigrationContext.configure(session.connection(), opts=options)
        assert compare_metadata(context, schema.Base.metadata) == []


def test_the_newest_migration_is_the_one_that_is_asked_for() -> None:
    folder = Path(schema.__file__).with_name("migrations")
    assert ScriptDirectory(str(folder)).get_current_head() == schema.REVISION


def test_opening_again_keeps_what_is_there(address: str) -> None:
    first = open_database(address)
    with first.write() as session:
        session.add(schema.Chunk(digest="a" * 32, size=1, data=b"x"))
    first.close()
    second = open_database(address)
    with second.read() as session:
        assert session.get_one(schema.Chunk, "a" * 32).data == b"x"
    second.close()


def test_many_may_open_a_new_store_at_once(address: str) -> None:
    failures: list[Exception] = []

    def open_it() -> None:
        try:
            open_database(address).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_many_new_stores_may_be_opened_at_once(tmp_path: Path) -> None:
    """Alembic has one context for a whole process."""
    start = threading.Barrier(8)

    def open_it(number: int) -> Database:
        start.wait()
        return open_database(tmp_path / f"{number}.db")

    with ThreadPoolExecutor(8) as pool:
        databases = list(pool.map(open_it, range(8)))
    for database in databases:
        with database.write() as session:
            _written(session)
        database.close()


def test_a_store_of_a_newer_version_is_refused(address: str) -> None:
    database = open_database(address)
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(StoreError, match=r"newer version of EpochZero .*9999"):
        open_database(address)


def _written(session: Session) -> int:
    """Writes a row; zero."""
    session.add(schema.Chunk(digest="b" * 32, size=1, data=b"x"))
    session.flush()
    return 0


def test_a_failed_write_leaves_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as session:
        session.add(schema.Chunk(digest="b" * 32, size=1 // _written(session), data=b"x"))
    with database.read() as session:
        assert session.get(schema.Chunk, "b" * 32) is None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "refused"),
        ("mysql://user@host/name", "an SQLite file or postgresql"),
        ("postgresql://user:hunter2@host:port/name", "is not a database address"),
        ("/proc/none/epochzero.db", "unable to open"),
    ],
)
def test_what_cannot_be_opened_is_told_without_its_password(address: str, message: str) -> None:
    with pytest.raises(StoreError) as told:
        open_database(address)
    assert message in str(told.value)
    assert "hunter2" not in str(told.value)


def test_a_file_that_is_no_database_is_told_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, " * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_database(file)
    assert file.read_text().startswith("not a database")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="unable to open"):
        open_database(tmp_path / "epochzero.db")


def test_a_store_that_another_program_holds_is_waited_for_and_then_told(
    tmp_path: Path,
) -> None:
    path = tmp_path / "epochzero.db"
    database = open_database(path, busy=0.2)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked"), database.write() as session:
        _written(session)
    other.close()
    with database.write() as session:
        _written(session)
    database.close()


@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_an_sqlite_file_is_its_owners_alone(tmp_path: Path, before: int | None) -> None:
    file = tmp_path / "store.db"
    if before is not None:
        old = sqlite3.connect(file)
        old.execute("PRAGMA journal_mode = WAL")
        old.execute("CREATE TABLE other (x)")
        for path in tmp_path.iterdir():
            path.chmod(before)
    database = open_database(file, stays_open=True)
    with database.write() as session:
        session.execute(text("CREATE TABLE more (x)"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    database.close()
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


def test_reads_share_a_session_only_within_shared_read(tmp_path: Path) -> None:
    database = open_database(tmp_path / "store.db")
    with database.shared_read(), database.read() as first, database.read() as second:
        assert first is second
    with pytest.raises(StoreError), database.shared_read(), database.read() as session:
        session.execute(text("SELECT nothing"))
    with database.read() as first, database.read() as second:
        assert first is not second
    database.close()
