"""Sums of days that are over say what the jobs say, whatever became of the jobs since."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, update

from epochzero.store import schema
from epochzero.store.backup import back_up, restore
from epochzero.store.daily_counts import BLOCK, DAY_S, END, WINDOWS, Period, sum_up, uncounted
from epochzero.store.database import Database, open_database
from epochzero.store.differences import target_counts
from epochzero.store.failure_notes import merge
from epochzero.store.overview import FAILED, by_day, counts, fingerprints, overview
from epochzero.store.retention import prune
from epochzero.store.schema import Counted, JobRow, KnownFailure, StaleDay

FIRST = 640 * BLOCK
"""A day on which a block begins."""
TODAY = FIRST + BLOCK + 3
NOW = TODAY * DAY_S + 1000.0
DERIVED = [table for table in schema.Base.metadata.sorted_tables if table.info.get("derived")]
PERIODS = (
    Period((FIRST - 2.0) * DAY_S, (TODAY + 1.0) * DAY_S),
    Period(FIRST * DAY_S, (FIRST + BLOCK) * DAY_S),
    Period((FIRST + 3.0) * DAY_S, (FIRST + BLOCK + 1.0) * DAY_S),
    Period((FIRST + 1.3) * DAY_S, END),
    Period((TODAY + 5.0) * DAY_S, (TODAY + 6.0) * DAY_S),
    Period((TODAY - WINDOWS[1]) * DAY_S, (TODAY + 1.0) * DAY_S),
)

days = st.sampled_from(
    [FIRST - 1, FIRST, FIRST + 1, FIRST + BLOCK - 1, FIRST + BLOCK, TODAY - 1, TODAY, TODAY + 1]
)
jobs = st.fixed_dictionaries(
    {
        "started": st.builds(lambda day, share: (day + share) * DAY_S, days, st.sampled_from([0.0, 0.5, 0.99])),
        "state": st.sampled_from(["failed", "lost", "succeeded", "running"]),
        "category": st.sampled_from(["key_not_found", "gpu_out_of_memory"]),
        "fingerprint": st.sampled_from(["", "1:a", "1:b", "1:c"]),
        "target": st.sampled_from(["", "cluster"]),
        "gpu_hours": st.sampled_from([0.0, 1.5, 8.0]),
        "wasted_gpu_hours": st.sampled_from([0.0, 0.5]),
        "caught": st.sampled_from([0, 1]),
        "team": st.sampled_from(["", "red"]),
    }
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 9), jobs),
    st.tuples(st.just("change"), st.integers(0, 9), jobs),
    st.tuples(st.just("delete"), st.integers(0, 9), st.none()),
    st.tuples(st.just("sum"), st.none(), st.none()),
    st.tuples(st.just("merge"), st.sampled_from(["1:a", "1:b"]), st.sampled_from(["", "1:c"])),
)


def job(number: int, **values: Any) -> JobRow:
    known: dict[str, Any] = {
        "id": f"j{number}", "name": "train", "command": [], "folder": "/", "user": "ann", "host": "node1",
        "launcher": "", "target": "", "scheduler": {}, "gpus": 1, "started": FIRST * DAY_S + 1.0,
        "state": "failed", "attempts": 1, "gpu_hours": 1.0, "category": "key_not_found",
        "fingerprint": "1:a", "ended": NOW,
    }  # fmt: skip
    return JobRow(**(known | values))


def sum_up_all(database: Database, team: str = "") -> None:
    while missing := uncounted(database, team, now=NOW):
        for one in missing:
            sum_up(database, team, one, now=NOW)


def all_jobs(database: Database, team: str = "") -> list[JobRow]:
    with database.read() as session:
        found = session.scalars(select(JobRow).where(JobRow.team == team)).all()
        session.expunge_all()
        return list(found)


def within(found: Iterable[JobRow], period: Period) -> list[JobRow]:
    return [one for one in found if period.since <= one.started < period.until]


def check(database: Database, team: str, period: Period, merged: dict[str, str]) -> None:
    """All that is asked of sums, beside the same counted by hand."""
    every = all_jobs(database, team)
    there = within(every, period)

    by_hand: defaultdict[tuple[object, ...], list[float]] = defaultdict(
        lambda: [0, 0.0, 0.0, 0, 0.0]
    )
    for one in there:
        row = by_hand[int(one.started // DAY_S), one.state, one.category]
        costs = (1, one.gpu_hours, one.wasted_gpu_hours, one.caught, one.caught * one.gpu_hours)
        row[:] = [sum(pair) for pair in zip(row, costs, strict=True)]
    found = counts(database, team, period)
    assert {(one.day, one.state, one.category): [
        one.jobs, one.gpu_hours, one.wasted_gpu_hours, one.caught, one.caught_gpu_hours
    ] for one in found} == dict(by_hand)  # fmt: skip
    assert len(found) == len(by_hand)
    of_three: defaultdict[tuple[object, ...], int] = defaultdict(int)
    first = int(period.since // DAY_S)
    for one in found:
        of_three[first + (one.day - first) // 3 * 3, one.state, one.category] += one.jobs
    assert {
        (one.day, one.state, one.category): one.jobs
        for one in counts(database, team, period, days=3)
    } == dict(of_three)

    for target in target_counts(database, team, period):
        ours = [one for one in there if one.target == target.target]
        failed = [one for one in ours if one.state in FAILED]
        assert target.jobs == len(ours)
        assert (target.failed, target.gpu_hours_lost) == (
            len(failed),
            sum(one.gpu_hours for one in failed),
        )
        assert target.last == max(one.started for one in ours)

    groups: defaultdict[str, list[JobRow]] = defaultdict(list)
    for one in there:
        if one.fingerprint:
            groups[merged.get(one.fingerprint) or one.fingerprint].append(one)
    old = {
        merged.get(one.fingerprint) or one.fingerprint
        for one in every
        if one.started < period.since
    }
    shown = fingerprints(database, team, period)
    assert {one.fingerprint: (one.jobs, one.gpu_hours, one.first, one.last, one.new) for one in shown} == {
        name: (len(ours), sum(one.gpu_hours for one in ours), min(one.started for one in ours),
               max(one.started for one in ours), name not in old)
        for name, ours in groups.items()
    }  # fmt: skip
    assert [one.jobs for one in shown] == sorted((one.jobs for one in shown), reverse=True)
    new = fingerprints(database, team, period, only_new=True)
    assert new == [one for one in shown if one.new]
    other = PERIODS[2]
    met = {merged.get(one.fingerprint) or one.fingerprint for one in within(every, other)}
    assert fingerprints(database, team, period, but_not_in=other) == [
        one for one in shown if one.fingerprint not in met
    ]
    days = by_day(database, team, period, [one.fingerprint for one in shown])
    begin = int(period.since // DAY_S)
    for name, ours in groups.items():
        found_days = Counter(int(one.started // DAY_S) - begin for one in ours)
        assert {day: jobs for day, jobs in enumerate(days[name]) if jobs} == found_days


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, max_size=12))
def test_sums_say_what_the_jobs_say(database: Database, done: list[tuple[str, Any, Any]]) -> None:
    with database.write() as session:
        for table in ("jobs", "known_failures", *(one.name for one in DERIVED)):
            session.execute(delete(schema.Base.metadata.tables[table]))
    merged: dict[str, str] = {}
    for what, which, value in done:
        with database.write() as session:
            if what == "add" and session.get(JobRow, f"j{which}") is None:
                session.add(job(which, **value))
            elif what == "change":
                session.execute(update(JobRow).where(JobRow.id == f"j{which}").values(**value))
            elif what == "delete":
                session.execute(delete(JobRow).where(JobRow.id == f"j{which}"))
            elif what == "merge":
                merged[which] = value
                row = {"resolution": "", "resolved_by": "", "merged_into": value}
                session.merge(KnownFailure(team="", fingerprint=which, **row))
        if what == "sum":
            sum_up_all(database)
    for _ in range(2):
        for period in PERIODS:
            check(database, "", period, merged)
        check(database, "red", PERIODS[0], {})
        sum_up_all(database)
    assert uncounted(database, "", now=NOW) == []


def test_what_is_summed_up_is_read_and_what_is_not_right_any_more_is_not(
    database: Database,
) -> None:
    with database.write() as session:
        session.add_all([job(1), job(2, started=(FIRST + 5.0) * DAY_S), job(3, started=NOW)])
    sum_up_all(database)
    with database.write() as session:  # Nobody but this test writes sums by hand.
        session.execute(update(schema.DayCount).values(jobs=100))
        session.execute(update(schema.FailureCount).values(jobs=100))
    assert [one.jobs for one in counts(database, "", PERIODS[0])] == [100, 100, 1]
    assert fingerprints(database, "", PERIODS[0])[0].jobs == 101
    with database.write() as session:
        session.execute(update(JobRow).where(JobRow.id == "j2").values(state="lost"))
    assert [one.jobs for one in counts(database, "", PERIODS[0])] == [100, 1, 1]
    sum_up_all(database)
    assert [one.jobs for one in counts(database, "", PERIODS[0])] == [100, 1, 1]


def test_recent_days_are_read_as_windows(database: Database) -> None:
    def sizes() -> set[int]:
        with database.read() as session:
            return set(session.scalars(select(Counted.days)))

    with database.write() as session:
        session.add(job(1))
    sum_up_all(database)
    assert sizes() == {1, BLOCK, WINDOWS[0], WINDOWS[1] - WINDOWS[0]}
    with database.write() as session:
        session.add(job(2, started=(TODAY - 1) * DAY_S))
    sum_up(database, "", (BLOCK, FIRST + BLOCK), now=NOW)
    assert sizes() == {1, BLOCK, WINDOWS[1] - WINDOWS[0]}
    assert fingerprints(database, "", PERIODS[0])[0].jobs == 2


def test_a_job_that_runs_on_does_not_unsettle_its_day(database: Database) -> None:
    with database.write() as session:
        session.add(job(1))
    sum_up_all(database)
    with database.write() as session:
        session.execute(update(JobRow).values(ended=NOW + 1))
    assert uncounted(database, "", now=NOW) == []


def test_a_clock_that_is_wrong_by_centuries_costs_nothing(database: Database) -> None:
    with database.write() as session:
        session.add_all([job(1, started=-5.0), job(2, started=1e15), job(3)])
    sum_up_all(database)
    assert uncounted(database, "", now=NOW) == []
    assert overview(database, "").jobs == 1
    with database.write() as session:
        session.execute(delete(JobRow))
    assert counts(database, "", PERIODS[0]) == []


def test_many_days_that_are_not_right_are_read_all_the_same(database: Database) -> None:
    every = [job(day, started=(FIRST - 5 * BLOCK + day) * DAY_S + 1.0) for day in range(5 * BLOCK)]
    with database.write() as session:
        session.add_all(every)
    sum_up_all(database)
    with database.write() as session:
        session.add_all(
            [StaleDay(team="", day=FIRST - 5 * BLOCK + day) for day in range(0, 5 * BLOCK, 2)]
        )
    assert overview(database, "").jobs == len(every)


def test_jobs_that_are_thrown_away_are_counted_no_more(database: Database) -> None:
    with database.write() as session:
        session.add_all([job(1, ended=FIRST * DAY_S + 60.0), job(2)])
    sum_up_all(database)
    prune(database, before=FIRST * DAY_S + 100.0, whole=True)
    assert overview(database, "").jobs == 1
    sum_up_all(database)
    assert overview(database, "").jobs == 1


def test_merged_failures_are_one(database: Database) -> None:
    with database.write() as session:
        session.add_all([job(1), job(2, fingerprint="1:b"), job(3, fingerprint="1:c")])
    merge(database, "", "1:a", "1:b")
    found = {one.fingerprint: one.jobs for one in fingerprints(database, "", PERIODS[0])}
    assert found == {"1:b": 2, "1:c": 1}
    merge(database, "", "1:a", "")
    assert len(fingerprints(database, "", PERIODS[0])) == 3


def test_a_backup_does_without_sums_and_its_store_counts_again(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("backup")
    first = open_database(f"sqlite:///{folder}/first.db")
    with first.write() as session:
        session.add(job(1))
    sum_up_all(first)
    assert back_up(first, folder / "backup") == 1
    first.close()
    second = open_database(address)
    restore(second, folder / "backup")
    assert overview(second, "").jobs == 1
    sum_up_all(second)
    assert overview(second, "").jobs == 1
    second.close()


def test_who_sums_up_waits_for_who_writes(database: Database) -> None:
    """Otherwise a job that is written meanwhile would be of a day that is thought to be right."""
    with database.write() as session:
        session.add(job(1))
    began = threading.Event()
    done = threading.Event()

    def write() -> None:
        with database.write() as session:
            session.add(job(2))
            session.flush()
            began.set()
            time.sleep(0.5)

    def count() -> None:
        began.wait()
        sum_up_all(database)
        done.set()

    threads = [threading.Thread(target=write), threading.Thread(target=count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.is_set()
    with database.read() as session:
        assert session.scalars(select(Counted)).first() is not None
    assert overview(database, "").jobs == 2
