"""A store of made jobs for the tests of the pages: journals as a supervisor leaves them, taken in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from epochzero.run.records.model import (
    Conclusion,
    Decision,
    End,
    JobEvent,
    JobSnapshot,
    Output,
)
from epochzero.store.database import Database
from epochzero.store.recorder import take_in
from tests.store.jobs import DIAGNOSIS, FINDING, Runs, started, whole

__all__ = ["HOSTILE", "fill"]

HOSTILE = '<script>alert("x")</script> \x1b[31mred\x1b[0m \u202egnp.exe =cmd|calc'
"""What a job may write: markup, an escape sequence, a change of direction, a formula."""
DAY = 86_400.0


def fill(database: Database, folder: Path, *, now: float | None = None) -> None:
    """Keeps eight jobs: of two failures, of many ranks, hostile, well ended, running."""
    now = time.time() if now is None else now
    runs = Runs(folder / "runs")
    log = "".join(f"step {n} loss {1 / (n + 1):.4f}\n" for n in range(800))
    log += "Traceback (most recent call last):\n  File \"train.py\", line 7\nKeyError: 'lr'\nbye\n"
    lost = DIAGNOSIS | {
        "meaning": "A mapping has no such key.",
        "fixes": ["Add 'lr' to the configuration.", "Or read it with a default."],
        "retry_reason": "The configuration does not change by itself.",
        "root": {"file": "output.log", "line": 803, "text": "KeyError: 'lr'", "rank": 0},
        "user_frame": {"file": "train.py", "line": 7, "function": "main", "code": "config['lr']"},
        "cascade": [
            {"rank": 1, "title": "Peer gone", "text": "gloo: closed", "file": "output.log",
             "line": 804, "role": "cascade", "count": 3},
        ],
    }  # fmt: skip
    for number in range(3):
        # An hour less than whole days: the first is of the last 24 hours however long the tests take.
        began = now - DAY * (number + 1) + 3600
        records = whole(f"key{number}", time=began, name="train-gpt")
        records = [_with(one, lost) for one in records]
        take_in(database, runs.write(records, log=log.encode()))
    take_in(database, runs.write(whole("good", exit_code=0, time=now - 9 * DAY, name="train-gpt")))
    take_in(database, runs.write([started("runs", time=now - 60, name="eval", pid=1)]))
    _ranks(database, runs, now - 2 * DAY)
    _hostile(database, runs, now - DAY / 2)
    _retried(database, runs, now - 5 * DAY)


def _with(record: Any, diagnosis: dict[str, Any]) -> Any:
    if not isinstance(record, Conclusion):
        return record
    return Conclusion(
        record.time, record.elapsed, diagnosis=diagnosis, ranking=record.ranking,
        checked=record.checked, gpu_hours=record.gpu_hours,
    )  # fmt: skip


def _ranks(database: Database, runs: Runs, begin: float) -> None:
    """A job of four ranks: one runs out of memory, the others fall for it."""
    memory = DIAGNOSIS | {
        "category": "gpu_out_of_memory", "title": "CUDA out of memory", "fingerprint": "1:0b5c4a",
        "retry": "fails_again", "fixes": ["Halve the batch: --batch-size 16."],
        "root": {"file": "output.log", "line": 2, "text": "OutOfMemoryError", "rank": 2},
    }  # fmt: skip
    for rank in range(4):
        took = 900.0 + 30 * (rank != 2) + rank
        records = [
            started("ranks", rank=rank, host=f"node{rank}", world_size=4, time=begin, name="pretrain",
                    target="cluster"),
            JobSnapshot(begin, 0.1, python="3.11.9", packages={"torch": f"2.1{rank}.0"}),
            Output(begin + took, took, "output", ("output.log",), 12),
            End(begin + took, took, 1, why="" if rank == 2 else "another_rank"),
        ]  # fmt: skip
        if rank == 2:
            records.insert(2, JobEvent(begin + 800, 800.0, "memory", "GPU memory is 97 % full."))
            records.append(Conclusion(begin + took, took, diagnosis=memory, gpu_hours=2.0))
        take_in(database, runs.write(records, name=f"rank{rank}", log=b"one\nOutOfMemoryError\n"))


def _hostile(database: Database, runs: Runs, begin: float) -> None:
    """A job whose every word is made to break a page."""
    diagnosis = DIAGNOSIS | {
        "title": HOSTILE, "fingerprint": '1:"><script>', "meaning": HOSTILE, "fixes": [HOSTILE],
        "root": {"file": "output.log", "line": 1, "text": HOSTILE, "rank": None},
    }  # fmt: skip
    words = {"name": HOSTILE, "user": HOSTILE, "host": HOSTILE, "folder": HOSTILE}
    records = [
        started("hostile", time=begin, command=(HOSTILE,), **words),
        JobSnapshot(begin, 0.1, python=HOSTILE, packages={HOSTILE: HOSTILE}),
        JobEvent(begin + 5, 5.0, "stall", HOSTILE),
        Output(begin + 60, 60.0, "output", ("output.log",), 12),
        End(begin + 60, 60.0, 1),
        Conclusion(begin + 61, 61.0, diagnosis=diagnosis, checked={"findings": [
            FINDING | {"message": HOSTILE, "rule": HOSTILE}]}),
    ]  # fmt: skip
    take_in(database, runs.write(records, log=f"{HOSTILE}\nsecond\n".encode()))


def _retried(database: Database, runs: Runs, begin: float) -> None:
    """Two attempts that failed alike: the second one was wasted."""
    for attempt in (1, 2):
        records = whole("again", attempt, time=begin + 3600 * attempt, name="finetune", user="bea")
        records = [
            Decision(one.time, one.elapsed, "retry", reason="It may pass.", policy="always")
            if isinstance(one, Decision) and attempt == 1
            else one
            for one in records
        ]
        take_in(database, runs.write(records))
