"""Exact progress of a Keras model's ``fit``, on any backend.

Source: Keras' documentation, "Base Callback class".
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from keras.callbacks import Callback

from epochzero.integrations.reporting import never_raises, reporter

__all__ = ["KerasCallback"]


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
        reporter().tell(phase="training", epochs=epochs, steps=steps)

    @never_raises
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """An epoch begins; the first need not be 0."""
        batches = self.params.get("steps")
        self._epoch = epoch
        self._before = epoch * batches if batches else self._step
        reporter().tell(epoch=epoch)

    @never_raises
    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Some batches are done, the last of which is this; Keras has made numbers of the losses."""
        step = self._before + batch + 1
        batches = self.params.get("steps")
        with self._lock:
            if step <= self._step:
                return
            self._step = step
            reporter().tell(
                step=step,
                epoch=self._epoch + (batch + 1) / batches if batches else None,
                loss=(logs or {}).get("loss"),
            )

    @never_raises
    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """An epoch is done."""
        reporter().tell(epoch=epoch + 1)

    @never_raises
    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """What follows is no training."""
        reporter().tell(phase="evaluation")
