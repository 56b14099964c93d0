"""Questions to the store, on both engines."""

from __future__ import annotations

import itertools
import json

import pytest

from epochzero.errors import InputError
from epochzero.run.records.model import Sample
from epochzero.store.database import Database
from epochzero.store.job_details import job_details, usage
from epochzero.store.queries import JobFilter, find_job, find_jobs
from epochzero.store.recorder import sweep, take_in
from tests.store.jobs import START, Runs, started, whole


@pytest.fixture
def filled(database: Database, runs: Runs) -> Database:
    """Three jobs: one failed, one that ended well, one that runs."""
    runs.write(whole("aa1"))
    runs.write(whole("aa2", exit_code=0, time=START + 100, name="eval_50%", user="bea"))
    runs.write([started("bb3", time=START + 200, name="eval-500")])
    sweep(database, runs.folder)
    return database


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (JobFilter(), ["bb3", "aa2", "aa1"]),
        (JobFilter(limit=1), ["bb3"]),
        (JobFilter(state="failed"), ["aa1"]),
        (JobFilter(category="key_not_found"), ["aa1"]),
        (JobFilter(fingerprint="1:a"), ["aa1"]),
        (JobFilter(fingerprint="%"), []),
        (JobFilter(user="bea"), ["aa2"]),
        (JobFilter(name="eval*"), ["bb3", "aa2"]),
        (JobFilter(name="eval_50%"), ["aa2"]),
        (JobFilter(name="eval_*"), ["aa2"]),
        (JobFilter(name="t?ain"), ["aa1"]),
        (JobFilter(since=START + 100, until=START + 200), ["aa2"]),
        (JobFilter(host="elsewhere"), []),
    ],
)
def test_filters(filled: Database, wanted: JobFilter, found: list[str]) -> None:
    assert [job.id for job in find_jobs(filled, wanted)] == found


def test_a_job_is_found_by_what_a_person_types(filled: Database) -> None:
    assert find_job(filled, "last") == "bb3"
    assert find_job(filled, "bb") == "bb3"
    assert find_job(filled, "aa1") == "aa1"
    assert find_job(filled, "eval_50%") == "aa2"
    with pytest.raises(InputError, match="several job IDs start with 'aa': aa1, aa2"):
        find_job(filled, "aa")
    with pytest.raises(InputError, match="no job 'zz'"):
        find_job(filled, "zz")
    with pytest.raises(InputError, match="no job 'zz'"):
        job_details(filled, "zz")


def test_an_empty_store_knows_no_job(database: Database) -> None:
    assert find_jobs(database) == []
    with pytest.raises(InputError, match="no job 'last'"):
        find_job(database, "last")


def test_the_json_form_is_json(filled: Database) -> None:
    told = json.loads(json.dumps(job_details(filled, "aa1").to_dict()))
    assert told["schema"] == "epochzero.job/1"
    assert told["attempts"][0]["ranks"][0]["diagnosis"]["category"] == "key_not_found"


def test_usage_is_summed_up_in_stretches(database: Database, runs: Runs) -> None:
    samples = [Sample(START + n, float(n), 1, float(n), n, 1) for n in range(1, 1001)]
    take_in(database, runs.write([started(), *samples]))
    (attempt,) = job_details(database, "job1").attempts
    points = usage(database, attempt.ranks[0].id, points=10)
    assert len(points) in (9, 10, 11)
    assert points[-1].memory_bytes == 1000
    assert [p.memory_bytes for p in points] == sorted(p.memory_bytes for p in points)
    assert all(a.elapsed < b.elapsed for a, b in itertools.pairwise(points))
    assert points[0].gpu_percent is None
    assert usage(database, -1) == []
