"""The catalogue of faults and symptoms: a module each, found by its presence.

A module has ``find(history) -> Iterable[Finding]``. It looks at numbers only, takes a history at any moment of
a training, and says nothing where the history does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding

__all__ = ["Find", "catalogue"]

Find = Callable[[TrainingHistory], Iterable[TrainingFinding]]


@cache
def catalogue() -> Mapping[str, Find]:
    """What looks for each fault and symptom, by its word."""
    names = sorted(
        module.name for module in iter_modules(__path__) if not module.name.startswith("_")
    )
    return MappingProxyType({name: import_module(f"{__name__}.{name}").find for name in names})
