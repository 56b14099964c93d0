"""What backward passes and steps show: the loss, gradients, weights and their updates."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any

import torch

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child.calls import CallRecorder
from epochzero.run.watch.child.components import Components
from epochzero.run.watch.child.experiments.laboratory import Laboratory
from epochzero.run.watch.child.losses import Loss
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.origin import origin
from epochzero.run.watch.child.places import line_of, locals_of, place, user_frame
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.safety import Safety, safe
from epochzero.run.watch.child.scenes import Scenes
from epochzero.run.watch.child.schedule import Schedule


class Backward:
    """Observes backward passes, steps and what is done to gradients between them.

    Attributes:
        is_scheduling: whether a schedule is being stepped.
    """

    def __init__(
        self,
        records: Records,
        schedule: Schedule,
        safety: Safety,
        iterations: Iterations,
        models: Models,
        components: Components,
        scenes: Scenes,
        calls: CallRecorder,
        laboratory: Laboratory,
    ) -> None:
        self.safety = safety
        self._laboratory = laboratory
        self._records = records
        self._schedule = schedule
        self._iterations = iterations
        self._models = models
        self._components = components
        self._scenes = scenes
        self._calls = calls
        self.is_scheduling = False
        self._scaling = False
        self._passes_before = 0
        self._line = ""
        self._gradient: _Noted | None = None
        self._with_gradient = 0

    @property
    def steps(self) -> int:
        """Of all optimizers so far."""
        return self._iterations.steps

    # Backward passes ------------------------------------------------------------------------------

    def are_parameters(self, tensors: Sequence[Any]) -> bool:
        """Whether tensors are all parameters, of a module or because an optimizer holds them."""
        others = {id(t) for t in tensors if not isinstance(t, torch.nn.Parameter)}
        return bool(tensors) and (not others or others <= self._components.held())

    @safe
    def backward_begins(self, tensors: Any, *, accumulates: bool = True) -> bool:
        """A backward pass begins, which adds to gradients or returns them; says whether `backward_ended` must be called."""
        several = isinstance(tensors, (tuple, list))
        tensor = next(iter(tensors), None) if several else tensors
        if self._iterations.in_backward or not isinstance(tensor, torch.Tensor) or tensor.is_meta:
            return False
        self._laboratory.backward_begins(tensor)
        # What looked like an evaluation trains.
        self._scenes.scene.evaluating = False
        where = place()
        line = self._line = line_of(where)
        if self._records.is_first("backward", line):
            self._records.emit("backward", line=line, place=where, graph=_heads(tensor))
        if self._scenes.scene.looking:
            self._look_before(accumulates=accumulates)
        self._scenes.passes.add(line)
        loss = self._note_loss(tensor, where)
        self._note_backward(tensor, loss, where)
        # What is called within it is called again, for its checkpoints.
        self._iterations.backward_begins()
        self.safety.deaf = True
        return True

    @safe
    def backward_ended(self) -> None:
        """A backward pass has ended, or failed."""
        self.safety.deaf = False
        # What was noted earlier says nothing of this pass.
        self._gradient = None
        if self._scenes.scene.looking:
            self._laboratory.backward_ended(self._components.optimizers())
            self._gradient = _first_gradient(self._models.parameters())
        if self._iterations.backward_ended():
            self._scenes.iteration_ended()

    def _look_before(self, *, accumulates: bool) -> None:
        optimizers = self._components.optimizers()
        if not self._iterations.backwards:
            self._models.emit(self._iterations.number, optimizers)
            self._look_at_own_loss()
        if accumulates:
            self._scenes.passes.look_before(self._models.parameters(), optimizers)

    def _look_at_own_loss(self) -> None:
        """Output and target of a loss that no function of torch has computed."""
        frame = user_frame()
        if frame is not None and not self._scenes.scene.has_loss:
            self._scenes.scene.own_loss(locals_of(frame))

    def _note_loss(self, tensor: torch.Tensor, where: list[Any] | None) -> Loss:
        number, looking = self._iterations.number, self._scenes.scene.looking
        loss = self._scenes.losses.add(number, self._line, tensor, read=looking)
        if isinstance(loss, float) and not isfinite(loss) and self._records.is_first("nonfinite"):
            fields = {"iteration": number, "loss": str(loss)}
            self._records.emit("nonfinite", **fields, place=where, operators=origin(tensor))
        return loss

    def _note_backward(self, tensor: torch.Tensor, loss: Loss, where: list[Any] | None) -> None:
        looking = self._scenes.scene.looking
        self._calls.begin(self._iterations.number, inspected=looking)
        flag = "scaled" if self._scenes.losses.is_scaled(tensor) else ""
        value = loss if looking and isinstance(loss, float) else None
        self._calls.add("backward", flag=flag, value=value, where=where)

    # Steps ----------------------------------------------------------------------------------------

    @safe
    def step_begins(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self._laboratory.give_up()
        self._components.number(optimizer)
        if self._iterations.has_stepped(optimizer):
            self._scenes.iteration_ended()
        elif self._scenes.scene.evaluating:
            # Its closure is going to call the model, and train.
            self._scenes.evaluation_ended()
        self._iterations.step_begins()
        self._passes_before = self._iterations.backwards
        if self._scenes.scene.looking:
            self._note_assigned(optimizer)
            self._with_gradient = _with_gradient(optimizer)
            self._scenes.passes.step_begins(self._models.parameters(), optimizer)

    def _note_assigned(self, optimizer: Any) -> None:
        """Notes that the program has changed gradients itself since the last backward pass, as differential privacy does."""
        noted, self._gradient = self._gradient, None
        parameter = noted[0]() if noted is not None else None
        if noted is None or parameter is None or parameter.grad is None:
            return
        since = self._calls.since_backward()
        # Each of these multiplies a gradient once; clearing sets it to 0.
        known = since.count("clip") + since.count("unscale") + self._scaling
        changed = parameter.grad._version > noted[2] + known and "clear" not in since
        if id(parameter.grad) != noted[1] or changed:
            self._add("assign", optimizer)

    def _note_moved(self) -> None:
        """Notes that the program itself has moved weights since the last backward pass, as sharpness-aware training does."""
        parameter = self._gradient[0]() if self._gradient is not None else None
        if self._gradient is None or parameter is None or "step" in self._calls.since_backward():
            return
        if not torch.equal(_first_elements(parameter), self._gradient[3]):
            self._calls.add("assign", inspected=True)

    @safe
    def step_ended(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        # A step may have computed its gradients itself; a line search does so several times.
        repeats = self._iterations.backwards > self._passes_before + 1
        flag = "repeated" if repeats else "scaler" if self._scaling else ""
        # A closure computes gradients within the step.
        looking = self._scenes.scene.looking
        found = max(self._with_gradient, _with_gradient(optimizer)) if looking else None
        self._add("step", optimizer, flag, found)
        self._components.note_rate(optimizer)
        ended = self._iterations.step_ended(optimizer, self._components.optimizers())
        if self._scenes.scene.looking:
            where = place()
            number = self._components.number(optimizer)
            if self._records.is_first("step", (number, line_of(where), self._line)):
                self._records.emit("step", optimizer=number, place=where, backward=self._line)
        self._scenes.passes.step_ended()
        self._laboratory.step_ended()
        if ended:
            self._scenes.iteration_ended()

    @safe
    def step_skipped(self, optimizer: Any) -> None:
        """The scaler of gradients has found some that are not finite, and left out the step."""
        self._add("step", optimizer, "skipped")
        self._scenes.scene.note("skipped_steps", 1)
        self._components.number(optimizer)
        if self._iterations.step_ended(optimizer, self._components.optimizers()):
            self._scenes.iteration_ended()

    # Gradients ------------------------------------------------------------------------------------

    @safe
    def scaled(self, result: Any, scaler: Any, outputs: Any, *_: Any) -> None:
        """A loss is scaled before its backward pass."""
        if (
            isinstance(result, torch.Tensor)
            and isinstance(outputs, torch.Tensor)
            and result is not outputs
        ):
            self._scenes.losses.scaled(result, outputs)

    @safe
    def scale_updated(self, _: Any, scaler: Any, *__: Any, **___: Any) -> None:
        """The scaler of gradients has chosen its next scale."""
        number = self._iterations.number
        if self._schedule.due(number):
            self._records.emit("scaler", iteration=number, scale=scaler.get_scale())

    @contextlib.contextmanager
    def scaler_steps(self, enabled: bool) -> Iterator[None]:
        """A step is taken by a scaler of gradients, which unscales them if the program has not."""
        self._scaling = enabled
        try:
            yield
        finally:
            self._scaling = False

    @safe
    def unscaled(self, _: Any, scaler: Any, optimizer: Any = None, *__: Any, **___: Any) -> None:
        """Gradients are divided by the scale of the loss."""
        if not self._scaling and optimizer is not None and scaler.is_enabled():
            self._add("unscale", optimizer)

    @safe
    def cleared(self, _: Any, owner: Any, *__: Any, **___: Any) -> None:
        """Gradients are cleared, by an optimizer or of all parameters of a module."""
        self._note_moved()
        if isinstance(owner, torch.optim.Optimizer):
            self._add("clear", owner)
            return
        for number in sorted(self._calls.owners(owner, self._components.optimizers())):
            self._calls.add("clear", number, inspected=self._scenes.scene.looking)

    @safe
    def scheduled(self, scheduler: Any) -> None:
        """A schedule of the learning rate is stepped."""
        number = self._components.scheduler_stepped(scheduler)
        if number is not None and not self.safety.resting:
            self._calls.add("schedule", number, inspected=self._scenes.scene.looking)

    def _add(self, kind: str, optimizer: Any, flag: str = "", value: float | None = None) -> None:
        inspected, number = self._scenes.scene.looking, self._components.number(optimizer)
        self._calls.add(kind, number, flag=flag, value=value, inspected=inspected)

    @safe
    def clipped(self, name: str, norm: Any, *args: Any, **kwargs: Any) -> None:
        """Gradients were clipped."""
        names = ("max_norm", "clip_value")
        limit = next((kwargs[text] for text in names if text in kwargs), None)
        if limit is None and len(args) > 1:
            limit = args[1]
        limit = None if limit is None else float(limit)
        where = place()
        self._calls.add("clip", flag=name, value=limit, where=where)
        if self._records.is_first("clip", line_of(where)):
            self._records.emit("clip", function=name, limit=limit, place=where)
        if self._scenes.scene.looking:
            self._scenes.scene.clipped(line_of(where), limit, norm)


def _with_gradient(optimizer: Any) -> int:
    """How many parameters of an optimizer have a gradient."""
    return sum(p.grad is not None for group in optimizer.param_groups for p in group["params"])


_Noted = tuple[weakref.ref[Any], int, int, torch.Tensor]


def _first_gradient(parameters: Iterable[tuple[str, Any]]) -> _Noted | None:
    """A parameter that has a gradient, with the identity and the version of that, and its first elements."""
    for _, parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            elements = _first_elements(parameter).clone()
            return weakref.ref(parameter), id(gradient), gradient._version, elements
    return None


def _first_elements(parameter: Any) -> torch.Tensor:
    # Of a distributed tensor only what this rank has: anything else would communicate.
    own: torch.Tensor = getattr(parameter, "_local_tensor", parameter)
    return own.detach().flatten()[:8]


def _heads(tensor: torch.Tensor) -> list[str]:
    """The last operators of a loss, the last first."""
    found: list[str] = []
    node = tensor.grad_fn
    while node is not None and len(found) < 12:
        found.append(type(node).__name__)
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return found
