"""What the forward part of an iteration or of an evaluation shows: calls of models and layers, the loss."""

from __future__ import annotations

from typing import Any

import torch

from epochzero.injected.iterations import Iterations
from epochzero.run.watch.child.calls import CallRecorder
from epochzero.run.watch.child.experiments.laboratory import Laboratory
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.places import line_of, place, user_frame
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.safety import Safety, safe
from epochzero.run.watch.child.scenes import Scenes
from epochzero.run.watch.child.states import States
from epochzero.run.watch.child.statistics import number_in


class Forward:
    """Receives calls, with the model and layer that they belong to.

    Attributes:
        foreign: kinds of modules that are watched in another way.
        laboratory: experiments on what is called.
        states: receives what is loaded into models.
    """

    def __init__(
        self,
        records: Records,
        safety: Safety,
        iterations: Iterations,
        models: Models,
        scenes: Scenes,
        calls: CallRecorder,
        laboratory: Laboratory,
    ) -> None:
        self.safety = safety
        self.laboratory = laboratory
        self.foreign: tuple[type, ...] = ()
        self.states: States | None = None
        self._records = records
        self._iterations = iterations
        self._models = models
        self._scenes = scenes
        self._calls = calls
        self._stack: list[Any] = []

    @property
    def looking(self) -> bool:
        """Whether what happens now is looked at closely."""
        return self._scenes.scene.looking and not self.safety.ended

    @property
    def evaluating(self) -> bool:
        """Whether it is an evaluation."""
        return self._scenes.scene.evaluating and not self.safety.ended

    def wakes(self, module: Any) -> bool:
        """Whether the steps that are left out end with this call: all were taken, or an evaluation begins."""
        continues = self.safety.resting > 1 and module.training and torch.is_grad_enabled()
        return not continues and self._models.knows(module)

    @safe
    def enters(self, module: Any, args: Any, kwargs: Any) -> str:
        """A module is called; says what `leaves` must know."""
        if self.safety.resting:
            self._scenes.wake()
        if self._iterations.in_backward or isinstance(module, self.foreign) or _is_loss(module):
            return ""
        if self._stack:
            self._stack.append(module)
            return f"inner {self._scenes.scene.source(args)}"
        # A loss or an augmentation may be a module as well.
        if not self._models.knows(module) and next(module.parameters(), None) is None:
            return ""
        if self.states is not None and self.states.are_unused:
            self.states.used(module)
        self._scenes.model_called(
            module, evaluating=not (self.safety.gradients and module.training)
        )
        self._stack.append(module)
        scene = self._scenes.scene
        if scene.evaluating:
            first = scene.looking and not scene.calls
            self.laboratory.evaluated([args, kwargs] if first else [])
        path = self._models.path(module, module) if scene.looking or not scene.calls else ""
        scene.model_called(path, module, args, kwargs)
        # What the compiler has made of a model calls no modules, or traces them.
        self.safety.deaf = not scene.looking or type(module).__name__ == "OptimizedModule"
        if self._scenes.rests(module):
            self._stack.clear()
            return ""
        if scene.looking and not scene.evaluating:
            self.laboratory.model_called(module, [args, kwargs], self._iterations.number)
        return "outer"

    def called_layer(self) -> tuple[str, bool]:
        """The path of the layer that is being called, and whether any is."""
        if not self._stack:
            return "", False
        return self._models.path(self._stack[-1], self._stack[0]), True

    @safe
    def leaves(self, module: Any, output: Any, entered: str) -> None:
        """The call of a module has ended; without an output when it failed."""
        if not entered:
            return
        outermost = self._stack[0]
        self._stack.pop()
        if entered == "outer":
            self._stack.clear()
            self.safety.deaf = False
        if not self._scenes.scene.looking:
            return
        self._models.was_called(module)
        if output is not None:
            self._look_at_layer(module, self._models.path(module, outermost), output, entered)
        if entered == "outer":
            self._scenes.scene.model_left(output)
            self.laboratory.model_returned(output)

    def _look_at_layer(self, module: Any, path: str, output: Any, entered: str) -> None:
        if not any(module._modules.values()):
            source = entered.partition(" ")[2]
            self._scenes.scene.layer_called(path, type(module).__name__, output, source)
        if self._scenes.chosen:
            self._scenes.record_chosen(path, output)

    @safe
    def activation(self, name: str, args: Any, kwargs: Any, output: Any) -> None:
        """A function was called between the layers, not as a module of its own."""
        if (
            name in ("softmax", "log_softmax", "scaled_dot_product_attention")
            and not self.evaluating
        ):
            self._scenes.scene.normalized(name, args, kwargs, output, self.called_layer()[0])
        if name == "scaled_dot_product_attention":
            return
        if not self._stack:
            self._scenes.scene.activated(name, args, kwargs, output, "")
        elif any(self._stack[-1]._modules.values()):
            within = self._models.path(self._stack[-1], self._stack[0])
            self._scenes.scene.activated(name, args, kwargs, output, within)

    @safe
    def loss(self, name: str, value: Any, arguments: dict[str, Any]) -> None:
        """A function for losses was called."""
        output = arguments.get("input")
        if not isinstance(output, torch.Tensor) or not isinstance(value, torch.Tensor):
            return
        where = place()
        if self._records.is_first("loss", line_of(where)):
            weight = arguments.get("pos_weight", arguments.get("weight"))
            self._records.emit(
                "loss",
                function=name,
                place=where,
                reduction=arguments.get("reduction", "mean"),
                weight=weight.reshape(-1)[:64].tolist()
                if isinstance(weight, torch.Tensor)
                else None,
                evaluating=self._scenes.scene.evaluating,
            )
        if self.looking and not self.evaluating:
            reduction = str(arguments.get("reduction", "mean"))
            number = number_in(value.detach()) if value.numel() == 1 else None
            self._calls.add("loss", flag=f"{name} {reduction}", value=number, where=where)
        self._scenes.scene.loss_called(name, value, arguments)
        if self.looking and not self.evaluating:
            self.laboratory.target(arguments.get("target"), self._iterations.number)

    @safe
    def compared(self, left: Any, right: Any, result: Any) -> None:
        """Tensors were compared in an evaluation."""
        self._scenes.scene.compared(left, right, result)

    @safe
    def scalar(self, value: Any) -> None:
        """The user has read a number from a tensor."""
        frame = user_frame(directly=True)
        if frame is not None and not self._iterations.in_backward:
            self._scenes.scene.read(frame.f_code.co_filename, frame.f_lineno, value)

    @safe
    def value(self, name: str, tensor: Any) -> None:
        """The user wants to know how a tensor changes."""
        self._scenes.scene.value(name, tensor)


def _is_loss(module: Any) -> bool:
    return type(module).__module__ == "torch.nn.modules.loss"
