"""Who is to be told of failures: once each, whoever is killed, and whoever writes at the same time."""

from __future__ import annotations

import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from epochzero.errors import InputError
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import Conclusion
from epochzero.store.audit import acts
from epochzero.store.daily_counts import Period
from epochzero.store.database import Database
from epochzero.store.failure_notes import resolve
from epochzero.store.outbox import begin, due, settle
from epochzero.store.overview import fingerprints
from epochzero.store.queries import JobFilter, find_jobs
from epochzero.store.recorder import Ending, Origin, add_endings, take_in
from epochzero.store.retention import delete_job
from epochzero.store.webhooks import add_rule, remove_rule
from epochzero.web.notices import failure_notice
from tests.store.jobs import DIAGNOSIS, START, Runs, whole

RED = Origin("red", tells=True)


def ending(
    job: str, *, at: float = START, attempt: int = 1, fingerprint: str = "1:abc", gpus: int = 8
) -> Ending:
    diagnosis = DIAGNOSIS | {"fingerprint": fingerprint}
    kept = [
        replace(one, diagnosis=diagnosis) if isinstance(one, Conclusion) else one
        for one in whole(job, attempt, time=at, gpus=gpus)
    ]
    return Ending(f"service:/red/{job}/{attempt}", kept, io.BytesIO(b"log\n"), RED)


def owed(database: Database) -> list[tuple[str, int, str]]:
    found = []
    while one := next(iter(due(database, time.time())), None):
        assert begin(database, one, time.time() + 60)
        found.append((one.job, one.attempt, one.url))
    return found


def test_a_failure_is_owed_by_the_rules_of_its_team_once_an_attempt(database: Database) -> None:
    for team in ("red", "blue"):
        add_rule(database, team, f"https://{team}.example.org/new", "new_fingerprint")
    add_rule(database, "red", "https://red.example.org/new", "gpu_hours", 1.0)
    add_rule(database, "red", "https://red.example.org/dear", "gpu_hours", 3.9)
    first, cheap = ending("a"), ending("b", at=START + 10, gpus=1)
    add_endings(database, [cheap, first])
    add_endings(database, [first, cheap])
    add_endings(database, [ending("a", attempt=2, at=START + 9000)])
    assert sorted(owed(database)) == [
        ("red.a", 1, "https://red.example.org/dear"),
        ("red.a", 1, "https://red.example.org/new"),
        ("red.a", 2, "https://red.example.org/dear"),
        ("red.a", 2, "https://red.example.org/new"),
    ]


def test_a_failure_that_is_back_after_it_was_resolved_is_told_as_such(database: Database) -> None:
    add_rule(database, "red", "https://example.org/", "new_fingerprint")
    add_endings(database, [ending("a")])
    resolve(database, "red", "1:abc", "ann", "fixed")
    now = time.time()
    add_endings(database, [ending(job, at=now + n) for n, job in enumerate("bc", 1)])
    assert [job for job, _, _ in owed(database)] == ["red.a", "red.b"]
    titles = [failure_notice(database, f"red.{job}", 1).title for job in "abc"]
    assert [title.startswith("Back after it was resolved") for title in titles] == [0, 1, 0]


def test_failures_with_a_weak_fingerprint_are_not_grouped(database: Database) -> None:
    add_rule(database, "red", "https://example.org/", "new_fingerprint")
    add_endings(database, [ending("a", fingerprint="2w:1"), ending("b", fingerprint="2w:1")])
    period = Period(START - 1, START + 86_400)
    assert fingerprints(database, "red", period) == []
    assert owed(database) == [], "whether it is new is not known"
    failed = find_jobs(database, JobFilter(team="red"))
    assert [(job.fingerprint, job.category) for job in failed] == [("", DIAGNOSIS["category"])] * 2


