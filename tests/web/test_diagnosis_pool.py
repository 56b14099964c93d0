"""Logs that need more time or memory than a service grants."""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochzero.diagnose import Facts
from epochzero.errors import InputError
from epochzero.web.diagnosis_pool import DiagnosedLog, DiagnosisPool
from epochzero.web.diagnosis_worker import Budget, diagnoser, serve

NO_FACTS = Facts()
END = b"""Traceback (most recent call last):
  File "/job/train.py", line 3, in main
    rate = config["lr"]
KeyError: 'lr'
"""


def tracebacks(count: int) -> bytes:
    """The worst kind of log that is known: tracebacks without end, all different."""
    return b"".join(
        b"Traceback (most recent call last):\n"
        b'  File "/job/train.py", line %d, in main\n    x = f(%d)\nValueError: bad %d\n' % (n, n, n)
        for n in range(count)
    )


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[DiagnosisPool]:
    """A pool that grants a fifth of the time that the worst log takes, and five times that of its end."""
    made = DiagnosisPool(str(tmp_path), Budget(seconds=0.6, memory=1 << 30))
    yield made
    made.stop()


def diagnosed(pool: DiagnosisPool, *logs: bytes) -> list[DiagnosedLog]:
    return list(pool.submit("red", [(io.BytesIO(log), NO_FACTS) for log in logs]).result())


def test_over_its_time_the_end_of_a_log_is_diagnosed(pool: DiagnosisPool, tmp_path: Path) -> None:
    with open(tmp_path / "log", "w+b") as log:
        log.write(tracebacks(800_000) + END)
        log.flush()
        (found,) = pool.submit("red", [(log, NO_FACTS)]).result()
    assert any("only its end was read" in note for note in found.diagnosis.notes)
    root = found.diagnosis.root
    assert root is not None
    assert root.line is not None
    with found.log as redacted:
        redacted.seek(0)
        assert redacted.read().decode().splitlines()[root.line - 1] == root.text


def test_over_its_memory_a_log_is_not_diagnosed_as_a_whole(tmp_path: Path) -> None:
    # Less than a worker has loaded: what it may still use depends on what the process it was forked from has freed.
    pool = DiagnosisPool(str(tmp_path), Budget(seconds=60.0, memory=1 << 20))
    with open(tmp_path / "log", "w+b") as log:
        log.write(tracebacks(300_000) + END)
        log.flush()
        try:
            (found,) = pool.submit("red", [(log, NO_FACTS)]).result()
        finally:
            pool.stop()
    with found.log:
        notes = found.diagnosis.notes
        assert any("cannot be diagnosed within the service's limits" in note for note in notes)


def test_the_logs_after_it_are_diagnosed_as_ever(pool: DiagnosisPool) -> None:
    found = diagnosed(pool, END, tracebacks(60_000), END)
    assert [one.diagnosis.category for one in (found[0], found[2])] == ["key_not_found"] * 2
    assert not found[0].diagnosis.notes
    assert not found[2].diagnosis.notes


def test_a_worker_redacts(pool: DiagnosisPool) -> None:
    secret = b"hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    (found,) = diagnosed(pool, b"token " + secret + b"\n" + END)
    assert secret not in found.log.read()


def test_a_binary_log_is_refused_and_the_worker_goes_on(pool: DiagnosisPool) -> None:
    with pytest.raises(InputError, match="not a text log"):
        diagnosed(pool, bytes(range(256)) * 100)
    assert diagnosed(pool, END)[0].diagnosis.category == "key_not_found"


class Unreadable(io.BytesIO):
    """A log whose client has gone."""

    def read(self, size: int | None = -1) -> bytes:
        raise ValueError("closed")


def test_a_log_that_cannot_be_read_fails_its_request_only(pool: DiagnosisPool) -> None:
    with pytest.raises(ValueError, match="closed"):
        pool.submit("red", [(Unreadable(END), NO_FACTS)]).result()
    assert diagnosed(pool, END)[0].diagnosis.category == "key_not_found"


def test_loading_the_signatures_counts_for_no_log() -> None:
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    diagnoser.cache_clear()
    serve(theirs)  # Without a request.
    assert diagnoser.cache_info().currsize == 1
