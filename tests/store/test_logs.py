"""Logs in the store come back as they were, and equal parts are kept once."""

from __future__ import annotations

import io
import random
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from epochzero.errors import InputError
from epochzero.store.database import Database
from epochzero.store.job_details import read_log
from epochzero.store.logs import _chunks, cut_lines, lines_of
from epochzero.store.recorder import mark_lost, take_in
from epochzero.store.schema import Chunk
from tests.store.jobs import Runs, started, whole

_DRAW = random.Random(3)
LOG = b"".join(b"step %d loss %.4f\n" % (step, _DRAW.random()) for step in range(40_000))


def _stored(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.sum(Chunk.size))) or 0


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 3))
def test_parts_make_the_whole(lines: list[bytes], copies: int) -> None:
    log = b"\n".join(lines) * 10**copies
    assert b"".join(_chunks(io.BytesIO(log))) == log


@given(
    st.lists(st.sampled_from([b"a", b"bc\n", b"\n", b"d\r\ne", b""]), max_size=30),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_some_lines_are_those_of_the_whole(parts: list[bytes], first: int, count: int) -> None:
    *ended, rest = b"".join(parts).split(b"\n")
    whole = [line + b"\n" for line in ended] + ([rest] if rest else [])
    wanted = whole[first - 1 : first - 1 + count]
    assert b"".join(cut_lines(parts, first, count)) == b"".join(wanted)
    assert b"".join(cut_lines(parts, first, None)) == b"".join(whole[first - 1 :])
    found = lines_of(parts, first, count)
    told = [line.decode().removesuffix("\n").removesuffix("\r") for line in wanted]
    assert list(found.lines) == told
    assert found.is_end == (len(whole) < first + count)


def test_no_more_of_a_log_is_read_than_its_lines_need() -> None:
    parts = iter([b"1\n2\n", b"3\n4\n", b"5\n"])
    assert b"".join(cut_lines(parts, 2, 2)) == b"2\n3\n"
    assert next(parts) == b"5\n"


def test_a_line_that_never_ends_is_cut() -> None:
    log = b"x" * (5 << 20)
    parts = list(_chunks(io.BytesIO(log)))
    assert b"".join(parts) == log
    assert max(map(len, parts)) <= 1 << 20


def test_a_log_comes_back_from_each_attempt(database: Database, runs: Runs) -> None:
    take_in(database, runs.write(whole(), log=LOG))
    take_in(database, runs.write(whole(attempt=2), log=b"second\n"))
    assert b"".join(read_log(database, "job1", attempt=1, name="output")) == LOG
    assert b"".join(read_log(database, "job1", attempt=None, name="output")) == b"second\n"


def test_a_retry_that_prints_the_same_and_more_takes_little(database: Database, runs: Runs) -> None:
    take_in(database, runs.write(whole(), log=LOG))
    before = _stored(database)
    assert before == len(LOG)
    longer = (
        b"resumed from step 0\n" + LOG[: len(LOG) // 2] + b"warning: slow\n" + LOG[len(LOG) // 2 :]
    )
    take_in(database, runs.write(whole(attempt=2), log=longer))
    assert b"".join(read_log(database, "job1", attempt=2, name="output")) == longer
    assert _stored(database) - before < len(LOG) / 2


def test_a_log_that_is_not_there_is_told(database: Database, runs: Runs) -> None:
    journal = runs.write(whole())
    (journal.parent / "output.log").unlink()
    take_in(database, journal)
    with pytest.raises(InputError, match="not in the store"):
        list(read_log(database, "job1", attempt=None, name="output"))
    with pytest.raises(InputError, match="no log 'rank3': there are output"):
        list(read_log(database, "job1", attempt=None, name="rank3"))


def test_the_log_of_a_running_job_is_read_where_it_is_written(
    database: Database, runs: Runs
) -> None:
    journal = runs.write([started()], log=b"first\n")
    for number in (9, 10):
        (journal.parent / f"output.{number}.log").write_text(f"part {number}\n")
    take_in(database, journal)
    log = read_log(database, "job1", attempt=None, name="output")
    assert b"".join(log) == b"first\npart 9\npart 10\n"


def test_the_log_of_a_killed_supervisor_comes_into_the_store(
    database: Database, runs: Runs
) -> None:
    journal = runs.write([started(pid=2**22 + 1)], log=b"first\n")
    take_in(database, journal)
    mark_lost(database)
    shutil.rmtree(journal.parent)
    assert b"".join(read_log(database, "job1", attempt=None, name="output")) == b"first\n"
