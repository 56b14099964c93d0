"""Journals become rows: every record once, whatever happens in between."""

from __future__ import annotations

import random
import signal
import socket
import string
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select

from epochzero.errors import InputError
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import End, JobProgress, Note, Output, Record, Sample
from epochzero.store import recorder, schema
from epochzero.store.database import Database, open_database
from epochzero.store.job_details import job_details, read_log
from epochzero.store.queries import JobFilter, find_jobs
from epochzero.store.recorder import THIS_MACHINE, Origin, mark_lost, sweep, take_in, take_in_all
from tests.store.jobs import START, Runs, started, whole


def _count(database: Database, table: type[schema.Base]) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_a_failed_attempt_is_all_there(database: Database, runs: Runs) -> None:
    records = whole()
    assert take_in(database, runs.write(records)) == len(records)
    (job,) = find_jobs(database)
    assert (job.state, job.category, job.fingerprint) == ("failed", "key_not_found", "1:abc")
    assert (job.gpus, job.gpu_hours, job.attempts) == (8, 4.0, 1)
    details = job_details(database, "job1")
    (attempt,) = details.attempts
    (rank,) = attempt.ranks
    assert details.command == ("python", "train.py")
    assert (rank.exit_code, rank.state) == (1, "failed")
    assert rank.snapshot["packages"] == {"torch": "2.13.0"}
    assert rank.progress is not None
    assert rank.progress["step"] == 120
    assert rank.diagnosis is not None
    assert rank.diagnosis["root"]["text"] == "KeyError: 'lr'"
    assert [finding["rule"] for finding in rank.findings] == ["key-missing"]
    assert [item["path"] for item in rank.ranking] == ["train.py"]
    assert [event["details"] for event in rank.events] == [{"1": "stack"}]
    assert [decision["action"] for decision in rank.decisions] == ["stop"]
    assert [note["author"] for note in rank.notes] == ["bea"]
    assert b"".join(read_log(database, "job1", attempt=None, name="output")) == b"hello\nworld\n"


def test_taking_in_again_changes_nothing(database: Database, runs: Runs) -> None:
    journal = runs.write(whole())
    take_in(database, journal)
    before = job_details(database, "job1")
    assert take_in(database, journal) == 0
    assert sweep(database, runs.folder) == 0
    assert job_details(database, "job1") == before


def test_what_comes_later_is_added(database: Database, runs: Runs) -> None:
    journal = runs.write([started()])
    take_in(database, journal)
    (job,) = find_jobs(database)
    assert (job.state, job.ended) == ("running", None)
    more = Journal(journal.parent)
    more.write(Sample(START + 1, 1.0, 1, 5.0, 1, 1))
    more.write(End(START + 3600, 3600.0, 0))
    more.close()
    assert take_in(database, journal) == 2
    (job,) = find_jobs(database)
    assert (job.state, job.gpu_hours) == ("succeeded", 8.0)


def test_a_job_with_a_name_that_no_index_takes_is_kept(database: Database, runs: Runs) -> None:
    # An index is compressed: only what is random is too long for it.
    name = "".join(random.Random(0).choices(string.ascii_letters, k=20_000))
    output = Output(START + 1, 1.0, name, (), 0)
    runs.write([replace(started(), name=name), output, End(START + 1, 1.0, 0)])
    sweep(database, runs.folder)
    (job,) = find_jobs(database)
    assert len(job.name) == 300
    with database.read() as session:
        assert [len(kept) for kept in session.scalars(select(schema.OutputRow.name))] == [300]


def test_a_retry_is_an_attempt_of_the_same_job(database: Database, runs: Runs) -> None:
    runs.write(whole())
    runs.write(whole(attempt=2, exit_code=0, time=START + 2000))
    sweep(database, runs.folder)
    (job,) = find_jobs(database)
    assert (job.attempts, job.state, job.gpu_hours, job.category) == (2, "succeeded", 8.0, "")
    assert [attempt.state for attempt in job_details(database, "job1").attempts] == [
        "failed",
        "succeeded",
    ]


def test_one_failed_rank_fails_the_attempt(database: Database, runs: Runs) -> None:
    for rank in range(4):
        runs.write(whole(rank=rank, exit_code=int(rank == 2), world_size=4), name=f"1-r{rank}")
    sweep(database, runs.folder)
    (attempt,) = job_details(database, "job1").attempts
    assert attempt.state == "failed"
    assert [rank.state for rank in attempt.ranks] == ["succeeded"] * 2 + ["failed", "succeeded"]
    assert attempt.gpu_hours == 4.0


def test_many_may_take_in_the_same_journals_at_once(address: str, runs: Runs) -> None:
    journals = [runs.write(whole(rank=rank), name=f"1-r{rank}") for rank in range(8)]
    open_database(address).close()

    def take_all(number: int) -> None:
        database = open_database(address)
        for journal in random.Random(number).sample(journals, len(journals)):
            take_in(database, journal)
        database.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take_all, range(4)))
    database = open_database(address)
    assert _count(database, schema.JobRow) == 1
    assert _count(database, schema.Rank) == 8
    assert _count(database, schema.SampleRow) == 80
    assert _count(database, schema.FailureRow) == 8
    database.close()


_KILLED = (
    "import sys; from pathlib import Path\n"
    "from epochzero.store.database import open_database\n"
    "from epochzero.store.recorder import take_in\n"
    "database = open_database(sys.argv[1]); print('ready', flush=True)\n"
    "take_in(database, Path(sys.argv[2]))\n"
)