def test_a_journal_that_comes_in_parts_is_owed_at_its_end(database: Database, runs: Runs) -> None:
    add_rule(database, "red", "https://example.org/", "new_fingerprint")
    *begun, concluded, decision, note = whole()
    journal = runs.write(begun)
    take_in(database, journal, RED)
    assert due(database, time.time()) == []  # It is not known why it failed.
    rest = Journal(journal.parent)
    for record in (concluded, decision, note):
        rest.write(record)
    rest.close()
    take_in(database, journal, RED)
    assert owed(database) == [("red.job1", 1, "https://example.org/")]


def test_what_runs_on_this_machine_tells_nobody(database: Database, runs: Runs) -> None:
    add_rule(database, "", "https://example.org/", "new_fingerprint")
    take_in(database, runs.write(whole()))
    assert due(database, time.time()) == []


def test_what_was_begun_comes_again_unless_it_is_settled(database: Database) -> None:
    add_rule(database, "red", "https://example.org/", "new_fingerprint")
    add_endings(database, [ending("a")])
    now = time.time()
    (one,) = due(database, now)
    assert begin(database, one, now + 30)
    assert not begin(database, one, now + 30)  # Another service was faster.
    assert due(database, now) == []
    (again,) = due(database, now + 31)
    assert (again.identity, again.tried) == (one.identity, 1)
    settle(database, again, "webhook not notified", "example.org: red.a: no", again=now + 90)
    assert due(database, now + 89) == []
    (last,) = due(database, now + 91)
    settle(database, last, "webhook notified", "example.org: red.a")
    assert due(database, now + 1e6) == []
    assert [act.action for act in acts(database, "red")] == [
        "webhook notified",
        "webhook not notified",
    ]


def test_each_team_has_its_turn(database: Database) -> None:
    for team in ("red", "blue"):
        add_rule(database, team, "https://example.org/", "gpu_hours", 0.0)
    for team in ("red", "blue"):
        for number in range(3):
            one = ending(f"{team}{number}")
            add_endings(database, [replace(one, origin=Origin(team, tells=True))])
    assert {one.team for one in due(database, time.time())} == {"red", "blue"}
    assert [one.team for one in due(database, time.time(), without=["red"])] == ["blue"]


def test_what_is_taken_away_is_not_told(database: Database) -> None:
    rule = add_rule(database, "red", "https://example.org/", "new_fingerprint")
    add_rule(database, "red", "https://example.org/dear", "gpu_hours", 1.0)
    add_endings(database, [ending("a"), ending("b", fingerprint="1:b")])
    delete_job(database, "red.a", RED)
    remove_rule(database, "red", rule.id)
    assert owed(database) == [("red.b", 1, "https://example.org/dear")]


def test_of_very_many_failures_at_once_the_team_is_told_how_many_it_is_not_told(
    database: Database,
) -> None:
    add_rule(database, "red", "https://example.org/", "new_fingerprint")
    add_endings(database, [ending(f"j{n}", fingerprint=f"1:{n}") for n in range(203)])
    (act,) = acts(database, "red")
    assert (act.action, act.object) == (
        "webhook not notified",
        "3 failures dropped: too many notifications are waiting",
    )
    assert len(owed(database)) == 200


def test_of_two_who_write_the_same_new_failure_at_once_one_is_told(database: Database) -> None:
    add_rule(database, "red", "https://example.org/", "new_fingerprint")
    for number in range(5):
        start = threading.Barrier(2)
        jobs = [ending(f"{name}{number}", fingerprint=f"1:{number}") for name in "ab"]

        def add(one: Ending, start: threading.Barrier = start) -> None:
            start.wait()
            add_endings(database, [one])

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(add, jobs))
    assert sorted(job[-1] for job, _, _ in owed(database)) == list("01234")


def test_a_rule_of_hours_says_how_many(database: Database) -> None:
    with pytest.raises(InputError, match="number of hours"):
        add_rule(database, "red", "https://example.org/", "gpu_hours")
