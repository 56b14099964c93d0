"""Many attempts at once become the same rows as one after the other, each once."""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select

from epochzero.errors import InputError
from epochzero.run.records.model import Output, Start
from epochzero.store import schema
from epochzero.store.database import Database, StoreAwayError, open_database
from epochzero.store.job_details import JobDetails, job_details, read_log
from epochzero.store.queries import JobFilter, find_jobs
from epochzero.store.recorder import (
    THIS_MACHINE,
    Ending,
    Origin,
    add_endings,
    sweep,
    take_in,
    take_in_all,
)
from tests.store.jobs import START, Runs, whole


def _ending(number: int, *, job: str = "", **values: Any) -> Ending:
    """A job of its own; every third has ended well."""
    job = job or f"job{number}"
    records = whole(job, exit_code=min(1, number % 3), time=START + number, **values)
    return Ending(
        f"service:/red/{job}/{number}", records, io.BytesIO(b"step %d\n" % number), Origin("red")
    )


def _told(database: Database, job: str) -> JobDetails:
    """All that is known of a job but the number of its rank's row."""
    found = job_details(database, job)
    attempts = tuple(
        replace(attempt, ranks=tuple(replace(rank, id=0) for rank in attempt.ranks))
        for attempt in found.attempts
    )
    return replace(found, attempts=attempts)


def _count(database: Database, table: type[schema.Base]) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


@contextmanager
def _statements(database: Database) -> Iterator[list[str]]:
    """Those that a database executes meanwhile."""
    seen: list[str] = []

    def note(*arguments: Any) -> None:
        seen.append(arguments[2])

    event.listen(database._engine, "before_cursor_execute", note)
    yield seen
    event.remove(database._engine, "before_cursor_execute", note)


def test_many_at_once_become_the_same_as_one_after_the_other(database: Database) -> None:
    several = [_ending(number) for number in range(6)]
    assert len(add_endings(database, several)) == 6
    for number in range(6):
        other = _ending(number, job=f"other{number}")
        add_endings(database, [other])
        at_once = _told(database, f"red.job{number}")
        alone = _told(database, f"red.other{number}")
        assert alone.attempts == at_once.attempts
        assert replace(alone.summary, id="") == replace(at_once.summary, id="")
        log = read_log(database, f"red.job{number}", attempt=None, name="output")
        assert b"".join(log) == b"step %d\n" % number
    states = [job.state for job in find_jobs(database, JobFilter(team="red"))]
    assert sorted(states) == ["failed"] * 8 + ["succeeded"] * 4


def test_an_ending_becomes_the_same_as_a_journal(database: Database, runs: Runs) -> None:
    records = whole()
    take_in(database, runs.write(records))
    again = [replace(records[0], job="job2"), *records[1:]]
    add_endings(database, [Ending("service://job2/1", again, io.BytesIO(b"hello\nworld\n"))])
    journal, ending = _told(database, "job1"), _told(database, "job2")
    assert journal.attempts == ending.attempts
    assert replace(journal.summary, id="") == replace(ending.summary, id="")


def test_a_journal_and_attempts_without_one_may_be_of_the_same_job(
    database: Database, runs: Runs
) -> None:
    take_in(database, runs.write(whole()))
    more = [
        Ending(
            f"service://job1/{number}",
            whole(attempt=number, time=START + 3600 * number),
            io.BytesIO(),
        )
        for number in (2, 3)
    ]
    add_endings(database, more)
    (job,) = find_jobs(database)
    assert (job.attempts, job.state, job.gpu_hours) == (3, "failed", 12.0)


def test_more_jobs_take_no_more_statements(database: Database) -> None:
    with _statements(database) as few:
        add_endings(database, [_ending(3 * number + 1) for number in range(2)])
    with _statements(database) as many:
        add_endings(database, [_ending(3 * number + 1) for number in range(2, 32)])
    assert len(many) <= len(few)


def test_what_is_known_stays_as_it_is(database: Database) -> None:
    add_endings(database, [_ending(1)])
    before = _told(database, "red.job1")
    changed = replace(_ending(1), records=_ending(2, job="job1").records)
    assert add_endings(database, [changed, _ending(4), _ending(4)]) == {"service:/red/job4/4"}
    assert _told(database, "red.job1") == before


def test_a_job_that_is_none_leaves_all_others_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochzero.store.recorder._ENDINGS_AT_ONCE", 3)
    nameless = [one for one in whole("zzz") if not isinstance(one, Start)]
    several = [
        *(_ending(number) for number in range(8)),
        Ending("service:/z", nameless, io.BytesIO()),
    ]
    with pytest.raises(InputError, match="does not name its job"):
        add_endings(database, several)
    assert _count(database, schema.JobRow) == 0
    assert len(add_endings(database, several[:-1])) == 8
    assert _count(database, schema.Rank) == 8


def test_the_same_jobs_by_several_at_once_are_there_once(address: str) -> None:
    open_database(address).close()

    def add(shift: int) -> int:
        database = open_database(address)
        added = add_endings(database, [_ending((n + shift) % 20) for n in range(20)])
        database.close()
        return len(added)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, range(4))) == 20
    database = open_database(address)
    assert _count(database, schema.Rank) == 20
    assert _count(database, schema.FailureRow) == sum(number % 3 > 0 for number in range(20))
    database.close()


def test_a_journal_that_cannot_be_taken_in_does_not_hold_up_the_others(
    database: Database, runs: Runs
) -> None:
    good = [runs.write(whole(f"job{number}")) for number in range(3)]
    nameless = runs.write(whole("zzz"))
    lines = nameless.read_bytes().splitlines(keepends=True)
    nameless.write_bytes(b"".join(lines[1:]))
    gone = runs.folder / "none" / "1" / "journal.jsonl"
    found = take_in_all(database, dict.fromkeys([*good, nameless, gone], THIS_MACHINE))
    assert [found[journal] for journal in good] == [len(whole())] * 3
    assert "does not name its job" in str(found[nameless])
    assert isinstance(found[gone], InputError)
    assert len(find_jobs(database)) == 3


def test_journals_share_a_transaction(database: Database, runs: Runs) -> None:
    journals = [runs.write(whole(f"job{number}")) for number in range(8)]
    commits: list[object] = []
    event.listen(database._engine, "commit", commits.append)
    assert set(take_in_all(database, dict.fromkeys(journals, THIS_MACHINE)).values()) == {
        len(whole())
    }
    assert len(commits) == 2  # Of the last one it is seen that nothing is left.
    assert {job.state for job in find_jobs(database)} == {"failed"}


def test_a_journal_that_the_store_refuses_does_not_hold_up_the_others(
    database: Database, runs: Runs
) -> None:
    wrong = [replace(one, size=1 << 70) if isinstance(one, Output) else one for one in whole("b")]
    journals = [runs.write(records) for records in (whole("a"), wrong, whole("c"))]
    found = take_in_all(database, dict.fromkeys(journals, THIS_MACHINE))
    assert isinstance(found[journals[1]], Exception)
    assert {"a", "c"} <= {job.id for job in find_jobs(database)}


def test_a_store_that_others_have_locked_is_told_once(tmp_path: Path, runs: Runs) -> None:
    for number in range(5):
        runs.write(whole(f"job{number}"))
    database = open_database(tmp_path / "locked.db", busy=0.2)
    with database.write(), _statements(database) as tried, pytest.raises(StoreAwayError):
        sweep(database, runs.folder)
    assert sum(one.startswith("BEGIN IMMEDIATE") for one in tried) == 1
    assert sweep(database, runs.folder) == 5 * len(whole())
    database.close()
