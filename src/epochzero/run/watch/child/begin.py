"""Begins to watch a process, and ends with it."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from epochzero.injected.ranks import own_rank
from epochzero.run.watch.child.records import MOST_RANKS, Records, joined_rank
from epochzero.run.watch.child.schedule import Schedule

FILE_VARIABLE = "EPOCHZERO_WATCH_FILE"
EVERY_VARIABLE = "EPOCHZERO_WATCH_EVERY"
VALUES_VARIABLE = "EPOCHZERO_WATCH_VALUES"
_COMPARED_FIRST = 6
_begun: dict[str, Here] = {}
_active: list[Any] = []


class Here:
    """Watches this process until it is closed.

    Attributes:
        observer: receives what torch does; None while torch is not watched.
        keras: receives what Keras does; None while Keras is not watched.
    """

    def __init__(self, records: Records, every: int = 0, values: Iterable[str] = ()) -> None:
        """Nothing is watched yet.

        Args:
            records: takes what is seen.
            every: as of `Schedule`.
            values: paths of layers and parameters whose values are recorded at each inspection.
        """
        self.observer: Any = None
        self.keras: Any = None
        self._records = records
        self._every = every
        self._values = frozenset(values)
        self._hooks: list[Any] = []

    def watch_torch(self) -> None:
        """Watches what torch does; torch is imported."""
        from epochzero.run.watch.child.hooks import Hooks
        from epochzero.run.watch.child.observer import Observer

        schedule = Schedule(every=self._every, always=is_compared)
        self.observer = Observer(self._records, schedule, self._values)
        self._put(Hooks(self.observer))
        _active.append(self.observer)

    def watch_keras(self, keras: Any) -> None:
        """Watches what Keras trains, into the same records."""
        from epochzero.run.watch.child.keras_hooks import KerasInstrumentation

        schedule = Schedule(every=self._every)
        self.keras = KerasInstrumentation(keras, self._records, schedule, self.observer)
        self._put(self.keras)

    def _put(self, hooks: Any) -> None:
        hooks.install()
        self._hooks.append(hooks)

    def end(self) -> None:
        """Records what is pending, and the end."""
        for value in (self.keras, self.observer):
            if value is not None:
                value.end()

    def close(self) -> None:
        """Ends the watching; all is as it was before."""
        self.end()
        while self._hooks:
            self._hooks.pop().remove()


def begin_torch(_: ModuleType, environment: Mapping[str, str]) -> None:
    """Watches torch from now to the end of the process, as a job's variables say."""
    here = _of_job(environment)
    if here is not None:
        here.watch_torch()


def begin_keras(keras: ModuleType, environment: Mapping[str, str]) -> None:
    """Watches what Keras trains, into the same file."""
    here = _of_job(environment)
    if here is not None:
        here.watch_keras(keras)


def is_compared(number: int) -> bool:
    """Whether all ranks of a job inspect the iteration of this number, whatever it takes: they are compared by it."""
    # 1, 2, 3, 4, 6, 8, 12, 16 and so on: of powers of two alone a short training has too few after a difference begins.
    part = number // 3 if number % 3 == 0 else number
    is_milestone = part & (part - 1) == 0
    return (is_milestone or number < _COMPARED_FIRST) and joined_rank() is not None


def _of_job(environment: Mapping[str, str]) -> Here | None:
    """Watches this process; None in a rank that is not compared with the first."""
    rank = own_rank(environment)
    if rank >= MOST_RANKS:
        return None
    path = environment[FILE_VARIABLE]
    if path not in _begun:
        every = int(environment.get(EVERY_VARIABLE, "0"))
        values = filter(None, environment.get(VALUES_VARIABLE, "").split(","))
        _begun[path] = Here(Records(path, rank=lambda: rank or joined_rank()), every, values)
        atexit.register(_begun[path].end)
    return _begun[path]


def watch_here(
    on_record: Callable[[dict[str, Any]], None], every: int, values: Iterable[str]
) -> Here:
    """Watches this process from now on.

    Args:
        on_record: called with each record.
        every: as of `Schedule`.
        values: as of `Observer`.
    """
    here = Here(Records(on_record=on_record), every, values)
    here.watch_torch()
    keras = sys.modules.get("keras")
    if hasattr(keras, "Model"):
        here.watch_keras(keras)
    return here


def active() -> Sequence[Any]:
    """The observers that watch this process now."""
    _active[:] = [observer for observer in _active if not observer.ended]
    return _active


def is_first(environment: Mapping[str, str]) -> bool:
    """Whether this process is the first rank of its job, or the only one."""
    return own_rank(environment) == 0
