"""What is thrown away, and what stays."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import func, select

from epochzero.errors import InputError
from epochzero.store import schema
from epochzero.store.database import Database
from epochzero.store.job_details import job_details, read_log, usage
from epochzero.store.queries import find_jobs
from epochzero.store.recorder import sweep
from epochzero.store.retention import RunningError, delete_job, prune, prune_folders
from tests.store.jobs import START, Runs, started, whole

LONG_AFTER = START + 1e6


@pytest.fixture
def filled(database: Database, runs: Runs) -> Database:
    """One job that failed, one that ended well, both with the same log, and one that runs."""
    runs.write(whole("failed"))
    runs.write(whole("well", exit_code=0))
    runs.write([started("running")])
    sweep(database, runs.folder)
    return database


def _log(database: Database, job: str) -> bytes:
    return b"".join(read_log(database, job, attempt=None, name="output"))


def test_logs_and_samples_go_and_the_job_stays(filled: Database) -> None:
    pruned = prune(filled, before=LONG_AFTER)
    assert pruned.jobs == 2
    assert pruned.log_bytes > 0
    with pytest.raises(InputError, match="pruned"):
        _log(filled, "failed")
    (attempt,) = job_details(filled, "failed").attempts
    assert usage(filled, attempt.ranks[0].id) == []
    assert attempt.ranks[0].diagnosis is not None


def test_failed_jobs_can_be_kept_with_what_they_share(filled: Database) -> None:
    assert prune(filled, before=LONG_AFTER, keep_failed=True).log_bytes == 0
    assert _log(filled, "failed") == b"hello\nworld\n"
    with pytest.raises(InputError, match="pruned"):
        _log(filled, "well")


def test_young_jobs_stay_as_they_are(filled: Database) -> None:
    assert prune(filled, before=START).jobs == 0
    assert _log(filled, "well") == b"hello\nworld\n"


def test_jobs_go_whole_when_that_is_asked(filled: Database) -> None:
    prune(filled, before=LONG_AFTER, whole=True)
    assert [job.id for job in find_jobs(filled)] == ["running"]


def test_one_job_goes_whole_and_what_others_share_stays(filled: Database, runs: Runs) -> None:
    delete_job(filled, "failed")
    assert not (runs.folder / "failed").exists()
    assert sweep(filled, runs.folder) == 0
    assert sorted(job.id for job in find_jobs(filled)) == ["running", "well"]
    assert _log(filled, "well") == b"hello\nworld\n"
    delete_job(filled, "well")
    with filled.read() as session:
        for table in (schema.Chunk, schema.OutputChunk, schema.FailureRow, schema.SampleRow):
            assert session.scalar(select(func.count()).select_from(table)) == 0


def test_a_job_that_runs_or_is_not_there_is_not_deleted(filled: Database, runs: Runs) -> None:
    with pytest.raises(RunningError, match="still running"):
        delete_job(filled, "running")
    with pytest.raises(InputError, match="no such job"):
        delete_job(filled, "nothing")
    assert (runs.folder / "running").exists()


def test_folders_go_only_when_the_store_has_them_whole(filled: Database, runs: Runs) -> None:
    journal = runs.folder / "well" / "1" / "journal.jsonl"
    with journal.open("ab") as file:
        file.write(b"not yet taken in")
    assert prune_folders(filled, runs.folder, before=LONG_AFTER) == 0  # It was written just now.
    assert prune_folders(filled, runs.folder, before=time.time() + 1) == 1
    assert not (runs.folder / "failed" / "1").exists()
    assert journal.exists()
    assert (runs.folder / "running" / "1").exists()
