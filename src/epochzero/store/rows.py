"""Records as rows: what each record of a journal becomes in the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import singledispatch
from typing import Any

from epochzero.run import model
from epochzero.store.schema import (
    Base,
    Decision,
    Event,
    Failure,
    Finding,
    Note,
    Progress,
    RankedPlace,
    Sample,
)

__all__ = ["rows_of"]


@singledispatch
def rows_of(record: model.Record, rank_id: int, sequence: int) -> Iterator[Base]:
    """The rows that a record adds; those that only change the rank's own row add none.

    Args:
        record: of a journal.
        rank_id: whose it is.
        sequence: the byte of the journal after it, which no other record of the journal has.
    """
    yield from ()


@rows_of.register
def _(record: model.Sample, rank_id: int, sequence: int) -> Iterator[Base]:
    values = asdict(record)
    gpus = record.gpus
    values["gpus"] = {"gpus": values["gpus"]} if gpus else None
    yield Sample(
        rank_id=rank_id,
        sequence=sequence,
        gpu_percent=sum(gpu.utilization for gpu in gpus) / len(gpus) if gpus else None,
        gpu_memory_bytes=max(gpu.memory_bytes for gpu in gpus) if gpus else None,
        **values,
    )


@rows_of.register
def _(record: model.Progress, rank_id: int, sequence: int) -> Iterator[Base]:
    yield Progress(rank_id=rank_id, sequence=sequence, **asdict(record))


@rows_of.register
def _(record: model.Event, rank_id: int, sequence: int) -> Iterator[Base]:
    yield Event(rank_id=rank_id, sequence=sequence, **asdict(record))


@rows_of.register
def _(record: model.Decision, rank_id: int, sequence: int) -> Iterator[Base]:
    values = asdict(record)
    del values["elapsed"]
    yield Decision(rank_id=rank_id, sequence=sequence, **values | {"avoid": list(record.avoid)})


@rows_of.register
def _(record: model.Note, rank_id: int, sequence: int) -> Iterator[Base]:
    yield Note(
        rank_id=rank_id,
        sequence=sequence,
        time=record.time,
        author=record.author,
        text=record.text,
    )


@rows_of.register
def _(record: model.Concluded, rank_id: int, sequence: int) -> Iterator[Base]:
    if record.diagnosis:
        yield _failure(record, record.diagnosis, rank_id)
    for finding in (record.checked or {}).get("findings", ()):
        yield _finding(finding, rank_id)
    for position, item in enumerate((record.ranking or {}).get("items", ()), 1):
        yield RankedPlace(
            rank_id=rank_id,
            position=position,
            path=str(item.get("path", "")),
            score=float(item.get("score", 0.0)),
            item=dict(item),
        )


def _failure(record: model.Concluded, diagnosis: Mapping[str, Any], rank_id: int) -> Failure:
    root = diagnosis.get("root") or {}
    words = ("fingerprint", "category", "dimension", "root_cause", "phase", "retry", "title")
    return Failure(
        rank_id=rank_id,
        time=record.time,
        confidence=float(diagnosis.get("confidence", 0.0)),
        gpu_hours=record.gpu_hours,
        root_text=str(root.get("text", "")),
        root_rank=root.get("rank"),
        diagnosis=dict(diagnosis),
        **{word: str(diagnosis.get(word, "")) for word in words},
    )


def _finding(finding: Mapping[str, Any], rank_id: int) -> Finding:
    place = finding.get("place") or {}
    return Finding(
        rank_id=rank_id,
        rule=str(finding.get("rule", "")),
        severity=str(finding.get("severity", "")),
        category=str(finding.get("category", "")),
        path=str(place.get("path", "")),
        line=place.get("line"),
        message=str(finding.get("message", "")),
        finding=dict(finding),
    )
