"""Begins to watch this process: from `start`, or from `epochzero.watch`."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

__all__ = ["active", "begin"]

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
    Hooks(observer).install()
    _active.append(observer)
    atexit.register(observer.end)
    return observer


def active() -> Sequence[Observer]:
    """Those who watch this process now."""
    _active[:] = [observer for observer in _active if not observer.ended]
    return _active


def is_first(environment: Mapping[str, str]) -> bool:
    """Whether this process is the first rank of its job, or the only one."""
    return next((environment[name] for name in _RANKS if name in environment), "0") == "0"
