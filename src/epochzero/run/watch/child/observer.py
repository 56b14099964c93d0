"""Where the training is, and what is seen there.

An iteration is what happens up to the end of an optimizer's step: forward calls of the model, the loss,
one or more backward passes, the step; of several optimizers each has stepped once. Between iterations
may lie an evaluation: forward calls without gradients, or of a model in evaluation mode. A program
that never steps has an iteration every few backward passes.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from math import isfinite
from typing import Any

import torch

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child.models import Models
from epochzero.run.watch.child.origin import origin
from epochzero.run.watch.child.places import calls, locals_of, place, user_frame
from epochzero.run.watch.child.records import SCHEMA, Records
from epochzero.run.watch.child.scene import Scene
from epochzero.run.watch.child.schedule import Schedule
from epochzero.run.watch.child.statistics import (
    GRADIENT,
    Look,
    few,
    gradient,
    number_in,
    of_weights,
)

__all__ = ["Observer"]

WITHOUT_STEP = 64
"""So many backward passes in a row without a step are an iteration, where gradients are not cleared."""
EVERY_LOSSES = 50
MOST_EVALUATIONS = 2000
MOST_EPOCHS = 5000
MOST_FAILURES = 8
_WEIGHTS = 4096
Loss = float | torch.Tensor


def _out_of_reach() -> bool:
    """Whether tensors have no values that may be read now, or others count what is done with them."""
    return bool(
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or (
            torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
            and torch.cuda.is_current_stream_capturing()
        )
    )


def _safe(method: Callable[..., Any]) -> Callable[..., Any]:
    """What goes wrong here is told, and the job goes on; its other threads are not watched."""

    @functools.wraps(method)
    def guarded(self: Observer, *args: Any, **kwargs: Any) -> Any:
        if self.ended or self._busy or self.muted or _out_of_reach():
            return None
        if threading.get_ident() != self._thread:
            # Some train in a thread of their own.
            if method.__name__ != "backward_begins" or self._backwards or self._iteration:
                return None
            self._thread = threading.get_ident()
        self._busy = True
        # One of these may call another.
        gradients = self._gradients = torch.is_grad_enabled()
        try:
            with self._schedule, torch._C.DisableTorchFunction():
                torch._C._set_grad_enabled(False)
                return method(self, *args, **kwargs)
        except Exception as error:
            self._failed(method.__name__, error)
            return None
        finally:
            torch._C._set_grad_enabled(gradients)
            self._busy = False

    return guarded


class Observer:
    """Is told what the job does, and emits records.

    Attributes:
        deaf: whether calls of modules need not be told.
        ended: whether nothing is watched any more.
        steps: of all optimizers so far.
        foreign: kinds of modules that are watched in another way.
        muted: above 0 while another library's training is watched in its own way.
    """

    def __init__(
        self, records: Records, schedule: Schedule, chosen: frozenset[str] = frozenset()
    ) -> None:
        """Nothing was seen yet.

        Args:
            records: takes what is seen.
            schedule: says when to look closer.
            chosen: paths of layers and parameters whose values are told at each look.
        """
        self.ended = False
        self.deaf = False
        self.steps = self.muted = 0
        self.foreign: tuple[type, ...] = ()
        self._records = records
        self._schedule = schedule
        self._chosen = chosen
        self._thread = threading.get_ident()
        self._busy = self._gradients = False
        self._failures = 0
        self._models = Models(records)
        self._optimizers: list[weakref.ref[Any]] = []
        self._loaders: ByIdentity[int] = ByIdentity()
        self._loader: int | None = None
        self._loaders_made = self._epochs = 0
        self._told: set[tuple[str, Any]] = set()
        self._iteration = self._evaluations = 0
        self._stack: list[Any] = []
        self._in_backward = self._in_step = False
        self._stepped: set[int] = set()
        self._expected: set[int] | None = None
        self._backwards: dict[str, int] = {}
        self._backward_line = ""
        self._without_step = 0
        self._losses: list[tuple[int, str, Loss]] = []
        self._unscaled: ByIdentity[Loss] = ByIdentity()
        self._before: dict[str, Any] = {}
        self._moved: dict[str, dict[str, Any]] = {}
        self._weights: list[tuple[str, weakref.ref[Any], Any]] = []
        self._scene = Scene(evaluating=False, looking=True)
        # A worker of a loader is no part of the training.
        me = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forget(me))
        records.emit(
            "begun",
            schema=SCHEMA,
            time=time.time(),
            pid=os.getpid(),
            torch=torch.__version__,
            # To ask whether there is one would start its driver.
            gpu=torch.backends.cuda.is_built(),  # type: ignore[no-untyped-call]
        )

    @property
    def spent(self) -> float:
        """Seconds spent on watching so far."""
        return self._schedule.spent

    @property
    def looking(self) -> bool:
        """Whether what happens now is looked at closely."""
        return self._scene.looking and not self.ended

    @property
    def evaluating(self) -> bool:
        """Whether it is an evaluation."""
        return self._scene.evaluating and not self.ended

    # What is made ---------------------------------------------------------------------------------

    @_safe
    def module_made(self, module: Any) -> None:
        """Remembers the line that made a layer."""
        self._models.made(module)

    @_safe
    def made_at(self, module: Any, where: list[Any]) -> None:
        """A layer was made there, before watching began."""
        self._models.made_at(module, where)

    @_safe
    def value(self, name: str, tensor: Any) -> None:
        """The user wants to know how a tensor changes."""
        self._scene.value(name, tensor)

    @_safe
    def optimizer_made(self, optimizer: Any, where: list[Any] | None = None) -> None:
        """Tells of an optimizer; ``where`` it was made, if not here."""
        self._note_optimizer(optimizer, where)

    def _note_optimizer(self, optimizer: Any, where: list[Any] | None = None) -> None:
        self._optimizers.append(weakref.ref(optimizer))
        self._records.emit(
            "optimizer",
            number=len(self._optimizers) - 1,
            **{"class": type(optimizer).__name__},
            place=where or place(without=optimizer),
            groups=[_plain_settings(group) for group in optimizer.param_groups[:32]],
        )

    @_safe
    def scheduler_made(self, scheduler: Any) -> None:
        """Tells of a schedule of the learning rate."""
        self._records.emit(
            "scheduler",
            **{"class": type(scheduler).__name__},
            place=place(without=scheduler),
            settings=_plain_settings(vars(scheduler)),
        )

    @_safe
    def loader_made(self, loader: Any) -> None:
        """Tells of a data loader."""
        self._note_loader(loader)

    def _note_loader(self, loader: Any) -> int:
        number = self._loaders_made
        self._loaders_made += 1
        self._loaders.set(loader, number)
        self._records.emit(
            "loader",
            number=number,
            batch_size=loader.batch_size,
            sampler=type(getattr(loader, "sampler", None)).__name__,
            drop_last=bool(loader.drop_last),
            examples=_length(getattr(loader, "dataset", None)),
            place=place(without=loader),
        )
        return number

    @_safe
    def epoch_begins(self, loader: Any) -> None:
        """A loader is gone through anew."""
        number = self._loaders.get(loader)
        self._loader = number if number is not None else self._note_loader(loader)
        self._epochs += 1
        if self._epochs <= MOST_EPOCHS:
            batches = _length(loader)
            self._records.emit(
                "epoch", loader=self._loader, iteration=self._iteration, batches=batches
            )

    # Forward --------------------------------------------------------------------------------------

    @_safe
    def enters(self, module: Any, args: Any, kwargs: Any) -> str:
        """A module is called; says what `leaves` must know."""
        if self._in_backward or isinstance(module, self.foreign) or _is_loss(module):
            return ""
        if self._stack:
            self._stack.append(module)
            return f"inner {self._scene.source(args)}"
        # A loss or an augmentation may be a module as well.
        if not self._models.knows(module) and next(module.parameters(), None) is None:
            return ""
        self._be(module, evaluating=not (self._gradients and module.training))
        self._stack.append(module)
        scene = self._scene
        path = self._models.path(module, module) if scene.looking or not scene.calls else ""
        scene.model_called(path, module, args, kwargs)
        # What the compiler has made of a model calls no modules, or traces them.
        self.deaf = not scene.looking or type(module).__name__ == "OptimizedModule"
        return "outer"

    @_safe
    def leaves(self, module: Any, output: Any, entered: str) -> None:
        """The call of a module has ended; without an output when it failed."""
        if not entered:
            return
        outermost = self._stack[0]
        self._stack.pop()
        if entered == "outer":
            self._stack.clear()
            self.deaf = False
        if not self._scene.looking:
            return
        self._models.was_called(module)
        if output is not None:
            self._look_at_layer(module, self._models.path(module, outermost), output, entered)
        if entered == "outer":
            self._scene.model_left(output)

    def _look_at_layer(self, module: Any, path: str, output: Any, entered: str) -> None:
        if not any(module._modules.values()):
            source = entered.partition(" ")[2]
            self._scene.layer_called(path, type(module).__name__, output, source)
        if self._chosen:
            self._tell_chosen(path, output)

    def _tell_chosen(self, path: str, value: Any) -> None:
        name = path.partition("/")[2]
        if name in self._chosen:
            self._scene.value(name, value)

    @_safe
    def activation(self, name: str, args: Any, kwargs: Any, output: Any) -> None:
        """A function was called between the layers, not as a module of its own."""
        if not self._stack:
            self._scene.activated(name, args, kwargs, output, "")
        elif any(self._stack[-1]._modules.values()):
            within = self._models.path(self._stack[-1], self._stack[0])
            self._scene.activated(name, args, kwargs, output, within)

    @_safe
    def loss(self, name: str, value: Any, arguments: dict[str, Any]) -> None:
        """A function for losses was called."""
        output, target = arguments.get("input"), arguments.get("target")
        if not isinstance(output, torch.Tensor) or not isinstance(value, torch.Tensor):
            return
        where = place()
        if self._first("loss", _line(where)):
            weight = arguments.get("pos_weight", arguments.get("weight"))
            self._records.emit(
                "loss",
                function=name,
                place=where,
                reduction=arguments.get("reduction", "mean"),
                weight=weight.reshape(-1)[:64].tolist()
                if isinstance(weight, torch.Tensor)
                else None,
                evaluating=self._scene.evaluating,
            )
        self._scene.loss_called(name, value, output, target)

    @_safe
    def compared(self, left: Any, right: Any, result: Any) -> None:
        """Tensors were compared in an evaluation."""
        self._scene.compared(left, right, result)

    @_safe
    def scalar(self, value: Any) -> None:
        """The user has read a number from a tensor."""
        frame = user_frame(directly=True)
        if frame is not None and not self._in_backward:
            self._scene.read(frame.f_code.co_filename, frame.f_lineno, value)

    # Backward and step ----------------------------------------------------------------------------

    @_safe
    def backward_begins(self, tensors: Any) -> bool:
        """A backward pass begins; says whether `backward_ended` must be called."""
        several = isinstance(tensors, (tuple, list))
        tensor = next(iter(tensors), None) if several else tensors
        if self._in_backward or not isinstance(tensor, torch.Tensor) or tensor.is_meta:
            return False
        # What is called within it is called again, for its checkpoints.
        self._in_backward = self.deaf = True
        # What looked like an evaluation trains.
        self._scene.evaluating = False
        where = place()
        line = self._backward_line = _line(where)
        if self._first("backward", line):
            self._records.emit("backward", line=line, place=where, graph=_heads(tensor))
        if self._scene.looking:
            if not self._backwards:
                self._models.tell(self._iteration, self._living_optimizers())
                self._look_at_own_loss()
            self._look_before()
        self._backwards[line] = self._backwards.get(line, 0) + 1
        unscaled = self._unscaled.get(tensor)
        loss = _mean(tensor) if unscaled is None else unscaled
        # Reading it makes a GPU wait: only what is looked at is read at once.
        if self._scene.looking and isinstance(loss, torch.Tensor):
            loss = number_in(loss)
        self._losses.append((self._iteration, line, loss))
        if isinstance(loss, float) and not isfinite(loss) and self._first("nonfinite", ""):
            told = {"iteration": self._iteration, "loss": str(loss)}
            self._records.emit("nonfinite", **told, place=where, operators=origin(tensor))
        self._without_step += 1
        return True

    @_safe
    def backward_ended(self) -> None:
        """A backward pass has ended, or failed."""
        self._in_backward = self.deaf = False
        if self._without_step >= WITHOUT_STEP and not self._stepped and not self._in_step:
            self._end_iteration()

    def _look_before(self) -> None:
        """What is left of earlier gradients: of one parameter an optimizer, the least in the iteration."""
        names = {id(parameter): name for name, parameter in self._models.parameters()}
        for number, optimizer in enumerate(self._living_optimizers()):
            held = (p for g in optimizer.param_groups for p in g["params"] if p.requires_grad)
            parameter = next((p for p in held if id(p) in names), None)
            if parameter is None:
                continue
            gone = parameter.grad is None or parameter.grad.is_sparse
            left = 0.0 if gone else float(few(parameter.grad, _WEIGHTS).abs().max())
            known = self._before.get(str(number))
            if known is None or left < known["left"]:
                self._before[str(number)] = {"name": names[id(parameter)], "left": left}

    def _look_at_own_loss(self) -> None:
        """Output and target of a loss that no function of torch has computed."""
        frame = user_frame()
        if frame is not None and not self._scene.has_loss:
            self._scene.own_loss(locals_of(frame))

    @_safe
    def step_begins(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self._number(optimizer)
        if id(optimizer) in self._stepped:
            self._end_iteration()
        elif self._scene.evaluating:
            # Its closure is going to call the model, and train.
            self._end_evaluation()
            self._scene = Scene(evaluating=False, looking=self._schedule.due(self._iteration))
        self._in_step = True
        if not self._scene.looking:
            return
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        look = Look()
        for name, parameter in self._models.parameters():
            if id(parameter) not in mine or name in self._moved:
                continue
            told = self._moved[name] = {}
            # Without a backward pass before, what is there is of the step before.
            if parameter.grad is not None and self._backwards:
                told["gradient"] = {}
                look.add(told["gradient"], GRADIENT, gradient(parameter.grad))
            before = few(parameter, _WEIGHTS).clone()
            self._weights.append((name, weakref.ref(parameter), before))
        look.read()

    @_safe
    def step_ended(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        self.steps += 1
        self._in_step = False
        self._without_step = 0
        if self._scene.looking:
            where = place()
            step = (self._number(optimizer), _line(where), self._backward_line)
            if self._first("step", step):
                number, _, backward = step
                self._records.emit("step", optimizer=number, place=where, backward=backward)
        weights, self._weights = self._weights, []
        look = Look()
        for name, ref, before in weights:
            parameter = ref()
            if parameter is None:
                continue
            told = self._moved[name]
            if parameter.grad is not None and "gradient" not in told:
                told["gradient"] = {}
                look.add(told["gradient"], GRADIENT, gradient(parameter.grad))
            after = few(parameter, _WEIGHTS)
            for what, values in (("weight", after), ("update", after - before)):
                told[what] = {}
                look.add(told[what], GRADIENT, of_weights(values))
        look.read()
        self._has_stepped(optimizer)

    @_safe
    def step_skipped(self, optimizer: Any) -> None:
        """The scaler of gradients has found some that are not finite, and left out the step."""
        self._scene.note("skipped_steps", 1)
        self._number(optimizer)
        self._has_stepped(optimizer)

    def _has_stepped(self, optimizer: Any) -> None:
        self._stepped.add(id(optimizer))
        alive = {id(one) for one in self._living_optimizers()}
        if self._stepped >= (alive if self._expected is None else self._expected & alive):
            self._end_iteration()

    @_safe
    def scaled(self, result: Any, scaler: Any, outputs: Any, *_: Any) -> None:
        """A loss is scaled before its backward pass; what counts is the loss."""
        if isinstance(result, torch.Tensor) and isinstance(outputs, torch.Tensor):
            self._unscaled.set(result, _mean(outputs))

    @_safe
    def scale_updated(self, _: Any, scaler: Any, *__: Any, **___: Any) -> None:
        """The scaler of gradients has chosen its next scale."""
        if self._schedule.due(self._iteration):
            self._records.emit("scaler", iteration=self._iteration, scale=scaler.get_scale())

    @_safe
    def clipped(self, name: str, norm: Any, *args: Any, **kwargs: Any) -> None:
        """Gradients were clipped."""
        names = ("max_norm", "clip_value")
        limit = next((kwargs[one] for one in names if one in kwargs), None)
        if limit is None and len(args) > 1:
            limit = args[1]
        limit = None if limit is None else float(limit)
        where = place()
        if self._first("clip", _line(where)):
            self._records.emit("clip", function=name, limit=limit, place=where)
        if self._scene.looking:
            self._scene.clipped(_line(where), limit, norm)

    # Scenes ---------------------------------------------------------------------------------------

    def _be(self, module: Any, *, evaluating: bool) -> None:
        """Another scene begins where it is another one.

        A frozen model and a target network are called without gradients in the middle of an iteration.
        """
        scene = self._scene
        if not evaluating:
            if scene.evaluating:
                self._end_evaluation()
                self._scene = Scene(evaluating=False, looking=self._schedule.due(self._iteration))
            elif self._backwards and not self._stepped and not self._in_step and self._cleared():
                self._end_iteration()
            self._models.trains(module)
            return
        begun = bool(scene.calls or self._stepped or self._backwards)
        if begun and not any(parameter.requires_grad for parameter in module.parameters()):
            return
        lines = (self._loader, *calls())
        if scene.evaluating:
            if not scene.is_other(module, lines):
                return
            self._end_evaluation()
        elif self._stepped and not module.training:
            self._end_iteration()
        elif (
            self._stepped
            or self._backwards
            or (scene.calls and (module.training or not self._models.has_trained(module)))
        ):
            return
        split = scene.split if scene.evaluating else set()
        self._scene = Scene(evaluating=True, looking=self._schedule.due(self._evaluations))
        self._scene.begins_at(module, lines, self._loader, place(), split)

    def _cleared(self) -> bool:
        """Whether no gradients are left: without a step another iteration has begun."""
        optimizers = self._living_optimizers()
        for _, parameter in self._models.parameters():
            if parameter.grad is not None:
                return not optimizers and not bool(parameter.grad.any())
        return True

    def _end_evaluation(self) -> None:
        scene = self._scene
        passing = scene.calls == 1 and scene.training and not scene.measured
        if passing or not scene.tells or self._evaluations >= MOST_EVALUATIONS:
            return
        self._evaluations += 1
        self._tell_losses()
        self._records.emit("evaluation", iteration=self._iteration, **scene.ended())

    def _end_iteration(self) -> None:
        """Tells of the iteration, and begins the next."""
        scene = self._scene
        if scene.looking:
            for name, parameter in self._models.all_parameters() if self._chosen else ():
                self._tell_chosen(name, parameter)
            self._models.tell(self._iteration, self._living_optimizers())
            self._tell_losses()
            self._records.emit(
                "iteration",
                iteration=self._iteration,
                time=time.time(),
                rates=self._rates(),
                backwards=self._backwards,
                stepped=len(self._stepped),
                before=self._before,
                parameters=self._moved,
                **{**scene.ended(), "loader": self._loader},
            )
        elif len(self._losses) >= EVERY_LOSSES:
            self._tell_losses()
        self._iteration += 1
        self._expected = self._stepped or None
        self._stepped = set()
        self._backwards = {}
        self._without_step = 0
        self._before, self._moved, self._weights = {}, {}, []
        self._scene = Scene(evaluating=False, looking=self._schedule.due(self._iteration))

    def _tell_losses(self) -> None:
        """Tells the losses that are held."""
        losses, self._losses = self._losses, []
        look, read = Look(), []
        for _, _, loss in losses:
            of: dict[str, Any] = {}
            look.add(of, ("loss",), loss.reshape(1) if isinstance(loss, torch.Tensor) else [loss])
            read.append(of)
        look.read()
        if losses:
            numbered = zip(losses, read, strict=True)
            told = [[iteration, line, of["loss"]] for (iteration, line, _), of in numbered]
            self._records.emit("losses", losses=told)

    def _rates(self) -> list[float]:
        return [
            float(group.get("lr", 0.0))
            for optimizer in self._living_optimizers()[:8]
            for group in optimizer.param_groups[:8]
        ]

    def _living_optimizers(self) -> list[Any]:
        return [one for ref in self._optimizers if (one := ref()) is not None]

    def _number(self, optimizer: Any) -> int:
        """The number of an optimizer, also of one that was made before watching began."""
        for index, ref in enumerate(self._optimizers):
            if ref() is optimizer:
                return index
        self._note_optimizer(optimizer)
        return len(self._optimizers) - 1

    def _first(self, kind: str, what: Any) -> bool:
        """Whether this is told for the first time."""
        new = (kind, what) not in self._told
        self._told.add((kind, what))
        return new

    # The end --------------------------------------------------------------------------------------

    def end(self) -> None:
        """Tells what is held, and that nothing more comes."""
        if self.ended:
            return
        self._busy = True
        try:
            if self._scene.evaluating:
                self._end_evaluation()
            self._tell_losses()
            self._records.emit("ended", iterations=self._iteration, spent=self._schedule.spent)
        except Exception as error:
            self._failed("end", error)
        self._records.flush()
        self.ended = True
        self._busy = False

    def _failed(self, where: str, error: Exception) -> None:
        """One strange tensor is passed over; what goes on failing ends the watch."""
        self._failures += 1
        self.ended = self._failures >= MOST_FAILURES
        self._records.emit(
            "failed",
            where=where,
            error=f"{type(error).__name__}: {error}"[:500],
            ended=self.ended,
        )
        self._records.flush()


def _forget(ref: weakref.ref[Observer]) -> None:
    observer = ref()
    if observer is not None:
        observer.ended = True


def _line(where: list[Any] | None) -> str:
    return f"{where[0]}:{where[1]}" if where else ""


def _is_loss(module: Any) -> bool:
    return type(module).__module__ == "torch.nn.modules.loss"


def _plain_settings(values: dict[str, Any]) -> dict[str, Any]:
    """The settings that are numbers or words; a tensor of one number is read."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.item()
        several = isinstance(value, (tuple, list)) and len(value) <= 8
        items = value if several else [value]
        if not name.startswith("_") and all(
            isinstance(one, (bool, int, float, str)) for one in items
        ):
            found[name] = value
    return found


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None


def _mean(loss: torch.Tensor) -> Loss:
    """The number of a loss; of a GPU a tensor of its own, not to be read yet."""
    loss = loss.detach()
    if loss.device.type == "cpu" and loss.dim() == 0:
        return number_in(loss)
    mean = loss.float().mean()
    return number_in(mean) if loss.device.type == "cpu" else mean


def _heads(tensor: torch.Tensor) -> list[str]:
    """The last operators of a loss, the last first."""
    found: list[str] = []
    node = tensor.grad_fn
    while node is not None and len(found) < 12:
        found.append(type(node).__name__)
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return found
