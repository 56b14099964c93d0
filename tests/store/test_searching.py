"""A search looks at so many jobs a page, and all pages together at each job once."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from epochzero.store.database import Database
from epochzero.store.queries import SORTS, JobFilter, job_page
from epochzero.store.schema import JobRow

COUNT = 11


@pytest.fixture
def filled(database: Database) -> Database:
    """Eleven jobs; the name of each third one begins with train, the oldest is called rare."""
    with database.write() as session:
        session.add_all(_job(number) for number in range(COUNT))
    return database


def _job(number: int) -> JobRow:
    name = "rare" if number == 0 else "train-gpt" if number % 3 == 0 else "eval"
    return JobRow(
        id=f"j{number:02}", name=name, command=[], folder="/", user="ann", host="node1", launcher="",
        target="", scheduler={}, gpus=1, started=1000.0 + number // 2, state="failed", attempts=1,
        gpu_hours=float(number % 4), category="key_not_found", fingerprint=f"1:{number % 2}",
    )  # fmt: skip


def _pages(database: Database, sort: str, wanted: JobFilter) -> list[list[str]]:
    pages, after = [], ""
    while True:
        page = job_page(database, wanted, sort=sort, after=after)
        pages.append([job.id for job in page.jobs])
        if not (after := page.after):
            return pages


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(
    "words", [{"search": "train"}, {"name": "train*"}, {"search": "1:1"}, {"fingerprint": "1:"}, {}]
)
def test_the_pages_of_a_search_show_each_job_once_in_order(
    filled: Database, monkeypatch: pytest.MonkeyPatch, sort: str, words: dict[str, Any]
) -> None:
    wanted = JobFilter(team="", limit=2, **words)
    (whole,) = _pages(filled, sort, JobFilter(team="", limit=COUNT, **words))
    monkeypatch.setattr("epochzero.store.queries.MOST_SEARCHED", 3)
    assert list(chain.from_iterable(_pages(filled, sort, wanted))) == whole


def test_a_word_that_few_jobs_have_is_found_further_on(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochzero.store.queries.MOST_SEARCHED", 4)
    assert _pages(filled, "newest", JobFilter(team="", search="rare")) == [[], [], ["j00"]]
    assert _pages(filled, "newest", JobFilter(team="", search="none")) == [[], [], []]
    assert len(_pages(filled, "newest", JobFilter(team="", state="lost"))) == 1
