"""How a job tells the supervisor of its progress, and of the error that ends it.

Runs in the job: it never raises, reads no tensor, and a step costs no more than a look at the clock.
Lines go to the file that `epochzero.run.observers.progress_reports` reads, one a second at most, but for those that say
a new phase or checkpoint, or how memory is saved.
"""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec

from epochzero.run.records.identity import PROGRESS_VARIABLE
from epochzero.run.records.launch import ERROR_VARIABLE, launch_of

_EVERY_S = 1.0
_AT_ONCE = {"phase", "checkpoint", "memory"}
_log = logging.getLogger("epochzero")
_Parameters = ParamSpec("_Parameters")


def never_raises(hook: Callable[_Parameters, object]) -> Callable[_Parameters, None]:
    """What goes wrong in a hook is logged, once for a hook, and training continues."""
    failed = False

    @wraps(hook)
    def guarded(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        nonlocal failed
        try:
            hook(*args, **kwargs)
        except Exception:
            level = logging.DEBUG if failed else logging.WARNING
            _log.log(level, "%s failed; training continues", hook.__qualname__, exc_info=True)
            failed = True

    return guarded


@never_raises
def progress(
    *,
    step: int | None = None,
    steps: int | None = None,
    epoch: float | None = None,
    epochs: float | None = None,
    loss: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    phase: str | None = None,
) -> None:
    """Tells `epochzero run` how far the job is. What is None is as it was before.

    Call it after each step, on all ranks: rank 0 tells, the others do nothing.

    Args:
        step, steps: how many are done, and of how many.
        epoch, epochs: how many are done, fractions of one included, and of how many.
        loss: a number; a tensor is not read, since that would wait for the GPU.
        checkpoint: path of the checkpoint that was written last.
        phase: that begins: initialization, preprocessing, training or evaluation.
    """
    reporter().report(
        step=step,
        steps=steps,
        epoch=epoch,
        epochs=epochs,
        loss=loss,
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        phase=phase,
    )


@cache
def reporter() -> Reporter:
    """The one of this process. From its first use on, the error that ends the process is recorded."""
    made = Reporter()
    if made.active:
        atexit.register(made.write)
        sys.excepthook = _recording(made, sys.excepthook)
    else:
        _log.debug("progress is not reported: the job was not started by `epochzero run`")
    return made


class Reporter:
    """Collects what is reported until it is time for a line.

    Attributes:
        active: whether there is a supervisor to report to.
        rank: of this process; None where there is one only. A framework may know better than variables.
    """

    def __init__(self) -> None:
        self._path = os.environ.get(PROGRESS_VARIABLE, "")
        self.active = bool(self._path)
        self.rank = launch_of(os.environ, "").rank if self.active else None
        self._pending: dict[str, Any] = {}
        self._next = 0.0
        # The handler of a signal may report while its thread does so already.
        self._lock = threading.RLock()

    def report(self, **values: Any) -> None:
        """Keeps what is known now, and writes it when the last line is a second old."""
        if not self.active or self.rank:
            return
        with self._lock:
            for name, value in values.items():
                if value is not None:
                    self._pending[name] = value
            now = time.monotonic()
            if now >= self._next or self._pending.keys() & _AT_ONCE:
                self._next = now + _EVERY_S
                self.write()

    def write(self) -> None:
        """Writes what has not been written yet; a full disk loses the line."""
        with self._lock:
            pending, self._pending = self._pending, {}
        values = {name: _plain(value) for name, value in pending.items()}
        line = json.dumps({name: value for name, value in values.items() if value is not None})
        if line == "{}":
            return
        with suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line.encode() + b"\n")
            finally:
                os.close(file)

    def record(self, error: BaseException) -> None:
        """Writes an error as torchelastic does, to its file of this process; not a Ctrl-C.

        Form: `torch.distributed.elastic.multiprocessing.errors.ErrorHandler`.
        """
        path = os.environ.get(ERROR_VARIABLE)
        if not self.active or not path or not isinstance(error, Exception):
            return
        file = Path(path)
        if self.rank is not None and "TORCHELASTIC_RUN_ID" not in os.environ:
            # The ranks of other launchers have all been given the same file.
            file = file.parent / f"rank{self.rank}" / file.name
        extra = {
            "py_callstack": "".join(traceback.format_exception(error)),
            "timestamp": str(int(time.time())),
        }
        message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"message": message}), encoding="utf-8")


_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def _recording(made: Reporter, before: _Hook) -> _Hook:
    """Python's hook for the error that ends a process, recording it first."""
    record = never_raises(made.record)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        record(error)
        before(kind, error, trace)

    return hook


def _plain(value: object) -> int | float | str | None:
    """A value that JSON can hold: ``nan``, ``inf`` and ``-inf`` as texts; None for a tensor."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if not isinstance(value, Real):
        return None
    number = float(value)
    return number if math.isfinite(number) else str(number)
