"""Begins to watch this process: from `start`, or from `epochzero.watch`."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

__all__ = ["Here", "active", "begin", "is_first", "watch_here"]

EVERY_VARIABLE = "EPOCHZERO_WATCH_EVERY"
VALUES_VARIABLE = "EPOCHZERO_WATCH_VALUES"
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_active: list[Observer] = []


def begin(path: str, environment: Mapping[str, str]) -> Observer | None:
    """Watches from now to the end of the process; None for any rank but the first.

    Args:
        path: of the file for the records.
        environment: of the job.
    """
    if not is_first(environment):
        return None
    observer = Observer(
        Records(path),
        Schedule(every=int(environment.get(EVERY_VARIABLE, "0"))),
        frozenset(environment.get(VALUES_VARIABLE, "").split(",")),
    )
    Here(observer)
    atexit.register(observer.end)
    return observer


class Here:
    """Watches this process for as long as somebody wants it.

    Attributes:
        observer: who is told.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._hooks = Hooks(observer)
        self._hooks.install()
        _active.append(observer)

    def close(self) -> None:
        """Ends the watching; all is as it was before."""
        self.observer.end()
        self._hooks.remove()


def watch_here(hear: Callable[[dict[str, Any]], None], every: int, values: Iterable[str]) -> Here:
    """Watches this process from now on.

    Args:
        hear: is given each record.
        every: as of `Schedule`.
        values: as of `Observer`.
    """
    return Here(Observer(Records(hear=hear), Schedule(every=every), frozenset(values)))


def active() -> Sequence[Observer]:
    """Those who watch this process now."""
    _active[:] = [observer for observer in _active if not observer.ended]
    return _active


def is_first(environment: Mapping[str, str]) -> bool:
    """Whether this process is the first rank of its job, or the only one."""
    return next((environment[name] for name in _RANKS if name in environment), "0") == "0"
