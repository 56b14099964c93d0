"""The catalogue of faults and symptoms: a module for each fault, rows of tables for symptoms and relations.

A module has ``find(history) -> Iterable[TrainingFinding]``, and is found by its presence. It reads only numbers, takes a
history at any moment of a training, and finds nothing where the history does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from epochzero.run.watch.faults._relations import Relation, by_fault, find_violations
from epochzero.run.watch.faults._symptoms import SYMPTOMS
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

__all__ = ["Find", "catalogue"]

Find = Callable[[TrainingHistory], Iterable[TrainingFinding]]


@cache
def catalogue() -> Mapping[str, Find]:
    """What looks for each fault and symptom, by its word."""
    modules = (one.name for one in iter_modules(__path__) if not one.name.startswith("_"))
    finds: dict[str, Find] = {name: import_module(f"{__name__}.{name}").find for name in modules}
    for word, relations in by_fault().items():
        known = finds.get(word)
        finds[word] = (
            partial(_both, known, relations) if known else partial(find_violations, relations)
        )
    finds |= {word: partial(symptom.find, word) for word, symptom in SYMPTOMS.items()}
    return MappingProxyType(dict(sorted(finds.items())))


def _both(
    find: Find, relations: Sequence[Relation], history: TrainingHistory
) -> Iterator[TrainingFinding]:
    """What a module finds, unless a relation shows the same fault with its line."""
    violations = list(find_violations(relations, history))
    yield from violations or find(history)
