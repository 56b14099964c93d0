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
from typing import Any

import torch

from epochzero.injected.identity import ByIdentity
from epochzero.run.watch.child import structure
from epochzero.run.watch.child.origin import origin
from epochzero.run.watch.child.places import place, user_frame
from epochzero.run.watch.child.records import SCHEMA, Records
from epochzero.run.watch.child.scene import Scene
from epochzero.run.watch.child.schedule import Schedule
from epochzero.run.watch.child.statistics import GRADIENT, Look, few, gradient

__all__ = ["Observer"]

MOST_WATCHED = 400
"""Parameters of one look."""
WITHOUT_STEP = 8
"""So many backward passes in a row without a step are iterations of their own."""
EVERY_LOSSES = 50
MOST_EVALUATIONS = 2000
_WEIGHTS = 4096
_WRAPPERS = ("DistributedDataParallel", "DataParallel", "OptimizedModule")


def _safe(method: Callable[..., Any]) -> Callable[..., Any]:
    """What goes wrong here is told, and the job goes on unwatched; its other threads are not watched."""

    @functools.wraps(method)
    def guarded(self: Observer, *args: Any, **kwargs: Any) -> Any:
        if self.ended or self._busy or threading.get_ident() != self._thread:
            return None
        self._busy = True
        # One of these may call another.
        gradients = self._gradients = torch.is_grad_enabled()
        try:
            with self._schedule:
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
        looking: whether what happens now is looked at closely.
        evaluating: whether it is an evaluation.
        deaf: whether calls of modules need not be told.
        ended: whether nothing is watched any more.
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
        self._records = records
        self._schedule = schedule
        self._chosen = chosen
        self._thread = threading.get_ident()
        self._busy = self._gradients = False
        self._made: ByIdentity[Any] = ByIdentity()
        self._roots: ByIdentity[Any] = ByIdentity()
        self._paths: ByIdentity[dict[int, str]] = ByIdentity()
        self._models: list[weakref.ref[Any]] = []
        self._optimizers: list[weakref.ref[Any]] = []
        self._called: set[int] = set()
        self._lines: set[tuple[str, Any]] = set()
        self._iteration = self._evaluations = 0
        self._stack: list[Any] = []
        self._stepped: set[int] = set()
        self._backwards: dict[str, int] = {}
        self._without_step = 0
        self._losses: list[tuple[int, str, torch.Tensor]] = []
        self._nonfinite = False
        self._before: dict[str, Any] = {}
        self._moved: dict[str, dict[str, Any]] = {}
        self._weights: list[tuple[str, torch.Tensor, Any]] = []
        self._scene = Scene(evaluating=False, looking=True)
        records.emit(
            "begun",
            schema=SCHEMA,
            time=time.time(),
            pid=os.getpid(),
            torch=torch.__version__,
            gpu=torch.cuda.is_available(),
        )

    @property
    def looking(self) -> bool:
        return self._scene.looking and not self.ended

    @property
    def evaluating(self) -> bool:
        return self._scene.evaluating and not self.ended

    # What is made ---------------------------------------------------------------------------------

    @_safe
    def module_made(self, module: Any) -> None:
        """Remembers the line that made a layer."""
        found = place(without=module)
        if found is not None:
            self._made.set(module, found)

    @_safe
    def made_at(self, module: Any, where: list[Any]) -> None:
        """A layer was made there, before watching began."""
        self._made.set(module, where)

    @_safe
    def value(self, name: str, tensor: Any) -> None:
        """The user wants to know how a tensor changes."""
        self._scene.value(name, tensor)

    @_safe
    def optimizer_made(self, optimizer: Any, where: list[Any] | None = None) -> None:
        """Tells of an optimizer; ``where`` it was made, if not here."""
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
        self._records.emit(
            "loader",
            batch_size=loader.batch_size,
            sampler=type(getattr(loader, "sampler", None)).__name__,
            drop_last=bool(loader.drop_last),
            examples=_length(getattr(loader, "dataset", None)),
            place=place(without=loader),
        )

    # Forward --------------------------------------------------------------------------------------

    @_safe
    def enters(self, module: Any, args: Any, kwargs: Any) -> str:
        """A module is called; says what `leaves` must know."""
        if type(module).__module__ == "torch.nn.modules.loss":
            return ""
        if self._stack:
            self._stack.append(module)
            return "inner"
        self._be(evaluating=not (self._gradients and module.training))
        self._stack.append(module)
        self._scene.model_called(self._path(module), module, args, kwargs)
        # What the compiler has made of a model calls no modules, or traces them.
        self.deaf = not self._scene.looking or type(module).__name__ == "OptimizedModule"
        return "outer"

    @_safe
    def leaves(self, module: Any, output: Any, entered: str) -> None:
        """The call of a module has ended; without an output when it failed."""
        if not entered:
            return
        self._stack.pop()
        if entered == "outer":
            self._stack.clear()
            self.deaf = False
        if self._scene.looking:
            self._called.add(id(module))
            if output is not None and not any(module._modules.values()):
                self._scene.layer_called(self._path(module), type(module).__name__, output)
            if output is not None and self._chosen:
                self._tell_chosen(self._path(module), output)
        if entered == "outer":
            self._scene.let_go()

    def _tell_chosen(self, path: str, value: Any) -> None:
        name = path.partition("/")[2]
        if name in self._chosen:
            self._scene.value(name, value)

    @_safe
    def activation(self, name: str, source: Any, output: Any) -> None:
        """An activation was called as a function, not as a module of its own."""
        if self._stack and any(self._stack[-1]._modules.values()):
            self._scene.activated(name, source, output, self._path(self._stack[-1]))

    @_safe
    def loss(self, name: str, value: Any, arguments: dict[str, Any]) -> None:
        """A function for losses was called."""
        output, target = arguments.get("input"), arguments.get("target")
        if not isinstance(output, torch.Tensor) or not isinstance(value, torch.Tensor):
            return
        where = place()
        if ("loss", _line(where)) not in self._lines:
            self._lines.add(("loss", _line(where)))
            weight = arguments.get("weight")
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

    # Backward and step ----------------------------------------------------------------------------

    @_safe
    def backward(self, tensors: Any) -> None:
        """A backward pass begins."""
        tensor = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
        if not isinstance(tensor, torch.Tensor):
            return
        # What looked like an evaluation trains.
        self._scene.evaluating = False
        where = place()
        line = _line(where)
        if ("backward", line) not in self._lines:
            self._lines.add(("backward", line))
            self._records.emit("backward", line=line, place=where, graph=_heads(tensor))
        if self._scene.looking and not self._backwards:
            self._look_before()
        self._backwards[line] = self._backwards.get(line, 0) + 1
        loss = tensor.detach().float().mean().reshape(1)
        self._losses.append((self._iteration, line, loss))
        # Reading it makes a GPU wait: only what is looked at is read at once.
        if self._scene.looking or loss.device.type == "cpu":
            self._look_for_nonfinite(tensor, loss, where)
        self._without_step += 1
        if self._without_step >= WITHOUT_STEP and not self._stepped:
            self._end_iteration()

    def _look_for_nonfinite(self, tensor: torch.Tensor, loss: torch.Tensor, where: Any) -> None:
        if self._nonfinite or bool(torch.isfinite(loss)):
            return
        self._nonfinite = True
        told = {"iteration": self._iteration, "loss": str(loss.item())}
        self._records.emit("nonfinite", **told, place=where, operators=origin(tensor))

    def _look_before(self) -> None:
        """Gradients that are left from the iteration before."""
        look = Look()
        for name, parameter in self._trained():
            if parameter.grad is not None:
                look.add(self._before, GRADIENT, gradient(parameter.grad))
                self._before["name"] = name
                break
        look.read()

    @_safe
    def step_begins(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        known = any(known() is optimizer for known in self._optimizers)
        if not known:
            self._busy = False
            self.optimizer_made(optimizer)
            self._busy = True
        if id(optimizer) in self._stepped:
            self._end_iteration()
        if not self._scene.looking:
            return
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        look = Look()
        for name, parameter in self._trained():
            if id(parameter) not in mine or name in self._moved:
                continue
            told = self._moved[name] = {}
            if parameter.grad is not None:
                told["gradient"] = {}
                look.add(told["gradient"], GRADIENT, gradient(parameter.grad))
            self._weights.append((name, parameter, few(parameter, _WEIGHTS).clone()))
        look.read()

    @_safe
    def step_ended(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        self._stepped.add(id(optimizer))
        self._without_step = 0
        weights, self._weights = self._weights, []
        look = Look()
        for name, parameter, before in weights:
            after = few(parameter, _WEIGHTS)
            for what, values in (("weight", after), ("update", after - before)):
                self._moved[name][what] = {}
                look.add(self._moved[name][what], GRADIENT, gradient(values))
        look.read()
        alive = [ref() for ref in self._optimizers if ref() is not None]
        if len(alive) <= 1 or all(id(one) in self._stepped for one in alive):
            self._end_iteration()

    # Scenes ---------------------------------------------------------------------------------------

    def _be(self, *, evaluating: bool) -> None:
        """Another scene begins where it is another one."""
        if evaluating == self._scene.evaluating:
            return
        if self._scene.evaluating:
            self._end_evaluation()
            self._scene = Scene(evaluating=False, looking=self._schedule.due(self._iteration))
        elif not self._backwards:
            self._scene = Scene(evaluating=True, looking=self._schedule.due(self._evaluations))

    def _end_evaluation(self) -> None:
        self._evaluations += 1
        if self._evaluations <= MOST_EVALUATIONS and self._scene.tells:
            self._flush()
            self._records.emit("evaluation", iteration=self._iteration, **self._scene.ended())

    def _end_iteration(self) -> None:
        """Tells of the iteration, and begins the next."""
        scene = self._scene
        if scene.looking:
            for name, parameter in self._trained() if self._chosen else ():
                self._tell_chosen(name, parameter)
            self._tell_models()
            self._flush()
            self._records.emit(
                "iteration",
                iteration=self._iteration,
                time=time.time(),
                rates=self._rates(),
                backwards=self._backwards,
                stepped=len(self._stepped),
                before=self._before,
                parameters=self._moved,
                **scene.ended(),
            )
        elif len(self._losses) >= EVERY_LOSSES:
            self._flush()
        self._iteration += 1
        self._stepped = set()
        self._backwards = {}
        self._without_step = 0
        self._before, self._moved, self._weights = {}, {}, []
        self._scene = Scene(evaluating=False, looking=self._schedule.due(self._iteration))

    def _flush(self) -> None:
        """Tells the losses that are held."""
        losses, self._losses = self._losses, []
        by_device: dict[Any, list[tuple[int, str, torch.Tensor]]] = {}
        for loss in losses:
            by_device.setdefault(loss[2].device, []).append(loss)
        for held in by_device.values():
            numbers = torch.cat([loss for _, _, loss in held]).tolist()
            told = [[n, line, v] for (n, line, _), v in zip(held, numbers, strict=True)]
            self._records.emit("losses", losses=told)

    def _rates(self) -> list[float]:
        found = []
        for ref in self._optimizers[:8]:
            optimizer = ref()
            if optimizer is not None:
                found += [float(group.get("lr", 0.0)) for group in optimizer.param_groups[:8]]
        return found

    # Models ---------------------------------------------------------------------------------------

    def _path(self, module: Any) -> str:
        """The number of its model and its path within that: ``0/encoder.2``."""
        root = self._root(module)
        number = next((n for n, ref in enumerate(self._models) if ref() is root), 0)
        names = self._paths.get(root)
        if names is None or id(module) not in names:
            names = {id(part): name for name, part in structure.inner(root).named_modules()}
            names.setdefault(id(root), "")
            self._paths.set(root, names)
        return f"{number}/{names.get(id(module), '')}"

    def _root(self, module: Any) -> Any:
        """The model that a module belongs to: what is called outermost, or whose method calls it."""
        outermost = self._stack[0] if self._stack else module
        known = self._roots.get(outermost)
        if known is not None and known() is not None:
            return known()
        frame = user_frame()
        names = frame.f_locals if frame is not None else {}
        owner = names.get("self")
        root, name = outermost, ""
        if isinstance(owner, torch.nn.Module) and any(p is outermost for p in owner.modules()):
            root = owner
        for label, value in names.items():
            if value is root and label != "self":
                name = label
        self._roots.set(outermost, weakref.ref(root))
        if not any(ref() is root for ref in self._models):
            self._models.append(weakref.ref(root))
            self._records.emit("root", number=len(self._models) - 1, name=name)
        return root

    def _trained(self) -> list[tuple[str, Any]]:
        """Names and parameters of all models that live."""
        found = []
        for number, ref in enumerate(self._models):
            root = ref()
            if root is None:
                continue
            for name, parameter in structure.inner(root).named_parameters():
                found.append((f"{number}/{name}", parameter))
        return found[:MOST_WATCHED]

    def _tell_models(self) -> None:
        """Each model once, and again when what of it is trained or called has changed."""
        held = {
            id(p)
            for ref in self._optimizers
            if (optimizer := ref()) is not None
            for group in optimizer.param_groups
            for p in group["params"]
        }
        for number, ref in enumerate(self._models):
            root = ref()
            if root is None:
                continue
            model = structure.inner(root)
            state = (
                number,
                tuple(p.requires_grad for p in model.parameters()),
                sum(id(p) in held for p in model.parameters()),
                sum(id(m) in self._called for m in model.modules()),
            )
            if ("model", state) in self._lines:
                continue
            self._lines.add(("model", state))
            look = Look()
            told = structure.described(look, model, self._made, held or None, self._called)
            look.read()
            self._records.emit("model", number=number, iteration=self._iteration, **told)

    # The end --------------------------------------------------------------------------------------

    def end(self) -> None:
        """Tells what is held, and that nothing more comes."""
        if self.ended:
            return
        self._busy = True
        try:
            if self._scene.evaluating:
                self._end_evaluation()
            self._flush()
            self._records.emit("ended", iterations=self._iteration, spent=self._schedule.spent)
        except Exception as error:
            self._failed("end", error)
        self._records.flush()
        self.ended = True
        self._busy = False

    def _failed(self, where: str, error: Exception) -> None:
        self.ended = True
        self._records.emit("failed", where=where, error=f"{type(error).__name__}: {error}"[:500])
        self._records.flush()


def _line(where: list[Any] | None) -> str:
    return f"{where[0]}:{where[1]}" if where else ""


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


def _heads(tensor: torch.Tensor) -> list[str]:
    """The last operators of a loss, the last first."""
    found: list[str] = []
    node = tensor.grad_fn
    while node is not None and len(found) < 12:
        found.append(type(node).__name__)
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return found
