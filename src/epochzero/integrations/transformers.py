"""Exact progress of a Transformers trainer, and of what is built on it, such as those of TRL.

Source: Transformers' documentation, "Callbacks", `TrainerCallback` and `TrainerState`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from transformers import Trainer, TrainerCallback

from epochzero.errors import InputError
from epochzero.integrations.memory import OomSafeStep, fit
from epochzero.integrations.reporting import never_raises, reporter
from epochzero.integrations.watch_callback import WatchCallback


class TransformersCallback(TrainerCallback):
    """``Trainer(..., callbacks=[TransformersCallback()])``."""

    @never_raises
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Training begins, or continues from a checkpoint."""
        reporter().rank = args.process_index if args.world_size > 1 else None
        reporter().report(
            phase="training",
            step=state.global_step,
            steps=state.max_steps,
            epoch=state.epoch,
            epochs=state.num_train_epochs,
        )

    @never_raises
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A step of the optimizer is done."""
        reporter().report(step=state.global_step, epoch=state.epoch)

    @never_raises
    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """The trainer has read the loss, and says it as a number."""
        reporter().report(loss=(logs or {}).get("loss"))

    @never_raises
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A checkpoint was written; in a search for hyperparameters it may stand elsewhere."""
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        if os.path.isdir(path):
            reporter().report(checkpoint=path)

    @never_raises
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """What follows is no training."""
        reporter().report(step=state.global_step, epoch=state.epoch, phase="evaluation")


class TransformersWatch(WatchCallback, TrainerCallback):
    """``Trainer(..., callbacks=[TransformersWatch()])``: looks for faults of the training, see `epochzero.watch`.

    Training is stopped when something that ``fail_on`` names is found; ``report`` is the path of a page
    that is written at the end.

    Attributes:
        watching: what is found; None before training.
    """

    @never_raises
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begins to watch."""
        self._begin(kwargs.get("model"))

    @never_raises
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stops training for a fault."""
        if self._has_fault():
            control.should_training_stop = True

    @never_raises
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Watches no longer."""
        self._end()


class TransformersFitMemory(TrainerCallback):
    """``trainer.add_callback(TransformersFitMemory(trainer))``: survives out-of-memory, see `epochzero.memory.fit`.

    Attributes:
        step: what computes loss and gradients; None before the first step.
    """

    def __init__(self, trainer: Any, **options: Any) -> None:
        """Nothing is changed before training; ``options`` are those of `epochzero.memory.fit`.

        Raises:
            InputError: the trainer does something in its step that cannot be repeated in parts.
        """
        super().__init__()
        if reason := _against_parts(trainer):
            raise InputError(f"TransformersFitMemory: {reason}; train without this callback")
        self.step: OomSafeStep | None = None
        self._trainer = trainer
        self._options = options

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """From now on the trainer's step is ours."""
        self.step = None
        self._trainer.training_step = self._training_step

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The trainer's step is its own again."""
        self._trainer.__dict__.pop("training_step", None)

    def _training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """What `Trainer.training_step` does, in parts where memory needs it."""
        trainer = self._trainer
        model.train()
        if callable(train := getattr(trainer.optimizer, "train", None)):
            train()
        self._model, self._items = model, num_items_in_batch
        if self.step is None:
            self.step = fit(
                self._loss,
                model=model,
                optimizer=getattr(trainer.optimizer, "optimizer", trainer.optimizer),
                backward=trainer.accelerator.backward,
                **self._options,
            )
        return self.step(trainer._prepare_inputs(inputs))

    def _loss(self, part: Any) -> Tensor:
        trainer, items = self._trainer, self._items
        with trainer.compute_loss_context_manager():
            loss: Tensor = trainer.compute_loss(self._model, part, num_items_in_batch=items)
        scaled = getattr(trainer, "loss_is_scaled_for_ga", None)
        if scaled is None:
            by_items = trainer.model_accepts_loss_kwargs and items is not None
            scaled = by_items or trainer.compute_loss_func is not None
        return loss if scaled else loss / trainer.current_gradient_accumulation_steps


def _against_parts(trainer: Any) -> str:
    """Why the step of a trainer cannot be repeated in parts; empty where it can."""
    if type(trainer).training_step is not Trainer.training_step:
        return f"{type(trainer).__name__} overrides training_step"
    if trainer.args.n_gpu > 1:
        return "the trainer uses several GPUs from one process; start it with torchrun"
    if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
        return "DeepSpeed and FSDP exchange weights within a step"
    if "lomo" in str(trainer.args.optim).lower():
        return "LOMO updates weights within backward"
    if getattr(trainer.args, "parallelism_config", None) is not None:
        return "a batch that is sharded over ranks cannot be split"
    return ""
