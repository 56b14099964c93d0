"""Output shapes of functions of `torch` and `torch.nn.functional` and of methods of tensors.

Source: PyTorch documentation, torch, torch.Tensor and torch.nn.functional; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochzero.check.program.heap import Box, V, held
from epochzero.check.program.tensors.layers import adaptive, flattened, pool, resized
from epochzero.check.program.tensors.parameters import Given
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Shape,
    Tensor,
    as_value,
    broadcast,
    differ,
    fresh,
    product,
    quotient,
    shown,
)
from epochzero.check.program.values import Constant


@dataclass(frozen=True, slots=True)
class TensorFunction:
    """A function, or a method whose tensor is the first argument.

    Attributes:
        names: its parameters, in order.
        gives: returns its result.
    """

    names: tuple[str, ...]
    gives: Callable[[Given], V]


def _axis(axis: int, rank: int) -> int:
    """The index of an axis, counted from the first.

    Raises:
        NotKnown: the axis does not exist.
    """
    if not -rank <= axis < rank:
        raise NotKnown
    return axis % rank


def _replaced(shape: Shape, axis: int, *sizes: Dim) -> Shape:
    return (*shape[:axis], *sizes, *shape[axis + 1 :])


# -- Shape alone ------------------------------------------------------------------------------


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
    return Tensor(shape=_replaced(tuple(sizes), missing[0], inferred))


def _text(size: Dim) -> str:
    return str(size) if isinstance(size, int) else "?"


def _flatten(given: Given) -> V:
    start, end = given.number("start_dim", 0), given.number("end_dim", -1)
    return Tensor(shape=flattened(given.tensor("input").shape, start, end))


# -- Several tensors --------------------------------------------------------------------------


def _shapes(given: Given) -> list[Shape]:
    """The shapes of the tensors in a list or tuple."""
    box = given.value("tensors")
    if not isinstance(box, Box) or not box.content.complete or not box.content.values:
        raise NotKnown
    found = [held(value) for value in box.content.values]
    shapes = [one.shape for one in found if isinstance(one, Tensor)]
    if len(shapes) != len(found):
        raise NotKnown
    return shapes


def _joined(given: Given) -> V:
    first, *others = _shapes(given)
    at = _axis(given.number("dim", 0), len(first))
    result, along = list(first), first[at]
    for shape in others:
        if len(shape) != len(first):
            raise NotKnown
        for axis, (one, other) in enumerate(zip(result, shape, strict=True)):
            if axis != at and differ(one, other):
                raise Misfit(
                    f"Sizes of tensors must match except in dimension {at}. Expected size "
                    f"{_text(one)} but got size {_text(other)} for tensor number 1 in the list.",
                    f"Tensors of {shown(first)} and {shown(shape)} are joined along axis {at}.",
                    f"Make them equal in axis {axis}, or join them along it.",
                )
            result[axis] = other if isinstance(other, int) else one
        along = _sum(along, shape[at])
    result[at] = along
    return Tensor(shape=tuple(result))


def _sum(one: Dim, other: Dim) -> Dim:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return product([2, one]) if one == other else fresh()


def _combined(given: Given) -> V:
    x, other = held(given.value("input")), given.value("other")
    right = held(other)
    if isinstance(x, Tensor) and isinstance(right, Tensor):
        return added(x, right)
    if isinstance(x, Tensor) and isinstance(other, Constant):
        return x
    raise NotKnown


def added(left: Tensor, right: Tensor) -> Tensor:
    """The result of an element-wise operation on two tensors.

    Raises:
        Misfit: they do not fit.
        NotKnown: only the last axes of one of them are known.
    """
    if left.is_last or right.is_last:
        raise NotKnown
    return Tensor(shape=broadcast(left.shape, right.shape))


# -- Sizes ------------------------------------------------------------------------------------


def _size(given: Given) -> V:
    shape = given.tensor("input").shape
    if given.has("dim"):
        return as_value(shape[_axis(given.number("dim"), len(shape))])
    return Box.of("tuple", map(as_value, shape))


# -- Functions of neural networks -------------------------------------------------------------


def _kept(given: Given) -> V:
    return given.tensor("input", whole=False)


def _as_layer(names: tuple[str, ...], gives: Callable[[Given, Tensor], V]) -> TensorFunction:
    return TensorFunction(("input", *names), lambda given: gives(given, given.tensor("input")))


_KEEPING = tuple(
    """
    relu gelu elu selu leaky_relu silu mish tanh sigmoid softplus softmax log_softmax dropout
    dropout1d dropout2d dropout3d relu_ to cuda cpu float long half double bfloat16 detach clone
    contiguous exp log sqrt abs square clamp roll as_tensor from_numpy zeros_like ones_like
    """.split()
)
_COMBINING = ("add", "sub", "mul", "div", "maximum", "minimum")


def _made(given: Given) -> V:
    return Tensor(shape=tuple(given.rest(0, "size")))


FUNCTIONS: Mapping[str, TensorFunction] = {
    **dict.fromkeys(_KEEPING, TensorFunction(("input",), _kept)),
    **dict.fromkeys(_COMBINING, TensorFunction(("input", "other"), _combined)),
    **dict.fromkeys(("view", "reshape"), TensorFunction(("input", "shape"), _reshaped)),
    "flatten": TensorFunction(("input", "start_dim", "end_dim"), _flatten),
    **dict.fromkeys(("cat", "concat"), TensorFunction(("tensors", "dim"), _joined)),
    "size": TensorFunction(("input", "dim"), _size),
    "interpolate": _as_layer(("size", "scale_factor"), resized),
    **{
        f"{kind}_pool{axes}d": _as_layer(names, pool(axes, kind == "avg").gives)
        for kind, names in (
            ("avg", ("kernel_size", "stride", "padding", "ceil_mode")),
            ("max", ("kernel_size", "stride", "padding", "dilation", "ceil_mode")),
        )
        for axes in (1, 2, 3)
    },
    **{
        f"adaptive_{kind}_pool{axes}d": _as_layer(("output_size",), adaptive(axes).gives)
        for kind in ("avg", "max")
        for axes in (1, 2, 3)
    },
}
"""Functions and methods by the last part of their name; `LAYERS` explains the selection."""
SOURCES: Mapping[str, TensorFunction] = {
    f"torch.{name}": TensorFunction(("size",), _made) for name in ("rand", "randn", "zeros", "ones")
}
"""Functions that create tensors, by their full name."""
