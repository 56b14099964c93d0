"""The catalogue of faults and symptoms: a module for each fault, rows of tables for symptoms and relations.

A module has ``find(history) -> Iterable[TrainingFinding]``, and is found by its presence. It reads only numbers, takes a
history at any moment of a training, and finds nothing where the history does not show.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from types import MappingProxyType

from epochzero.run.watch.faults._experiments import EXPERIMENTS
from epochzero.run.watch.faults._relations import RELATIONS
from epochzero.run.watch.faults._symptoms import SYMPTOMS
from epochzero.run.watch.faults._table import Row
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

Find = Callable[[TrainingHistory], Iterable[TrainingFinding]]


@cache
def _causes() -> Mapping[str, tuple[str, ...]]:
    """The symptoms that each fault brings about."""
    text = files(__name__).joinpath("causes.toml").read_text(encoding="utf-8")
    return {word: tuple(symptoms) for word, symptoms in tomllib.loads(text).items()}


@cache
def catalogue() -> Mapping[str, Find]:
    """What looks for each fault and symptom, by its word."""
    modules = (module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    finds: dict[str, Find] = {name: import_module(f"{__name__}.{name}").find for name in modules}
    tables = (*EXPERIMENTS, *RELATIONS, *SYMPTOMS)
    for word in {*finds, *(row.word for row in tables)}:
        rows = [row for row in tables if row.word == word]
        finds[word] = partial(_find, rows, finds.get(word))
    return MappingProxyType(dict(sorted(finds.items())))


def _find(
    rows: Sequence[Row], find: Find | None, history: TrainingHistory
) -> Iterator[TrainingFinding]:
    """What the rows find, once a line; if they find nothing, what the module of the same fault does."""
    found = [finding for row in rows for finding in row.find(history)]
    by_line = {finding.place: finding for finding in reversed(found)}
    found = [finding for finding in found if by_line[finding.place] is finding]
    for finding in found or (find(history) if find else ()):
        yield replace(finding, causes=_causes().get(finding.word, ()))
