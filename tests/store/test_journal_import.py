"""A database that dies, hangs or is locked while a run records costs the run nothing, and no record."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import Sample
from epochzero.store import journal_import, schema
from epochzero.store.database import Database, StoreError, open_database
from epochzero.store.journal_import import StoreWatcher
from epochzero.store.queries import find_jobs
from tests.store.jobs import Runs, whole
from tests.store.postgresql import running
from tests.waiting import PATIENCE_S

# Runs until a file is there.
JOB = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.1)"


@pytest.fixture
def server() -> Iterator[Any]:
    """A PostgreSQL that may be killed."""
    with running() as started:
        yield started


def _samples(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(schema.SampleRow)) or 0


def _stored(address: str, at_least: int) -> int:
    """Waits until so many samples are in the store; how many are."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            database = open_database(address)
            count = _samples(database)
            database.close()
            if count >= at_least:
                return count
        except StoreError:
            pass
        time.sleep(0.1)
    raise AssertionError("the run records nothing")


def test_a_database_that_is_killed_and_comes_back_has_all_in_the_end(
    server: Any, tmp_path: Path
) -> None:
    address = server.get_uri()
    home = tmp_path / "home"
    words = (sys.executable, "-m", "epochzero", "run", "--store", address, "--")
    over = tmp_path / "over"
    with subprocess.Popen(
        (*words, sys.executable, "-c", JOB, str(over)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "EPOCHZERO_HOME": str(home)},
    ) as run:
        acknowledged = _stored(address, at_least=1)
        os.kill(server.get_pid(), signal.SIGKILL)
        time.sleep(2.5)  # It is recorded every two seconds.
        server.ensure_postgres_running()
        assert _stored(address, at_least=0) >= acknowledged
        over.touch()
        _, error = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, error) == (0, b"")
    (journal,) = home.glob(f"runs/*/*/{NAME}")
    samples = sum(isinstance(record, Sample) for _, record in read_journal(journal))
    database = open_database(address)
    assert _samples(database) == samples
    assert [job.state for job in find_jobs(database)] == ["succeeded"]
    database.close()


def test_a_database_that_hangs_is_left_behind(
    server: Any, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr(journal_import, "_FINISH_S", 1.0)
    journal = runs.write(whole())
    recorder = StoreWatcher(server.get_uri(), journal)
    recorder._next = 0.0
    list(recorder.tick())
    assert recorder.trouble == ""
    postmaster = psutil.Process(server.get_pid())
    stopped = [postmaster, *postmaster.children()]
    for process in stopped:
        process.suspend()
    try:
        assert not recorder.finish()
    finally:
        for process in stopped:
            process.resume()
    assert "did not respond" in recorder.trouble


def test_a_store_that_stays_locked_is_not_waited_for(
    tmp_path: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_import, "_BUSY_S", 0.2)
    store = tmp_path / "jobs.db"
    recorder = StoreWatcher(str(store), runs.write(whole()))
    with sqlite3.connect(store, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert not recorder.finish()
        other.execute("ROLLBACK")
    assert "locked" in recorder.trouble
    assert recorder.finish()