def test_a_killed_recorder_leaves_no_record_out_and_none_twice(address: str, runs: Runs) -> None:
    notes = [Note(START + n, float(n), str(n)) for n in range(20_000)]
    journal = runs.write([started(), *notes])
    draw = random.Random(7)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", _KILLED, address, str(journal)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(draw.uniform(0.0, 0.4))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    database = open_database(address)
    take_in(database, journal)
    with database.read() as session:
        texts = session.scalars(select(schema.NoteRow.text).order_by(schema.NoteRow.sequence)).all()
    database.close()
    assert [int(text) for text in texts] == list(range(20_000))


def test_a_supervisor_that_died_leaves_a_lost_attempt(database: Database, runs: Runs) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    take_in(database, runs.write([started(pid=child.pid)]))
    take_in(database, runs.write([started("job2")]))
    mark_lost(database, now=START + 30)
    assert {job.state for job in find_jobs(database)} == {"running"}
    mark_lost(database, now=START + 90)
    assert {job.id: job.state for job in find_jobs(database)} == {"job1": "lost", "job2": "running"}


def test_the_end_of_a_lost_attempt_counts_when_it_comes_after_all(
    database: Database, runs: Runs
) -> None:
    journal = runs.write([started(host="elsewhere")])
    take_in(database, journal)
    mark_lost(database, now=time.time() + 3500)
    assert [job.state for job in find_jobs(database)] == ["running"]
    mark_lost(database, now=time.time() + 3700)
    assert [job.state for job in find_jobs(database)] == ["lost"]
    with open(journal.parent / "output.log", "ab") as log:
        log.write(b"and more\n")
    more = Journal(journal.parent)
    more.write(JobProgress(START + 8000, 8000.0, step=1))
    take_in(database, journal)
    assert [job.state for job in find_jobs(database)] == ["running"]
    more.write(End(START + 9000, 9000.0, 0))
    more.close()
    take_in(database, journal)
    (job,) = find_jobs(database, JobFilter(state="succeeded"))
    assert job.ended == START + 9000
    log_of_it = b"".join(read_log(database, "job1", attempt=None, name="output"))
    assert log_of_it == b"hello\nworld\nand more\n"


def test_a_number_that_no_process_has_is_lost_and_breaks_nothing(
    database: Database, runs: Runs
) -> None:
    take_in(database, runs.write([started(pid=2**50)]))
    mark_lost(database)
    assert [job.state for job in find_jobs(database)] == ["lost"]


def test_journals_of_a_service_are_known_again_on_another_host(
    database: Database, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = runs.write(whole())
    origin = Origin("red", place="service")
    assert take_in(database, journal, origin) > 0
    monkeypatch.setattr(socket, "gethostname", lambda: "moved")
    assert take_in(database, journal, origin) == 0


def test_a_clock_that_is_set_back_changes_no_cost(database: Database, runs: Runs) -> None:
    records = [
        started(),
        Sample(START - 3000, 600.0, 1, 100.0, 1, 1),
        End(START - 1800, 1800.0, 0),
    ]
    take_in(database, runs.write(records))
    (job,) = find_jobs(database)
    assert (job.state, job.gpu_hours) == ("succeeded", 4.0)


def test_a_journal_that_says_nothing_is_told_and_swept_over(database: Database, runs: Runs) -> None:
    journal = runs.write([started()])
    journal.write_bytes(journal.read_bytes()[20:])
    runs.write(whole("job2"))
    with journal.open("ab") as file:
        file.write(b"")
    sweep(database, runs.folder)
    assert [job.id for job in find_jobs(database)] == ["job2"]
    headless = Journal(runs.folder / "job3" / "1")
    headless.write(End(START, 1.0, 0))
    headless.close()
    with pytest.raises(InputError, match="does not name its job"):
        take_in(database, headless.path)


def test_a_journal_cannot_bring_files_of_others_into_the_store(
    database: Database, runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(b"mine")
    records = [
        started(),
        Output(START, 1.0, "output", ("../../../secret",), 4),
        End(START, 1.0, 0),
    ]
    take_in(database, runs.write(records))
    assert _count(database, schema.Chunk) == 0


def _refuse_the_end(record: Record) -> Record:
    if isinstance(record, End):
        raise InputError("no end")
    return record


def test_a_journal_that_is_refused_does_not_hold_up_those_with_it(
    database: Database, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_RECORDS_AT_ONCE", 6)
    journals = dict.fromkeys((runs.write(whole("job1")), runs.write(whole("job3"))), THIS_MACHINE)
    refused = runs.write(whole("job2"))
    found = take_in_all(database, {**journals, refused: Origin(record=_refuse_the_end)})
    assert [found[journal] for journal in journals] == [len(whole())] * 2
    assert isinstance(found[refused], InputError)
    assert {job.id: job.state for job in find_jobs(database)} == {
        "job1": "failed",
        "job2": "running",
        "job3": "failed",
    }


def test_a_sweep_reads_only_what_has_grown(
    database: Database, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_in(database, runs.write(whole("job1")))
    grown = runs.write([started("job2")])
    read = []
    monkeypatch.setattr(
        recorder, "read_journal", lambda journal, start: read.append(journal) or iter(())
    )
    sweep(database, runs.folder)
    assert set(read) == {grown}
