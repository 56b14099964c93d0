"""Looks for faults of the training in this process: ``with epochzero.watch(model, optimizer): ...``

Runs in the job: but for what ``fail_on`` asks, it never raises.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from epochzero.errors import TrainingFault
from epochzero.run.watch.child.begin import active, is_first, watch_here
from epochzero.run.watch.child.places import user_frame
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.options import with_options
from epochzero.run.watch.live import fails
from epochzero.run.watch.model import CONFIRMED, TOLD, TrainingFinding, WatchResult
from epochzero.run.watch.record_reader import RecordBuffer
from epochzero.run.watch.sources import call_of, layer_places
from epochzero.run.watch.verdict import conclude

_FREE_S, _SHARE = 1.0, 0.01
"""Seconds that conclusions may take, and the share of the job's time beyond; looking has its own."""
_log = logging.getLogger("epochzero")


def watch(
    model: torch.nn.Module | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    fail_on: str | Iterable[str] = (),
    every: int = 0,
    values: Iterable[str] = (),
) -> Watch:
    """Watches all training in this process until `Watch.close`, or to the end of ``with``.

    A finding is logged as a warning of the logger ``epochzero`` when it is first seen.

    >>> with epochzero.watch(model, optimizer, fail_on="any") as watching:  # doctest: +SKIP
    ...     train(model, optimizer)
    >>> watching.watched.root  # doctest: +SKIP

    Args:
        model: if it is made already: the lines of its layers are then looked up in the source.
        optimizer: the same of the optimizer.
        fail_on: words of faults or symptoms for which the next step raises once they are confirmed; ``any`` for all.
        every: look closer at each such iteration; 0 as often as costs little time.
        values: paths of layers and parameters whose values are kept over time.

    Raises:
        TrainingFault: later, from an optimizer's step or the end of ``with``, as ``fail_on`` says.
    """
    return Watch(model, optimizer, fail_on=fail_on, every=every, values=values)


def watch_tensor(name: str, tensor: torch.Tensor) -> None:
    """Keeps the values of a tensor over time, where this process is watched; else does nothing.

    Args:
        name: under which it is shown.
        tensor: any; its statistics are taken when the iteration is looked at closely.
    """
    for observer in active():
        observer.forward.value(name, tensor)


class Watch:
    """What is found in this process so far; see `watch`.

    Attributes:
        fault: the finding for which ``fail_on`` ends the training; None so far.
    """

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        fail_on: str | Iterable[str] = (),
        every: int = 0,
        values: Iterable[str] = (),
        raises: bool = True,
    ) -> None:
        """Begins to watch; ``raises`` is whether ``fail_on`` does, or only sets `fault`."""
        self.fault: TrainingFinding | None = None
        self._fail_on = frozenset((fail_on,) if isinstance(fail_on, str) else fail_on)
        self._raises = raises
        self._followed = RecordBuffer()
        self._watched: WatchResult | None = None
        self._reported: set[tuple[str, str]] = set()
        self._began, self._spent = time.perf_counter(), 0.0
        self._new = False
        self._watching = watch_here(self._hear, every, values) if is_first(os.environ) else None
        self._hook = register_optimizer_step_post_hook(lambda *_: self.judge())
        atexit.register(self.close)
        with suppress(Exception):
            self._introduce(model, optimizer)

    @property
    def history(self) -> TrainingHistory:
        """What was seen, as series."""
        return self._followed.history()

    @property
    def watched(self) -> WatchResult:
        """The verdict on all that was seen so far."""
        if self._new or self._watched is None:
            self._conclude()
        return self._watched or WatchResult(0)

    @property
    def findings(self) -> tuple[TrainingFinding, ...]:
        """All findings, the root first."""
        return self.watched.findings

    def report(self, path: str | Path) -> None:
        """Writes the page with the verdict and the curves: one HTML file without a network.

        Raises:
            OSError: the file cannot be written.
        """
        from epochzero.run.watch.page import page

        Path(path).write_text(page(self.history, self.watched), encoding="utf-8")

    def keras_callback(self) -> Any:
        """Sees what a ``fit`` of Keras does that is already running; None where nothing is watched."""
        keras = self._watching.keras if self._watching is not None else None
        return keras.joins() if keras is not None else None

    def close(self) -> None:
        """Watches no longer. Closing twice does nothing."""
        if self._watching is not None:
            self._watching.close()
            self._watching = None
        self._hook.remove()
        atexit.unregister(self.close)
        if self._new:
            self._conclude()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self.close()
        if kind is None:
            self._raise()

    def _introduce(self, model: Any, optimizer: Any) -> None:
        """Tells the observer where the model and the optimizer were made, as the source shows."""
        frame = user_frame()
        if self._watching is None or frame is None:
            return
        observer, file = self._watching.observer, frame.f_code.co_filename
        near = {"first": frame.f_code.co_firstlineno, "last": frame.f_lineno}
        if model is not None:
            made = call_of(file, type(model).__name__, **near)
            for path, place in layer_places(model, made).items():
                where = [place.path, place.line, place.text]
                observer.components.module_made_at(model.get_submodule(path), where)
        if optimizer is not None:
            call = call_of(file, type(optimizer).__name__, **near)
            line = [file, call[1].lineno, ""] if call else None
            observer.components.optimizer_made(optimizer, line)

    def _hear(self, record: dict[str, Any]) -> None:
        self._followed.take(record, len(str(record)))
        self._new = True

    def judge(self) -> None:
        """Concludes from what is new, where the time allows it; called after each step of an optimizer.

        Raises:
            TrainingFault: as ``fail_on`` says.
        """
        allowed = _FREE_S + _SHARE * (time.perf_counter() - self._began)
        if self._new and self._spent <= allowed:
            # Processor time: on a busy machine a conclusion takes long, and costs the training no more.
            start = time.thread_time()
            self._conclude()
            self._spent += time.thread_time() - start
        self._raise()

    def _raise(self) -> None:
        if self.fault is not None and self._raises:
            fault, self.fault = self.fault, None
            raise TrainingFault(_told(fault), fault)

    def _conclude(self) -> None:
        self._new = False
        try:
            self._watched = with_options(conclude(self.history), self.history.arguments)
        except Exception:
            _log.warning("the training cannot be evaluated; it continues", exc_info=True)
            self._spent = float("inf")
            return
        for finding in self._watched.findings:
            known = {(finding.word, finding.state), (finding.word, CONFIRMED)} & self._reported
            if known or (finding.confidence < TOLD and finding.state != CONFIRMED):
                continue
            self._reported.add((finding.word, finding.state))
            _log.warning("%s", _told(finding))
            if self.fault is None and fails(finding, self._fail_on):
                self.fault = finding


def _told(finding: TrainingFinding) -> str:
    place = f" ({finding.place.path}:{finding.place.line})" if finding.place else ""
    return f"{finding.state}: {finding.title}{place}: {finding.text} {finding.fix}".strip()
