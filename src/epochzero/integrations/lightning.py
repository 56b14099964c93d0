"""Exact progress of a Lightning trainer.

Source: Lightning's documentation, "Callback", hooks; ``log_every_n_steps`` of its Trainer.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from epochzero.errors import InputError
from epochzero.integrations.memory import OomSafeStep, fit
from epochzero.integrations.reporting import never_raises, reporter
from epochzero.integrations.watch_callback import WatchCallback

try:
    from lightning.pytorch import Callback, LightningModule
except ModuleNotFoundError:
    from pytorch_lightning import Callback, LightningModule


class LightningCallback(Callback):
    """``Trainer(callbacks=[LightningCallback()])``."""

    def __init__(self) -> None:
        self._checkpoints: list[Any] = []
        self._newest = ""

    @never_raises
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Which rank this is, is known from here on."""
        reporter().rank = trainer.global_rank if trainer.world_size > 1 else None

    @never_raises
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Training begins, or continues from a checkpoint."""
        self._checkpoints = trainer.checkpoint_callbacks
        steps, epochs = trainer.estimated_stepping_batches, trainer.max_epochs
        reporter().report(
            phase="training",
            step=trainer.global_step,
            steps=steps if math.isfinite(steps) else None,
            epoch=trainer.current_epoch,
            epochs=epochs if epochs and epochs > 0 else None,
        )

    @never_raises
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """A batch is done. The loss is read where Lightning itself reads it for its loggers."""
        status = reporter()
        if not status.active or status.rank:
            return
        every = trainer.log_every_n_steps
        logged = every and (batch_idx + 1) % every == 0
        status.report(
            step=trainer.global_step,
            epoch=trainer.current_epoch + (batch_idx + 1) / trainer.num_training_batches,
            loss=_loss(outputs) if logged else None,
            checkpoint=self._new_checkpoint(),
        )

    @never_raises
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Validation within training is of its phase; by itself it is another."""
        if trainer.state.fn != "fit":
            reporter().report(phase="evaluation")

    @never_raises
    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Testing or prediction begins."""
        reporter().report(phase="evaluation")

    on_predict_start = on_test_start

    @never_raises
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """What follows is no training."""
        reporter().report(epoch=trainer.current_epoch, phase="evaluation")

    @never_raises
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """The last checkpoint is written after the last batch."""
        reporter().report(checkpoint=self._new_checkpoint())

    @never_raises
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """What ended training, also where the program catches it later."""
        reporter().record(exception)
        reporter().report(checkpoint=self._new_checkpoint())
        reporter().write()

    def _new_checkpoint(self) -> str | None:
        """What was written since the last call. Lightning has no hook after it has saved."""
        saved = next(filter(None, map(_saved, self._checkpoints)), "")
        if saved == self._newest:
            return None
        self._newest = saved
        return saved


class LightningWatch(WatchCallback, Callback):
    """``Trainer(callbacks=[LightningWatch()])``: looks for faults of the training, see `epochzero.watch`.

    Training is stopped when something that ``fail_on`` names is found; ``report`` is the path of a page
    that is written at the end.

    Attributes:
        watching: what is found; None before training.
    """

    @never_raises
    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Begins to watch."""
        optimizer = next(iter(trainer.optimizers), None)
        self._begin(pl_module, optimizer)

    @never_raises
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stops training for a fault."""
        if self._has_fault():
            trainer.should_stop = True

    @never_raises
    def on_fit_end(self, trainer: Any, pl_module: Any, *_: object) -> None:
        """Watches no longer."""
        self._end()

    on_exception = on_fit_end


class LightningFitMemory(Callback):
    """``Trainer(callbacks=[LightningFitMemory()])``: survives out-of-memory, see `epochzero.memory.fit`.

    Of a batch that is split, what ``training_step`` logs is what its last part logs.

    Attributes:
        step: what computes loss and gradients; None before the first step.
    """

    def __init__(self, **options: Any) -> None:
        """Nothing is changed before training; ``options`` are those of `epochzero.memory.fit`."""
        super().__init__()
        self.step: OomSafeStep | None = None
        self._options = options

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """From now on the module's step is ours: it computes the gradients, and Lightning none.

        Raises:
            InputError: the trainer or the module does something that cannot be repeated in parts.
        """
        if reason := _against_parts(trainer, pl_module):
            raise InputError(f"LightningFitMemory: {reason}; train without this callback")
        self._trainer, self._module = trainer, pl_module
        self._own, self._zero = pl_module.training_step, pl_module.optimizer_zero_grad
        self._takes_index = len(inspect.signature(self._own).parameters) > 1
        self.step = fit(
            self._loss,
            model=pl_module,
            optimizer=trainer.optimizers[0],
            backward=self._backward,
            **self._options,
        )
        pl_module.training_step = self._training_step
        pl_module.optimizer_zero_grad = _nothing
        pl_module.backward = _nothing

    def on_fit_end(self, trainer: Any, pl_module: Any, *_: object) -> None:
        """The module is as it was."""
        for name in ("training_step", "optimizer_zero_grad", "backward"):
            pl_module.__dict__.pop(name, None)

    on_exception = on_fit_end

    def _training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Lightning clears gradients between step and backward, which are one here: they are cleared before."""
        assert self.step is not None
        trainer, self._index = self._trainer, batch_idx
        if batch_idx % trainer.accumulate_grad_batches == 0:
            self._zero(trainer.current_epoch, batch_idx, trainer.optimizers[0])
        loss: Tensor = self.step(batch) * trainer.accumulate_grad_batches
        return loss.requires_grad_()

    def _loss(self, part: Any) -> Tensor:
        output = self._own(part, self._index) if self._takes_index else self._own(part)
        if isinstance(output, Mapping):
            if len(output) > 1:
                raise InputError(
                    "LightningFitMemory: training_step returns more than the loss, which cannot be combined from parts "
                    "of a batch; train without this callback"
                )
            output = output["loss"]
        loss: Tensor = output / self._trainer.accumulate_grad_batches
        return loss

    def _backward(self, loss: Tensor) -> None:
        scaler = getattr(self._trainer.precision_plugin, "scaler", None)
        (loss if scaler is None else scaler.scale(loss)).backward()


def _nothing(*_: Any, **__: Any) -> None:
    """Done already."""


def _against_parts(trainer: Any, module: Any) -> str:
    """Why the step of a module cannot be repeated in parts; empty where it can."""
    if not module.automatic_optimization:
        return "the module uses manual optimization; use epochzero.memory.fit in its training_step"
    if trainer.world_size > 1:
        return "this Lightning strategy exchanges gradients within a step"
    if len(trainer.optimizers) != 1:
        return f"the module has {len(trainer.optimizers)} optimizers"
    for name in ("backward", "optimizer_zero_grad"):
        if getattr(type(module), name) is not getattr(LightningModule, name):
            return f"the module overrides {name}"
    if "dataloader_iter" in inspect.signature(module.training_step).parameters:
        return "training_step takes an iterator, not a batch"
    return ""


def _saved(callback: Any) -> str:
    """Where a `ModelCheckpoint` wrote last; other checkpoint callbacks need not say."""
    names = ("_last_checkpoint_saved", "last_model_path", "best_model_path")
    return next((path for name in names if (path := getattr(callback, name, ""))), "")


def _loss(outputs: Any) -> float | None:
    loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
    return None if loss is None else float(loss)
