"""Exact progress of a Transformers trainer, and of what is built on it, such as those of TRL.

Source: Transformers' documentation, "Callbacks", `TrainerCallback` and `TrainerState`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

from epochzero.integrations.reporting import never_raises, reporter
from epochzero.integrations.watching import Watch

__all__ = ["TransformersCallback", "TransformersWatch"]


class TransformersCallback(TrainerCallback):
    """``Trainer(..., callbacks=[TransformersCallback()])``."""

    @never_raises
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Training begins, or goes on from a checkpoint."""
        reporter().rank = args.process_index if args.world_size > 1 else None
        reporter().tell(
            phase="training",
            step=state.global_step,
            steps=state.max_steps,
            epoch=state.epoch,
            epochs=state.num_train_epochs,
        )

    @never_raises
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A step of the optimizer is done."""
        reporter().tell(step=state.global_step, epoch=state.epoch)

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
        reporter().tell(loss=(logs or {}).get("loss"))

    @never_raises
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A checkpoint was written; in a search for hyperparameters it may stand elsewhere."""
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        if os.path.isdir(path):
            reporter().tell(checkpoint=path)

    @never_raises
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """What follows is no training."""
        reporter().tell(step=state.global_step, epoch=state.epoch, phase="evaluation")


class TransformersWatch(TrainerCallback):
    """``Trainer(..., callbacks=[TransformersWatch()])``: looks for faults of the training, see `epochzero.watch`.

    Training is stopped when something that ``fail_on`` names is found; ``report`` is the path of a page
    that is written at the end.

    Attributes:
        watching: what is found; None before training.
    """

    def __init__(self, report: str | None = None, **options: Any) -> None:
        super().__init__()
        self.watching: Watch | None = None
        self._report = report
        self._options = options

    def _ends(self) -> None:
        if self.watching is not None:
            self.watching.close()
            if self._report:
                self.watching.report(self._report)

    @never_raises
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begins to watch."""
        self.watching = Watch(kwargs.get("model"), raises=False, **self._options)

    @never_raises
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stops training for a fault."""
        if self.watching is not None and self.watching.fault is not None:
            control.should_training_stop = True

    @never_raises
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Watches no longer."""
        self._ends()
