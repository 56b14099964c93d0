"""Requests that come at the same time share a transaction, and none is held up by another."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from epochzero.errors import InputError
from epochzero.store.database import Database, StoreAwayError, open_database
from epochzero.store.job_details import read_log
from epochzero.store.queries import find_jobs
from epochzero.store.recorder import THIS_MACHINE, Ending, Origin
from epochzero.web.job_writer import Keeping
from tests.store.jobs import whole
from tests.waiting import PATIENCE_S, wait_until


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db")
    yield opened
    opened.close()


def _ending(job: str, origin: Origin = THIS_MACHINE) -> Ending:
    return Ending(f"service://{job}/1", whole(job), io.BytesIO(b"log\n"), origin)


def _until(is_so: Callable[[], bool]) -> None:
    wait_until(is_so)


@contextmanager
def _writing(keeping: Keeping, count: int) -> Iterator[ThreadPoolExecutor]:
    """While a first request is written; it goes on when so many others wait."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(data: bytes) -> bytes:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return data

    with ThreadPoolExecutor(count + 1) as pool:
        first = pool.submit(keeping.keep, [_ending("first", Origin(text=hold))])
        assert begun.wait(PATIENCE_S)
        yield pool
        _until(lambda: len(keeping._waiting) == count)
        go_on.set()
        assert len(first.result()) == 1


def test_requests_that_come_meanwhile_share_a_commit(database: Database) -> None:
    keeping = Keeping(database)
    commits: list[object] = []
    event.listen(database._engine, "commit", commits.append)
    with _writing(keeping, 6) as pool:
        others = [pool.submit(keeping.keep, [_ending(f"job{n // 2}")]) for n in range(6)]
    assert len(commits) == 2
    assert sum(len(other.result()) for other in others) == 3
    assert len(find_jobs(database)) == 4


def test_a_request_that_is_refused_does_not_hold_up_the_others(database: Database) -> None:
    keeping = Keeping(database)
    with _writing(keeping, 3) as pool:
        good = [pool.submit(keeping.keep, [_ending(f"job{n}")]) for n in range(2)]
        wrong = pool.submit(keeping.keep, [Ending("service://x/1", whole("x")[1:], io.BytesIO())])
    assert [len(one.result()) for one in good] == [1, 1]
    with pytest.raises(InputError, match="does not name its job"):
        wrong.result()
    assert len(find_jobs(database)) == 3


class _SlowlySplit(io.BytesIO):
    """A log that tells whether others had to wait while it was split into lines."""

    def __init__(self, keeping: Keeping) -> None:
        super().__init__(b"".join(b"line %d\n" % n for n in range(200_000)))
        self.keeping = keeping
        self.holds_up_others: set[bool] = set()

    def readline(self, size: int | None = -1, /) -> bytes:
        self.holds_up_others.add(self.keeping._writing.locked())
        return super().readline(size)


def test_a_large_log_is_split_before_others_have_to_wait_for_it(database: Database) -> None:
    keeping = Keeping(database)
    log = _SlowlySplit(keeping)
    keeping.keep([Ending("service://job1/1", whole("job1"), log)])
    assert log.holds_up_others == {False}
    assert b"".join(read_log(database, "job1", attempt=None, name="output")) == log.getvalue()


def test_a_database_that_is_locked_is_told_at_once_to_all_who_wait(tmp_path: Path) -> None:
    database = open_database(tmp_path / "store.db", busy=0.5)
    keeping = Keeping(database)
    with database.write(), ThreadPoolExecutor(4) as pool:
        with keeping._writing:
            waiting = [pool.submit(keeping.keep, [_ending(f"job{n}")]) for n in range(4)]
            _until(lambda: len(keeping._waiting) == 4)
        troubles = [one.exception() for one in waiting]
    assert isinstance(troubles[0], StoreAwayError)
    assert set(troubles) == {troubles[0]}  # One attempt, not one for each.
    assert keeping.keep([_ending("job1")])
    database.close()
