"""Puts the observer between the job and torch, and takes it away again.

What is put in place costs next to nothing where nothing is inspected. Code that the compiler traces or that is
scripted never gets to see it: each wrapper asks first whether it is being traced, for whatever else it
read, the compiler would watch over.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from epochzero.injected.patches import Patches
from epochzero.run.watch.child.backward import Backward
from epochzero.run.watch.child.forward import Forward
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.standin import FunctionWrapper, give_code, shorten_traceback
from epochzero.run.watch.child.states import States

LOSSES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "cross_entropy", "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss",
    "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
)  # fmt: skip
"""Functions of `torch.nn.functional` that modules for losses call as well."""
ACTIVATIONS = (
    "celu", "dropout", "elu", "gelu", "glu", "hardtanh", "leaky_relu", "log_softmax", "mish", "relu",
    "relu6", "selu", "sigmoid", "silu", "softmax", "softplus", "tanh",
)  # fmt: skip
ATTENTION = "scaled_dot_product_attention"
OF_TENSORS = ("log_softmax", "relu", "sigmoid", "softmax", "tanh")
"""Those that torch and its tensors have too."""

_OF_CTC = {"log_probs": "input", "targets": "target"}
_ARGUMENTS = {"ctc_loss": ("input", "target", "input_lengths", "target_lengths", "blank")}
"""Names of the arguments of a loss, where others than the first two matter."""

_is_compiling = torch.compiler.is_compiling


class Hooks:
    """All that is put in place, as one."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._patches = Patches()

    def install(self) -> None:
        """Puts everything in place."""
        self._model_hooks()
        self._function_hooks()
        self._training_hooks()

    def _model_hooks(self) -> None:
        components, module = self._observer.components, torch.nn.Module
        self._put(module, "__call__", _calling(module.__call__, self._observer.forward))
        made: tuple[tuple[Any, Callable[[Any], None]], ...] = (
            (module, components.module_made),
            (torch.optim.Optimizer, components.optimizer_made),
            (torch.optim.lr_scheduler.LRScheduler, components.scheduler_made),
            (torch.utils.data.DataLoader, components.loader_made),
        )
        for kind, notify in made:
            self._put(kind, "__init__", _after(kind.__init__, _of_made, notify))
        for name in ("script", "trace"):
            self._put(torch.jit, name, self._without(getattr(torch.jit, name)))

    def _function_hooks(self) -> None:
        forward = self._observer.forward
        for name in LOSSES:
            self._wrap(functional, name, functools.partial(_losing, name=name, forward=forward))
        places: tuple[tuple[Any, tuple[str, ...]], ...] = (
            (functional, (*ACTIVATIONS, ATTENTION)),
            (torch, OF_TENSORS),
            (torch.Tensor, OF_TENSORS),
        )
        for owner, names in places:
            for name in names:
                wrap = functools.partial(_activating, name=name, forward=forward)
                self._wrap(owner, name, wrap)
        for name in ("__eq__", "eq"):
            self._wrap(torch.Tensor, name, functools.partial(_comparing, forward=forward))
        for name in ("item", "__float__"):
            self._wrap(torch.Tensor, name, functools.partial(_reading, forward=forward))

    def _training_hooks(self) -> None:
        backward = self._observer.backward
        for name in ("backward", "grad"):
            function = getattr(torch.autograd, name)
            self._put(torch.autograd, name, _going_back(function, name, backward))
        scaler, utilities = torch.amp.GradScaler, torch.nn.utils
        self._put(scaler, "scale", _after(scaler.scale, backward.scaled))
        self._put(scaler, "step", _stepping(scaler.step, backward))
        self._put(scaler, "unscale_", _after(scaler.unscale_, backward.unscaled))
        clearing: tuple[Any, ...] = (torch.optim.Optimizer, torch.nn.Module)
        for kind in clearing:
            self._put(kind, "zero_grad", _after(kind.zero_grad, backward.cleared))
        schedules = [k for k in vars(torch.optim.lr_scheduler).values() if isinstance(k, type)]
        for kind in schedules:
            if "step" in vars(kind):
                self._put(kind, "step", _scheduling(vars(kind)["step"], backward))
        states = self._observer.states
        for kind in (*clearing, *schedules):
            for name, around in (("state_dict", _taking), ("load_state_dict", _loading)):
                if name in vars(kind):
                    self._put(kind, name, around(vars(kind)[name], states))
        self._put(scaler, "update", _after(scaler.update, backward.scale_updated))
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            clip = _after(getattr(utilities, name), backward.clipped, name)
            for owner in (utilities, utilities.clip_grad):
                self._put(owner, name, clip)
        loader = torch.utils.data.DataLoader
        self._put(
            loader, "__iter__", _before(loader.__iter__, self._observer.components.epoch_begins)
        )
        for handle in (
            register_optimizer_step_pre_hook(lambda optimizer, *_: backward.step_begins(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: _stepped(backward, optimizer)),
        ):
            self._patches.undone_by(handle.remove)

    def remove(self) -> None:
        """Puts back what was there before."""
        self._patches.remove()

    def _put(self, owner: Any, name: str, replacement: Any) -> None:
        self._patches.put(owner, name, replacement)

    def _wrap(self, owner: Any, name: str, wrap: Callable[..., Any]) -> None:
        """Puts something around a function that others may hold, compare or pickle."""
        function = getattr(owner, name)
        if isinstance(function, types.FunctionType) and function.__closure__ is None:
            self._patches.undone_by(give_code(function, wrap))
        else:
            self._put(owner, name, FunctionWrapper(function, owner.__name__, name, wrap))

    def _without(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The compiler of TorchScript knows its own functions only."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.remove()
            try:
                return function(*args, **kwargs)
            finally:
                self.install()

        return called


def _calling(call: Callable[..., Any], forward: Forward) -> Callable[..., Any]:
    safety = forward.safety

    @functools.wraps(call)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or (safety.deaf and not (safety.resting and forward.wakes(self))):
            return call(self, *args, **kwargs)
        entered = forward.enters(self, args, kwargs)
        try:
            output = call(self, *args, **kwargs)
        except BaseException as error:
            forward.leaves(self, None, entered)
            if entered != "inner":
                shorten_traceback(error)
            raise
        forward.leaves(self, output, entered)
        return output

    return called


def _after(function: Callable[..., Any], notify: Callable[..., Any], *given: Any) -> Any:
    """Passes on what a function returned, and its arguments."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if not _is_compiling():
            notify(*given, result, *args, **kwargs)
        return result

    return called


def _of_made(notify: Callable[[Any], None], _: None, made: Any, *args: Any, **kwargs: Any) -> None:
    notify(made)


def _before(function: Callable[..., Any], notify: Callable[[Any], None]) -> Any:
    @functools.wraps(function)
    def called(self: Any) -> Any:
        notify(self)
        return function(self)

    return called


def _stepping(step: Callable[..., Any], backward: Backward) -> Callable[..., Any]:
    @functools.wraps(step)
    def stepped(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = backward.steps
        with backward.scaler_steps(self.is_enabled()):
            result = step(self, optimizer, *args, **kwargs)
        if backward.steps == before:
            backward.step_skipped(optimizer)
        return result

    return stepped


def _stepped(backward: Backward, optimizer: Any) -> None:
    safety = backward.safety
    if not safety.resting:
        backward.step_ended(optimizer)
    elif safety.resting > 1:
        safety.resting -= 1


def _scheduling(step: Callable[..., Any], backward: Backward) -> Callable[..., Any]:
    """A schedule may consist of others, which it steps: only the outermost step counts."""

    @functools.wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if backward.is_scheduling:
            return step(self, *args, **kwargs)
        backward.is_scheduling = True
        try:
            backward.scheduled(self)
            return step(self, *args, **kwargs)
        finally:
            backward.is_scheduling = False

    return stepped


def _taking(take: Callable[..., Any], states: States) -> Callable[..., Any]:
    """Report calls of `state_dict`, except those with which a model collects the states of its parts in a dictionary."""

    @functools.wraps(take)
    def taken(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and "destination" not in kwargs and not _is_compiling():
            states.taken(self)
        return take(self, *args, **kwargs)

    return taken


def _loading(load: Callable[..., Any], states: States) -> Callable[..., Any]:
    @functools.wraps(load)
    def loaded(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        before = states.loads(self, state_dict)
        result = load(self, state_dict, *args, **kwargs)
        states.loaded(self, before, state_dict)
        return result

    return loaded


def _going_back(function: Callable[..., Any], name: str, backward: Backward) -> Callable[..., Any]:
    @functools.wraps(function)
    def went(*args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or (name == "grad" and not _is_for_step(backward, *args, **kwargs)):
            return function(*args, **kwargs)
        loss = args[0] if args else next(iter(kwargs.values()), None)
        must_end = backward.backward_begins(loss, accumulates=name != "grad")
        try:
            return function(*args, **kwargs)
        finally:
            if must_end:
                backward.backward_ended()

    return went


def _is_for_step(
    backward: Backward,
    outputs: Any = None,
    inputs: Any = None,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *_: Any,
    **__: Any,
) -> bool:
    """Whether a call of ``torch.autograd.grad`` may be the backward pass of a step: with respect to parameters alone.

    A product with a vector, the gradient of an input, and what is to be derived again are parts of a loss.
    """
    if grad_outputs is not None or create_graph:
        return False
    wanted = (inputs,) if isinstance(inputs, torch.Tensor) else inputs
    if not isinstance(wanted, (tuple, list)):
        return True  # Such as `model.parameters()`, which can be read only once.
    return backward.are_parameters(wanted)


def _losing(function: Callable[..., Any], name: str, forward: Forward) -> Callable[..., Any]:
    safety = forward.safety

    def called(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        if not _is_compiling() and not safety.idle:
            given = (
                dict(zip(_ARGUMENTS.get(name, ("input", "target")), args, strict=False)) | kwargs
            )
            if name == "ctc_loss":
                given |= {_OF_CTC[text]: given[text] for text in _OF_CTC if text in given}
            forward.loss(name, value, given)
        return value

    return called


def _activating(function: Callable[..., Any], name: str, forward: Forward) -> Callable[..., Any]:
    safety = forward.safety

    def called(*args: Any, **kwargs: Any) -> Any:
        output = function(*args, **kwargs)
        if not _is_compiling() and not safety.idle and forward.looking:
            forward.activation(name, args, kwargs, output)
        return output

    return called


def _comparing(function: Callable[..., Any], forward: Forward) -> Callable[..., Any]:
    safety = forward.safety

    def compared(self: Any, other: Any) -> Any:
        result = function(self, other)
        if not _is_compiling() and not safety.idle and forward.evaluating:
            forward.compared(self, other, result)
        return result

    return compared


def _reading(function: Callable[..., Any], forward: Forward) -> Callable[..., Any]:
    safety = forward.safety

    def read(self: Any) -> Any:
        value = function(self)
        if not _is_compiling() and not safety.idle:
            forward.scalar(value)
        return value

    return read
