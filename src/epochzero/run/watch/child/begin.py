"""Begins to watch this process: from `start`, or from `epochzero.watch`."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import Any

from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

__all__ = ["begin", "begin_keras"]

EVERY_VARIABLE = "EPOCHZERO_WATCH_EVERY"
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_begun: dict[str, tuple[Records, Any]] = {}


def begin(path: str, environment: Mapping[str, str]) -> Any:
    """Watches torch from now to the end of the process; gives its observer, None for any rank but the first.

    Args:
        path: of the file for the records.
        environment: of the job.
    """
    if not _is_first(environment):
        return None
    from epochzero.run.watch.child.hooks import Hooks
    from epochzero.run.watch.child.observer import Observer

    records = _begun[path][0] if path in _begun else Records(path)
    observer = Observer(records, _schedule(environment))
    _begun[path] = records, observer
    Hooks(observer).install()
    atexit.register(observer.end)
    return observer


def begin_keras(keras: Any, path: str, environment: Mapping[str, str]) -> None:
    """Watches what keras trains, into the same file."""
    if not _is_first(environment):
        return
    from epochzero.run.watch.child.keras_hooks import KerasWatch

    records, observer = _begun.setdefault(path, (Records(path), None))
    watch = KerasWatch(keras, records, _schedule(environment), observer)
    watch.install()
    atexit.register(watch.end)


def _is_first(environment: Mapping[str, str]) -> bool:
    return next((environment[name] for name in _RANKS if name in environment), "0") == "0"


def _schedule(environment: Mapping[str, str]) -> Schedule:
    return Schedule(every=int(environment.get(EVERY_VARIABLE, "0")))
