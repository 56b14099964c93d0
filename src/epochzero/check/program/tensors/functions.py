"""Output shapes of functions of `torch` and `torch.nn.functional` and of methods of tensors.

Source: PyTorch documentation, torch, torch.Tensor and torch.nn.functional; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochzero.check.program.heap import Box, V
from epochzero.check.program.tensors.layers import LayerSignature, adaptive, flattened, pool
from epochzero.check.program.tensors.parameters import Given
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Tensor,
    as_value,
    differ,
    product,
    quotient,
    shown,
)


@dataclass(frozen=True, slots=True)
class TensorFunction:
    """A function, or a method whose tensor is the first argument.

    Attributes:
        names: its parameters, in order.
        gives: returns its result.
    """

    names: tuple[str, ...]
    gives: Callable[[Given], V]


def _reshaped(given: Given) -> V:
    x = given.tensor("input")
    sizes = given.rest(1, "shape")
    whole, rest = product(x.shape), product(size for size in sizes if size != -1)
    message = f"shape '{shown(sizes)}' is invalid for input of size {_text(whole)}"
    misfit = Misfit(
        message,
        f"A tensor of {shown(x.shape)} is given the shape {shown(sizes)}.",
        "Make the product of the sizes the number of values of a tensor.",
    )
    missing = [at for at, size in enumerate(sizes) if size == -1]
    if len(missing) > 1:
        raise NotKnown
    if not missing:
        if differ(whole, rest):
            raise misfit
        return Tensor(shape=tuple(sizes))
    inferred = quotient(whole, rest)
    if inferred is None:
        raise misfit
    sizes[missing[0]] = inferred
    return Tensor(shape=tuple(sizes))


def _text(size: Dim) -> str:
    return str(size) if isinstance(size, int) else "?"


def _flatten(given: Given) -> V:
    start, end = given.number("start_dim", 0), given.number("end_dim", -1)
    return Tensor(shape=flattened(given.tensor("input").shape, start, end))


def _size(given: Given) -> V:
    shape = given.tensor("input").shape
    if given.has("dim"):
        axis = given.number("dim")
        if not -len(shape) <= axis < len(shape):
            raise NotKnown
        return as_value(shape[axis])
    return Box.of("tuple", map(as_value, shape))


def _kept(given: Given) -> V:
    return given.tensor("input", whole=False)


def _as_layer(names: tuple[str, ...], layer: LayerSignature) -> TensorFunction:
    return TensorFunction(
        ("input", *names), lambda given: layer.gives(given, given.tensor("input"))
    )


_KEEPING = tuple(
    """
    relu gelu elu selu leaky_relu silu mish tanh sigmoid softplus softmax log_softmax dropout
    dropout1d dropout2d dropout3d relu_ to cuda cpu float long half double bfloat16 detach clone
    contiguous exp log sqrt abs square clamp roll as_tensor from_numpy zeros_like ones_like
    """.split()
)


def _made(given: Given) -> V:
    return Tensor(shape=tuple(given.rest(0, "size")))


FUNCTIONS: Mapping[str, TensorFunction] = {
    **dict.fromkeys(_KEEPING, TensorFunction(("input",), _kept)),
    **dict.fromkeys(("view", "reshape"), TensorFunction(("input", "shape"), _reshaped)),
    "flatten": TensorFunction(("input", "start_dim", "end_dim"), _flatten),
    "size": TensorFunction(("input", "dim"), _size),
    **{
        f"max_pool{axes}d": _as_layer(
            ("kernel_size", "stride", "padding", "dilation", "ceil_mode"), pool(axes, average=False)
        )
        for axes in (1, 2, 3)
    },
    **{
        f"adaptive_avg_pool{axes}d": _as_layer(("output_size",), adaptive(axes))
        for axes in (1, 2, 3)
    },
}
"""Functions and methods by the last part of their name; `LAYERS` explains the selection."""
SOURCES: Mapping[str, TensorFunction] = {
    f"torch.{name}": TensorFunction(("size",), _made) for name in ("rand", "randn", "zeros", "ones")
}
"""Functions that create tensors, by their full name."""
