"""The catalogue of faults and symptoms: rows of tables, grouped by what they are about.

A search reads only numbers, takes a history at any moment of a training, and finds nothing where the history does not show.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from types import MappingProxyType

from epochzero.run.watch.faults import (
    calls,
    copies,
    data,
    labels,
    layers,
    objective,
    pairing,
    parallel,
    ranks,
    settings,
    states,
)
from epochzero.run.watch.faults._experiments import EXPERIMENTS
from epochzero.run.watch.faults._signals import is_harmed
from epochzero.run.watch.faults._symptoms import SYMPTOMS
from epochzero.run.watch.faults._table import Row
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import EvidenceKind, SourceLine, TrainingFinding

NOTE = 0.45
"""The confidence of what is worth a look, and is no root."""
Find = Callable[[TrainingHistory], Iterable[TrainingFinding]]
_SUBJECTS = (
    calls,
    settings,
    data,
    labels,
    pairing,
    objective,
    layers,
    copies,
    states,
    ranks,
    parallel,
)
RELATIONS: Sequence[Row] = tuple(row for subject in _SUBJECTS for row in subject.RELATIONS)
"""Relations that hold in each iteration of a correct training, between its calls, its data and its states.

A curve needs many iterations to show a fault. A relation is violated in the first of them, by an event with a line: a clipping
after the step, a target that is the input itself, a copy of the model that stays as it was.
"""
CURVES: Sequence[Row] = tuple(row for subject in _SUBJECTS for row in subject.CURVES)
"""What curves, settings and statistics show of faults."""


@cache
def _causes() -> Mapping[str, tuple[str, ...]]:
    """The symptoms that each fault brings about."""
    text = files(__name__).joinpath("causes.toml").read_text(encoding="utf-8")
    return {word: tuple(symptoms) for word, symptoms in tomllib.loads(text).items()}


@cache
def catalogue() -> Mapping[str, Find]:
    """What looks for each fault and symptom, by its word."""
    rows: dict[str, list[Row]] = {}
    for row in (*EXPERIMENTS, *RELATIONS, *SYMPTOMS, *CURVES):
        rows.setdefault(row.word, []).append(row)
    return MappingProxyType({word: partial(_find, rows[word]) for word in sorted(rows)})


def _find(rows: Sequence[Row], history: TrainingHistory) -> Iterator[TrainingFinding]:
    """What the strongest kind of evidence shows that shows anything, once a line."""
    for kind in EvidenceKind:
        by_line: dict[SourceLine | None, TrainingFinding] = {}
        for row in rows:
            for finding in _weighed(row, history) if row.kind is kind else ():
                by_line.setdefault(finding.place, finding)
        for finding in by_line.values():
            yield replace(finding, causes=_causes().get(finding.word, ()))
        if by_line:
            return


def _weighed(row: Row, history: TrainingHistory) -> Iterator[TrainingFinding]:
    """What a row finds; where it would show in the training, and does not, it is no more than a note."""
    quiet = row.kind is EvidenceKind.EFFECT and not is_harmed(history)
    for finding in row.find(history):
        yield replace(finding, confidence=min(finding.confidence, NOTE)) if quiet else finding
