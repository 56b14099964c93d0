"""Converts records of a journal to rows of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import singledispatch
from typing import Any

from epochzero.run.records import model
from epochzero.store.failure_titles import failure_title
from epochzero.store.schema import (
    Base,
    DecisionRow,
    EventRow,
    FailureRow,
    FindingRow,
    NoteRow,
    OutputRow,
    ProgressRow,
    RankedPlace,
    SampleRow,
)

Row = tuple[type[Base], dict[str, Any]]
"""A table, and the values of its columns."""
_LONGEST = 300
"""Maximum length of a searchable text: an index row of PostgreSQL is limited to 2.7 kB."""


@singledispatch
def rows_of(record: model.Record, rank_id: int, sequence: int) -> Iterator[Row]:
    """The rows that a record adds; a record that only changes the rank's own row adds none.

    Args:
        record: of a journal.
        rank_id: the rank.
        sequence: offset of the journal after the record, unique within the journal.
    """
    yield from ()


@rows_of.register
def _(record: model.Sample, rank_id: int, sequence: int) -> Iterator[Row]:
    values = asdict(record)
    gpus = record.gpus
    values["gpus"] = {"gpus": values["gpus"]} if gpus else None
    values["gpu_percent"] = sum(gpu.utilization for gpu in gpus) / len(gpus) if gpus else None
    values["gpu_memory_bytes"] = max(gpu.memory_bytes for gpu in gpus) if gpus else None
    yield _sequenced(SampleRow, values, rank_id, sequence)


@rows_of.register
def _(record: model.JobProgress, rank_id: int, sequence: int) -> Iterator[Row]:
    yield _sequenced(ProgressRow, asdict(record), rank_id, sequence)


@rows_of.register
def _(record: model.JobEvent, rank_id: int, sequence: int) -> Iterator[Row]:
    yield _sequenced(EventRow, asdict(record), rank_id, sequence)


@rows_of.register
def _(record: model.Output, rank_id: int, sequence: int) -> Iterator[Row]:
    values = {"name": _word(record.name), "paths": list(record.paths), "size": record.size}
    yield OutputRow, {"rank_id": rank_id, "dropped": record.dropped, **values}


@rows_of.register
def _(record: model.Decision, rank_id: int, sequence: int) -> Iterator[Row]:
    values = asdict(record) | {"avoid": list(record.avoid)}
    del values["elapsed"], values["evidence"]  # The reason contains it.
    yield _sequenced(DecisionRow, values, rank_id, sequence)


@rows_of.register
def _(record: model.Note, rank_id: int, sequence: int) -> Iterator[Row]:
    values = {"time": record.time, "author": record.author, "text": record.text}
    yield _sequenced(NoteRow, values, rank_id, sequence)


@rows_of.register
def _(record: model.Conclusion, rank_id: int, sequence: int) -> Iterator[Row]:
    if record.diagnosis:
        yield FailureRow, {"rank_id": rank_id, **_failure(record, record.diagnosis)}
    for finding in (record.checked or {}).get("findings", ()):
        yield FindingRow, {"rank_id": rank_id, **_finding(finding)}
    for position, item in enumerate((record.ranking or {}).get("items", ()), 1):
        values = {"path": str(item.get("path", "")), "score": float(item.get("score", 0.0))}
        yield (
            RankedPlace,
            {"rank_id": rank_id, "position": position, "item": dict(item), **values},
        )


def job_row(job: str, team: str, started: model.Start) -> dict[str, Any]:
    """The row of a new job; its state is derived from its ranks later."""
    return {
        "id": job,
        "team": team,
        "name": _word(started.name),
        "command": list(started.command),
        "folder": started.folder,
        "user": _word(started.user),
        "host": _word(started.host),
        "launcher": started.launcher,
        "target": _word(started.target),
        "scheduler": dict(started.scheduler),
        "world_size": started.world_size,
        "gpus": started.gpus,
        "started": started.time,
        "state": "running",
        "attempts": started.attempt,
        "gpu_hours": 0.0,
        "category": "",
        "fingerprint": "",
    }


def attempt_row(job: str, started: model.Start) -> dict[str, Any]:
    """The row of a new attempt."""
    return {
        "job_id": job,
        "number": started.attempt,
        "started": started.time,
        "state": "running",
        "gpu_hours": 0.0,
    }


def rank_row(attempt_id: int, identity: str, started: model.Start) -> dict[str, Any]:
    """The row of a new rank without imported records."""
    return {
        "attempt_id": attempt_id,
        "rank": started.rank,
        "host": started.host,
        "pid": started.pid,
        "journal": identity,
        "taken": 0,
        "heartbeat": started.time,
        "started": started.time,
        "state": "running",
        "why": "",
        "commit": "",
        "snapshot": {},
    }


def _sequenced(table: type[Base], values: dict[str, Any], rank_id: int, sequence: int) -> Row:
    return table, {"rank_id": rank_id, "sequence": sequence, **values}


def _failure(record: model.Conclusion, diagnosis: Mapping[str, Any]) -> dict[str, Any]:
    root = diagnosis.get("root") or {}
    words = ("fingerprint", "category", "dimension", "root_cause", "phase", "retry")
    return {
        "time": record.time,
        "confidence": float(diagnosis.get("confidence", 0.0)),
        "gpu_hours": record.gpu_hours,
        "root_text": str(root.get("text", "")),
        "root_rank": root.get("rank"),
        "diagnosis": dict(diagnosis),
        "checked": int(record.checked is not None),
        **{word: _word(diagnosis.get(word, "")) for word in words},
        "title": _word(failure_title(diagnosis)),
    }


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    place = finding.get("place") or {}
    words = ("rule", "severity", "category")
    return {
        "path": str(place.get("path", "")),
        "line": place.get("line"),
        "message": str(finding.get("message", "")),
        "finding": dict(finding),
        **{word: _word(finding.get(word, "")) for word in words},
    }


def _word(value: object) -> str:
    return str(value)[:_LONGEST]
