"""Exact progress of a Keras model's ``fit``, on any backend.

Source: Keras' documentation, "Base Callback class".
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from keras.callbacks import Callback

from epochzero.integrations.reporting import never_raises, reporter
from epochzero.integrations.watch_callback import WatchCallback


class KerasCallback(Callback):
    """``model.fit(..., callbacks=[KerasCallback()])``. Keras does not say where checkpoints are."""

    async_safe = True
    """Keras need not wait for the GPU to call it: it may do so from several threads, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._epoch = 0
        self._before = 0
        self._step = 0

    @never_raises
    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Training begins."""
        self._step = 0
        epochs, batches = self.params.get("epochs"), self.params.get("steps")
        steps = epochs * batches if epochs and batches else None
        reporter().report(phase="training", epochs=epochs, steps=steps)

    @never_raises
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """An epoch begins; the first need not be 0."""
        batches = self.params.get("steps")
        self._epoch = epoch
        self._before = epoch * batches if batches else self._step
        reporter().report(epoch=epoch)

    @never_raises
    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Some batches up to this one are complete; Keras has converted the losses to numbers."""
        step = self._before + batch + 1
        batches = self.params.get("steps")
        with self._lock:
            if step <= self._step:
                return
            self._step = step
            reporter().report(
                step=step,
                epoch=self._epoch + (batch + 1) / batches if batches else None,
                loss=(logs or {}).get("loss"),
            )

    @never_raises
    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """An epoch is done."""
        reporter().report(epoch=epoch + 1)

    @never_raises
    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """What follows is no training."""
        reporter().report(phase="evaluation")


class KerasWatch(WatchCallback, Callback):
    """``model.fit(..., callbacks=[KerasWatch()])``: looks for faults of the training, see `epochzero.watch`.

    Training is stopped when something that ``fail_on`` names is found; ``report`` is the path of a page
    that is written at the end.

    Attributes:
        watching: what is found; None before training.
    """

    def __init__(self, report: str | None = None, **options: Any) -> None:
        super().__init__(report, **options)
        self._sees: Any = None

    @never_raises
    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Begins to watch."""
        self._sees = self._begin().keras_callback() or Callback()
        self._sees.set_model(self.model)
        self._sees.set_params(self.params)
        self._sees.on_train_begin(logs)

    @never_raises
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Sees it."""
        self._sees.on_epoch_begin(epoch, logs)

    @never_raises
    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Sees it."""
        self._sees.on_train_batch_begin(batch, logs)

    @never_raises
    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Sees it, and stops training for a fault."""
        self._sees.on_train_batch_end(batch, logs)
        if self.watching is not None:
            self.watching.judge()
            if self._has_fault():
                self.model.stop_training = True

    @never_raises
    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Sees it."""
        self._sees.on_test_begin(logs)

    @never_raises
    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Sees it."""
        self._sees.on_test_end(logs)

    @never_raises
    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Watches no longer."""
        self._end()
