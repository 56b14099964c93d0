"""Puts the observer between the job and torch, and takes it away again.

What is put in place costs next to nothing while nobody looks. Code that the compiler traces or that is
scripted never gets to see it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from epochzero.run.watch.child.observer import Observer

__all__ = ["Hooks"]

LOSSES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "cross_entropy", "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss",
    "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
)  # fmt: skip
"""Functions of `torch.nn.functional` that modules for losses call as well."""
ACTIVATIONS = (
    "celu", "elu", "gelu", "glu", "hardtanh", "leaky_relu", "log_softmax", "mish", "relu",
    "relu6", "selu", "sigmoid", "silu", "softmax", "softplus", "tanh",
)  # fmt: skip
OF_TENSORS = ("log_softmax", "relu", "sigmoid", "softmax", "tanh")
"""Those that torch and its tensors have too."""

_INHERITED = object()
_is_compiling = torch.compiler.is_compiling


class Hooks:
    """All that is put in place, as one."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._before: list[tuple[Any, str, Any]] = []
        self._handles: list[Any] = []

    def install(self) -> None:
        """Puts everything in place."""
        observer = self._observer
        module = torch.nn.Module
        self._put(module, "__call__", _calling(module.__call__, observer))
        self._put(module, "__init__", _making(module.__init__, observer))
        self._put(torch.autograd, "backward", _going_back(torch.autograd.backward, observer))
        for name in LOSSES:
            self._put(functional, name, _losing(getattr(functional, name), name, observer))
        activations: tuple[tuple[Any, tuple[str, ...]], ...] = (
            (functional, ACTIVATIONS),
            (torch, OF_TENSORS),
            (torch.Tensor, OF_TENSORS),
        )
        for owner, names in activations:
            for name in names:
                self._put(owner, name, _activating(getattr(owner, name), name, observer))
        for name in ("__eq__", "eq"):
            self._put(torch.Tensor, name, _comparing(getattr(torch.Tensor, name), observer))
        made: tuple[tuple[Any, Callable[[Any], None]], ...] = (
            (torch.optim.Optimizer, observer.optimizer_made),
            (torch.optim.lr_scheduler.LRScheduler, observer.scheduler_made),
            (torch.utils.data.DataLoader, observer.loader_made),
        )
        for kind, tell in made:
            self._put(kind, "__init__", _constructing(kind.__init__, tell))
        for name in ("script", "trace"):
            self._put(torch.jit, name, self._without(getattr(torch.jit, name)))
        self._handles = [
            register_optimizer_step_pre_hook(lambda optimizer, *_: observer.step_begins(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: observer.step_ended(optimizer)),
        ]

    def remove(self) -> None:
        """Puts back what was there before."""
        for owner, name, before in reversed(self._before):
            if before is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._before.clear()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _put(self, owner: Any, name: str, replacement: Any) -> None:
        self._before.append((owner, name, owner.__dict__.get(name, _INHERITED)))
        setattr(owner, name, replacement)

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


def _calling(call: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    @functools.wraps(call)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if observer.deaf or _is_compiling():
            return call(self, *args, **kwargs)
        entered = observer.enters(self, args, kwargs)
        try:
            output = call(self, *args, **kwargs)
        except BaseException:
            observer.leaves(self, None, entered)
            raise
        observer.leaves(self, output, entered)
        return output

    return called


def _making(init: Callable[..., None], observer: Observer) -> Callable[..., None]:
    @functools.wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        observer.module_made(self)

    return made


def _constructing(init: Callable[..., None], tell: Callable[[Any], None]) -> Callable[..., None]:
    @functools.wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        tell(self)

    return made


def _going_back(backward: Callable[..., None], observer: Observer) -> Callable[..., None]:
    @functools.wraps(backward)
    def went(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if not _is_compiling():
            observer.backward(tensors)
        return backward(tensors, *args, **kwargs)

    return went


def _losing(function: Callable[..., Any], name: str, observer: Observer) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        if not _is_compiling():
            given = dict(zip(("input", "target"), args, strict=False)) | kwargs
            observer.loss(name, value, given)
        return value

    return called


def _activating(function: Callable[..., Any], name: str, observer: Observer) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        output = function(*args, **kwargs)
        if observer.looking and not _is_compiling():
            observer.activation(name, args[0] if args else None, output)
        return output

    return called


def _comparing(function: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    @functools.wraps(function)
    def compared(self: Any, other: Any) -> Any:
        result = function(self, other)
        if observer.evaluating and not _is_compiling():
            observer.compared(self, other, result)
        return result

    return compared
