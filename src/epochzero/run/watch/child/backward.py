"""What backward passes and steps show: the loss, gradients, weights and their updates."""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child.made import Made
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.origin import origin
from epochzero.run.watch.child.places import line_of, locals_of, place, user_frame
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.safety import Safety, safe
from epochzero.run.watch.child.scenes import Scenes
from epochzero.run.watch.child.schedule import Schedule


class Backward:
    """Is told of backward passes, steps and what is done to gradients between them."""

    def __init__(
        self,
        records: Records,
        schedule: Schedule,
        safety: Safety,
        iterations: Iterations,
        models: Models,
        made: Made,
        scenes: Scenes,
    ) -> None:
        self.safety = safety
        self._records = records
        self._schedule = schedule
        self._iterations = iterations
        self._models = models
        self._made = made
        self._scenes = scenes
        self._line = ""

    @property
    def steps(self) -> int:
        """Of all optimizers so far."""
        return self._iterations.steps

    # Backward passes ------------------------------------------------------------------------------

    @safe
    def backward_begins(self, tensors: Any) -> bool:
        """A backward pass begins; says whether `backward_ended` must be called."""
        several = isinstance(tensors, (tuple, list))
        tensor = next(iter(tensors), None) if several else tensors
        if self._iterations.in_backward or not isinstance(tensor, torch.Tensor) or tensor.is_meta:
            return False
        # What looked like an evaluation trains.
        self._scenes.scene.evaluating = False
        where = place()
        line = self._line = line_of(where)
        if self._records.is_first("backward", line):
            self._records.emit("backward", line=line, place=where, graph=_heads(tensor))
        if self._scenes.scene.looking:
            self._look_before()
        self._scenes.passes.add(line)
        self._note_loss(tensor, where)
        # What is called within it is called again, for its checkpoints.
        self._iterations.backward_begins()
        self.safety.deaf = True
        return True

    @safe
    def backward_ended(self) -> None:
        """A backward pass has ended, or failed."""
        self.safety.deaf = False
        if self._iterations.backward_ended():
            self._scenes.iteration_ended()

    def _look_before(self) -> None:
        optimizers = self._made.optimizers()
        if not self._iterations.backwards:
            self._models.tell(self._iterations.number, optimizers)
            self._look_at_own_loss()
        self._scenes.passes.look_before(self._models.parameters(), optimizers)

    def _look_at_own_loss(self) -> None:
        """Output and target of a loss that no function of torch has computed."""
        frame = user_frame()
        if frame is not None and not self._scenes.scene.has_loss:
            self._scenes.scene.own_loss(locals_of(frame))

    def _note_loss(self, tensor: torch.Tensor, where: list[Any] | None) -> None:
        number, looking = self._iterations.number, self._scenes.scene.looking
        loss = self._scenes.losses.add(number, self._line, tensor, read=looking)
        if isinstance(loss, float) and not isfinite(loss) and self._records.is_first("nonfinite"):
            told = {"iteration": number, "loss": str(loss)}
            self._records.emit("nonfinite", **told, place=where, operators=origin(tensor))

    # Steps ----------------------------------------------------------------------------------------

    @safe
    def step_begins(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self._made.number(optimizer)
        if self._iterations.has_stepped(optimizer):
            self._scenes.iteration_ended()
        elif self._scenes.scene.evaluating:
            # Its closure is going to call the model, and train.
            self._scenes.evaluation_ended()
        self._iterations.step_begins()
        if self._scenes.scene.looking:
            self._scenes.passes.step_begins(self._models.parameters(), optimizer)

    @safe
    def step_ended(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        ended = self._iterations.step_ended(optimizer, self._made.optimizers())
        if self._scenes.scene.looking:
            where = place()
            number = self._made.number(optimizer)
            if self._records.is_first("step", (number, line_of(where), self._line)):
                self._records.emit("step", optimizer=number, place=where, backward=self._line)
        self._scenes.passes.step_ended()
        if ended:
            self._scenes.iteration_ended()

    @safe
    def step_skipped(self, optimizer: Any) -> None:
        """The scaler of gradients has found some that are not finite, and left out the step."""
        self._scenes.scene.note("skipped_steps", 1)
        self._made.number(optimizer)
        if self._iterations.step_ended(optimizer, self._made.optimizers()):
            self._scenes.iteration_ended()

    # Gradients ------------------------------------------------------------------------------------

    @safe
    def scaled(self, result: Any, scaler: Any, outputs: Any, *_: Any) -> None:
        """A loss is scaled before its backward pass."""
        if isinstance(result, torch.Tensor) and isinstance(outputs, torch.Tensor):
            self._scenes.losses.scaled(result, outputs)

    @safe
    def scale_updated(self, _: Any, scaler: Any, *__: Any, **___: Any) -> None:
        """The scaler of gradients has chosen its next scale."""
        number = self._iterations.number
        if self._schedule.due(number):
            self._records.emit("scaler", iteration=number, scale=scaler.get_scale())

    @safe
    def clipped(self, name: str, norm: Any, *args: Any, **kwargs: Any) -> None:
        """Gradients were clipped."""
        names = ("max_norm", "clip_value")
        limit = next((kwargs[one] for one in names if one in kwargs), None)
        if limit is None and len(args) > 1:
            limit = args[1]
        limit = None if limit is None else float(limit)
        where = place()
        if self._records.is_first("clip", line_of(where)):
            self._records.emit("clip", function=name, limit=limit, place=where)
        if self._scenes.scene.looking:
            self._scenes.scene.clipped(line_of(where), limit, norm)


def _heads(tensor: torch.Tensor) -> list[str]:
    """The last operators of a loss, the last first."""
    found: list[str] = []
    node = tensor.grad_fn
    while node is not None and len(found) < 12:
        found.append(type(node).__name__)
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return found
