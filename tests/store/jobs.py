"""Journals of jobs as a supervisor leaves them, for the tests of the store."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epochzero.run.records.journal import Journal
from epochzero.run.records.model import (
    Conclusion,
    Decision,
    End,
    GpuSample,
    JobEvent,
    JobProgress,
    JobSnapshot,
    Note,
    Output,
    Record,
    Sample,
    Start,
)

START = 1_760_000_000.0
DIAGNOSIS: dict[str, Any] = {
    "schema": "epochzero.diagnosis/1",
    "outcome": "failed",
    "category": "key_not_found",
    "dimension": "general_code_error",
    "root_cause": "programming_error",
    "phase": "evaluation",
    "retry": "fails_again",
    "confidence": 0.95,
    "title": "Key Not Found",
    "fingerprint": "1:abc",
    "root": {"file": "output.log", "line": 3, "text": "KeyError: 'lr'", "rank": 0},
}
FINDING = {
    "rule": "key-missing",
    "severity": "error",
    "category": "key_not_found",
    "place": {"path": "train.py", "line": 7},
    "message": "config has no key 'lr'.",
}


def started(job: str = "job1", attempt: int = 1, **values: Any) -> Start:
    known: dict[str, Any] = {
        "job": job,
        "attempt": attempt,
        "name": "train",
        "command": ("python", "train.py"),
        "folder": "/job",
        "host": socket.gethostname(),
        "user": "ann",
        "pid": os.getpid(),
        "time": START,
        "gpus": 8,
        "launcher": "torchrun",
    }
    return Start(**known | values)


def whole(
    job: str = "job1", attempt: int = 1, *, exit_code: int = 1, **values: Any
) -> list[Record]:
    """Everything that an attempt of half an hour leaves."""
    gpus = (GpuSample(0, 90.0, 1 << 33, 1 << 36), GpuSample(1, 70.0, 1 << 34, 1 << 36))
    begin = values.get("time", START)
    records: list[Record] = [
        started(job, attempt, **values),
        JobSnapshot(begin, 0.1, python="3.11.9", packages={"torch": "2.13.0"}, commit="c0ffee"),
        *(
            Sample(begin + n, n, 3, 100.0 + n, (1 << 30) + n, 1 << 34, gpus=gpus)
            for n in range(1, 11)
        ),
        JobProgress(begin + 9, 9.0, step=120, steps=1000, epoch=1, loss=0.5),
        JobEvent(begin + 10, 10.0, "stall", "No output for 300 s.", details={"1": "stack"}),
        Output(begin + 1800, 1800.0, "output", ("output.log",), 12),
        End(begin + 1800, 1800.0, exit_code),
    ]
    if exit_code:
        records += [
            Conclusion(
                begin + 1801,
                1801.0,
                diagnosis=DIAGNOSIS,
                ranking={"items": [{"path": "train.py", "score": 1.5}]},
                checked={"findings": [FINDING]},
                gpu_hours=4.0,
            ),
            Decision(begin + 1802, 1802.0, "stop", reason="It fails again.", policy="auto"),
        ]
    return [*records, Note(begin + 1803, 1803.0, "Looked at.", "bea")]


class Runs:
    """A folder of runs, as the command line keeps one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(
        self, records: Sequence[Record], name: str | None = None, log: bytes = b"hello\nworld\n"
    ) -> Path:
        """Writes the journal and the log of an attempt; returns the journal's path."""
        first = records[0]
        assert isinstance(first, Start)
        journal = Journal(self.folder / first.job / (name or str(first.attempt)))
        (journal.path.parent / "output.log").write_bytes(log)
        for record in records:
            journal.write(record)
        journal.close()
        return journal.path


def is_declared(what: object, name: str | None, kind: str, *_: object) -> bool:
    """Whether the metadata describe an object of a store: FTS5 makes tables of its own."""
    return kind != "table" or not str(name).startswith("failure_search")
