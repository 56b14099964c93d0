"""Begins to watch this process: from `start`, or from `epochzero.watch`."""

from __future__ import annotations

import atexit
from collections.abc import Mapping

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

__all__ = ["begin"]

EVERY_VARIABLE = "EPOCHZERO_WATCH_EVERY"
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def begin(path: str, environment: Mapping[str, str]) -> Observer | None:
    """Watches from now to the end of the process; None for any rank but the first.

    Args:
        path: of the file for the records.
        environment: of the job.
    """
    rank = next((environment[name] for name in _RANKS if name in environment), "0")
    if rank != "0":
        return None
    observer = Observer(Records(path), Schedule(every=int(environment.get(EVERY_VARIABLE, "0"))))
    Hooks(observer).install()
    atexit.register(observer.end)
    return observer
