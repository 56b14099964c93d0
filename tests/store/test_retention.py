"""What is thrown away, and what stays."""

from __future__ import annotations

import pytest
from store.jobs import START, Runs, started, whole

from epochzero.errors import InputError
from epochzero.store.database import Database
from epochzero.store.queries import find_jobs, job_details, read_log, usage
from epochzero.store.recorder import sweep
from epochzero.store.retention import prune, prune_folders

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


def test_folders_go_only_when_the_store_has_them_whole(filled: Database, runs: Runs) -> None:
    journal = runs.folder / "well" / "1" / "journal.jsonl"
    with journal.open("ab") as file:
        file.write(b"not yet taken in")
    assert prune_folders(filled, runs.folder, before=LONG_AFTER) == 1
    assert not (runs.folder / "failed" / "1").exists()
    assert journal.exists()
    assert (runs.folder / "running" / "1").exists()
