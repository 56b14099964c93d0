"""A store in one file and back, from each database into each."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from epochzero.errors import InputError
from epochzero.store.backup import back_up, restore
from epochzero.store.database import Database, open_database
from epochzero.store.job_details import job_details, read_log
from epochzero.store.queries import find_jobs
from epochzero.store.recorder import take_in
from epochzero.store.teams import add_team, add_token, viewer_of
from tests.store.jobs import Runs, whole


def filled(database: Database, runs: Runs) -> str:
    """A store with a job and a token, which is returned."""
    take_in(database, runs.write(whole()))
    add_team(database, "red")
    return add_token(database, "red", "ann", "reader")


def test_a_backup_gives_all_back(database: Database, runs: Runs, tmp_path: Path) -> None:
    token = filled(database, runs)
    rows = back_up(database, tmp_path / "backup")
    other = open_database(tmp_path / "other.db")
    assert restore(other, tmp_path / "backup") == rows
    assert find_jobs(other) == find_jobs(database)
    assert job_details(other, "job1") == job_details(database, "job1")
    assert b"".join(read_log(other, "job1", attempt=None, name="output")) == b"hello\nworld\n"
    assert viewer_of(other, token) == viewer_of(database, token)


def test_after_a_restore_new_rows_are_counted_on(
    database: Database, runs: Runs, tmp_path: Path
) -> None:
    other = open_database(tmp_path / "other.db")
    filled(other, runs)
    back_up(other, tmp_path / "backup")
    restore(database, tmp_path / "backup")
    take_in(database, runs.write(whole("job2")))
    assert len(find_jobs(database)) == 2


def test_a_backup_while_jobs_arrive_has_all_before_it_and_each_whole(
    database: Database, runs: Runs, tmp_path: Path
) -> None:
    stored: list[str] = []
    enough, stop = threading.Event(), threading.Event()

    def send() -> None:
        for number in range(200):
            take_in(database, runs.write(whole(f"job{number}")))
            stored.append(f"job{number}")
            if number == 5:
                enough.set()
            if stop.is_set():
                return

    sender = threading.Thread(target=send)
    sender.start()
    try:
        assert enough.wait(60)
        before = set(stored)
        back_up(database, tmp_path / "backup")
    finally:
        stop.set()
        sender.join()

    other = open_database(tmp_path / "other.db")
    restore(other, tmp_path / "backup")
    jobs = {job.id for job in find_jobs(other)}
    assert before <= jobs <= set(stored)
    for job in jobs:
        assert job_details(other, job) == job_details(database, job)
        assert b"".join(read_log(other, job, attempt=None, name="output")) == b"hello\nworld\n"


@pytest.mark.parametrize("damage", ["cut", "text", "full"])
def test_what_cannot_be_restored_changes_nothing(
    database: Database, runs: Runs, tmp_path: Path, damage: str
) -> None:
    filled(database, runs)
    file = tmp_path / "backup"
    back_up(database, file)
    other = open_database(tmp_path / "other.db")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-40])
    elif damage == "text":
        file.write_text("no backup")
    else:
        restore(other, file)
    before = find_jobs(other)
    with pytest.raises(InputError):
        restore(other, file)
    assert find_jobs(other) == before
    with pytest.raises(InputError, match="already exists"):
        back_up(database, file)


def test_a_backup_is_its_owners_alone(database: Database, tmp_path: Path) -> None:
    back_up(database, tmp_path / "store.zst")
    assert stat.S_IMODE((tmp_path / "store.zst").stat().st_mode) == 0o600
