"""Functions of `torch`, of `torch.nn.functional` and methods of tensors: the shapes that they give.

Source: PyTorch documentation, torch, torch.Tensor and torch.nn.functional; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochzero.check.program.heap import Box, V, held
from epochzero.check.program.tensors.layers import adaptive, flattened, pool, resized
from epochzero.check.program.tensors.parameters import Given, numbers
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Shape,
    Tensor,
    as_dim,
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
        names: of its parameters, in their order.
        gives: what it gives.
    """

    names: tuple[str, ...]
    gives: Callable[[Given], V]


def _axis(axis: int, rank: int) -> int:
    """An axis counted from the first.

    Raises:
        NotKnown: there is no such axis.
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
    whole, rest = product(x.shape), product(one for one in sizes if one != -1)
    message = f"shape '{shown(sizes)}' is invalid for input of size {_text(whole)}"
    misfit = Misfit(
        message,
        f"A tensor of {shown(x.shape)} is given the shape {shown(sizes)}.",
        "Make the product of the sizes the number of values of a tensor.",
    )
    missing = [at for at, one in enumerate(sizes) if one == -1]
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


def _squeezed(given: Given) -> V:
    shape = given.tensor("input").shape
    if given.has("dim"):
        at = _axis(given.number("dim"), len(shape))
        if not isinstance(shape[at], int):
            raise NotKnown
        return Tensor(shape=_replaced(shape, at) if shape[at] == 1 else shape)
    if not all(isinstance(one, int) for one in shape):
        raise NotKnown
    return Tensor(shape=tuple(one for one in shape if one != 1))


def _unsqueezed(given: Given) -> V:
    shape = given.tensor("input").shape
    at = _axis(given.number("dim"), len(shape) + 1)
    return Tensor(shape=(*shape[:at], 1, *shape[at:]))


def _transposed(given: Given) -> V:
    shape = list(given.tensor("input").shape)
    one, other = (_axis(given.number(name), len(shape)) for name in ("dim0", "dim1"))
    shape[one], shape[other] = shape[other], shape[one]
    return Tensor(shape=tuple(shape))


def _turned(given: Given) -> V:
    return Tensor(shape=given.tensor("input").shape[::-1])


def _permuted(given: Given) -> V:
    shape = given.tensor("input").shape
    axes = given.rest(1, "dims")
    if len(axes) != len(shape) or not all(isinstance(one, int) for one in axes):
        raise NotKnown
    return Tensor(shape=tuple(shape[_axis(one, len(shape))] for one in axes))  # type: ignore[arg-type]


def _expanded(given: Given) -> V:
    shape, sizes = given.tensor("input").shape, given.rest(1, "size")
    if len(sizes) < len(shape):
        raise NotKnown
    old = (1,) * (len(sizes) - len(shape)) + shape
    return Tensor(shape=tuple(a if b == -1 else b for a, b in zip(old, sizes, strict=True)))


def _repeated(given: Given) -> V:
    shape, times = given.tensor("input").shape, given.rest(1, "repeats")
    if len(times) < len(shape):
        raise NotKnown
    old = (1,) * (len(times) - len(shape)) + shape
    return Tensor(shape=tuple(product(one) for one in zip(old, times, strict=True)))


# -- Several tensors --------------------------------------------------------------------------


def _shapes(given: Given) -> list[Shape]:
    """The shapes of the tensors in a list or tuple."""
    box = given.value("tensors")
    if not isinstance(box, Box) or not box.content.complete or not box.content.values:
        raise NotKnown
    found = [held(one) for one in box.content.values]
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
                    f"Make them alike in axis {axis}, or join them along that.",
                )
            result[axis] = other if isinstance(other, int) else one
        along = _sum(along, shape[at])
    result[at] = along
    return Tensor(shape=tuple(result))


def _sum(one: Dim, other: Dim) -> Dim:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return product([2, one]) if one == other else fresh()


def _stacked(given: Given) -> V:
    first, *others = _shapes(given)
    for shape in others:
        if len(shape) != len(first) or any(map(differ, first, shape)):
            raise Misfit(
                f"stack expects each tensor to be equal size, but got {shown(first)} at entry 0 "
                f"and {shown(shape)} at entry 1",
                f"Tensors of {shown(first)} and {shown(shape)} are stacked.",
                "Make them alike, or use torch.cat.",
            )
    at = _axis(given.number("dim", 0), len(first) + 1)
    return Tensor(shape=(*first[:at], len(others) + 1, *first[at:]))


def multiplied(one: Tensor, other: Tensor) -> Tensor:
    """What ``one @ other`` gives.

    Raises:
        Misfit: the last axis of the one does not fit the last but one of the other.
        NotKnown: the axes of one of them are not known.
    """
    left, right = one.shape, other.shape
    if one.is_last or other.is_last or not left or not right:
        raise NotKnown
    columns, rows = left[-1], right[-2] if len(right) > 1 else right[0]
    if differ(columns, rows):
        raise Misfit(
            f"mat1 and mat2 shapes cannot be multiplied ({shown(left)} and {shown(right)})",
            f"Tensors of {shown(left)} and {shown(right)} are multiplied: {_text(columns)} columns "
            f"and {_text(rows)} rows.",
            "Transpose one of them, or make the sizes equal.",
        )
    before = broadcast(left[:-2], right[:-2])
    return Tensor(shape=(*before, *left[-2:-1], *(right[-1:] if len(right) > 1 else ())))


def _multiply(given: Given) -> V:
    return multiplied(given.tensor("input"), given.tensor("other"))


def _combined(given: Given) -> V:
    x, other = held(given.value("input")), given.value("other")
    right = held(other)
    if isinstance(x, Tensor) and isinstance(right, Tensor):
        return added(x, right)
    if isinstance(x, Tensor) and isinstance(other, Constant):
        return x
    raise NotKnown


def added(left: Tensor, right: Tensor) -> Tensor:
    """What an operation on two tensors gives, value by value.

    Raises:
        Misfit: they do not fit.
        NotKnown: the last axes of one of them are known only.
    """
    if left.is_last or right.is_last:
        raise NotKnown
    return Tensor(shape=broadcast(left.shape, right.shape))


def _chosen(given: Given) -> V:
    condition, x = given.tensor("condition").shape, given.tensor("input").shape
    return Tensor(shape=broadcast(broadcast(condition, x), given.tensor("other").shape))


# -- Parts ------------------------------------------------------------------------------------


def _chunked(given: Given) -> V:
    shape, count = given.tensor("input").shape, given.number("chunks")
    at = _axis(given.number("dim", 0), len(shape))
    size = quotient(shape[at], count)
    if size is None or count < 1 or not isinstance(shape[at], int):
        raise NotKnown
    return Box.of("tuple", [Tensor(shape=_replaced(shape, at, size)) for _ in range(count)])


def _split(given: Given) -> V:
    shape = given.tensor("input").shape
    at = _axis(given.number("dim", 0), len(shape))
    if (sizes := numbers(given.value("split_size_or_sections"))) is None:
        each, whole = given.number("split_size_or_sections"), shape[at]
        if not isinstance(whole, int) or each < 1 or whole % each:
            raise NotKnown
        sizes = [each] * (whole // each)
    elif all(isinstance(one, int) for one in (*sizes, shape[at])) and sum(sizes) != shape[at]:  # type: ignore[arg-type]
        raise Misfit(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[at]} (input tensor's "
            f"size at dimension {at}), but got split_sizes={shown(sizes)}",
            f"An axis of {_text(shape[at])} is split into {shown(sizes)}.",
            "Make the parts add up to the whole.",
        )
    return Box.of("tuple", [Tensor(shape=_replaced(shape, at, one)) for one in sizes])


def _unbound(given: Given) -> V:
    shape = given.tensor("input").shape
    at = _axis(given.number("dim", 0), len(shape))
    count = shape[at]
    if not isinstance(count, int) or count > 64:
        raise NotKnown
    return Box.of("tuple", [Tensor(shape=_replaced(shape, at))] * count)


def indexed(shape: Shape, keys: list[V]) -> Shape:
    """The shape of ``x[keys]`` for numbers, slices and None.

    Raises:
        NotKnown: there are other keys.
    """
    result: list[Dim] = []
    left = list(shape)
    for key in keys:
        if isinstance(key, Constant) and key.value is None:
            result.append(1)
            continue
        if not left:
            raise NotKnown
        size = left.pop(0)
        bounds = _bounds(key)
        if bounds is not None:
            result.append(_sliced(size, bounds))
        elif as_dim(key) is None:
            raise NotKnown
    return (*result, *left)


def _bounds(key: V) -> tuple[V, ...] | None:
    is_slice = getattr(key, "name", "") == "builtins.slice"
    return getattr(key, "arguments", ()) if is_slice else None


def _sliced(size: Dim, bounds: tuple[V, ...]) -> Dim:
    values = [one.value for one in bounds if isinstance(one, Constant)]
    if values == [None, None, None]:
        return size
    are_whole = all(one is None or type(one) is int for one in values)
    if not isinstance(size, int) or not are_whole or values[2] == 0:
        return fresh()
    return len(range(size)[slice(*values)])  # type: ignore[arg-type]


# -- Reductions -------------------------------------------------------------------------------


def _reduced(given: Given) -> V:
    shape = given.tensor("input").shape
    if not given.has("dim"):
        return Tensor(shape=())
    axes = numbers(given.value("dim")) or [given.number("dim")]
    if not all(isinstance(one, int) for one in axes):
        raise NotKnown
    gone = {_axis(one, len(shape)) for one in axes}  # type: ignore[arg-type]
    if given.flag("keepdim"):
        return Tensor(shape=tuple(1 if at in gone else one for at, one in enumerate(shape)))
    return Tensor(shape=tuple(one for at, one in enumerate(shape) if at not in gone))


def _extreme(given: Given) -> V:
    if given.has("other") or held(given.value("dim")) is not None:
        raise NotKnown
    result = _reduced(given)
    return Box.of("tuple", (result, result)) if given.has("dim") else result


# -- Sizes ------------------------------------------------------------------------------------


def _size(given: Given) -> V:
    shape = given.tensor("input").shape
    if given.has("dim"):
        return as_value(shape[_axis(given.number("dim"), len(shape))])
    return Box.of("tuple", map(as_value, shape))


def _rank(given: Given) -> V:
    return Constant(len(given.tensor("input").shape))


def _count(given: Given) -> V:
    return as_value(product(given.tensor("input").shape))


# -- Functions of neural networks -------------------------------------------------------------


def _one_hot(given: Given) -> V:
    return Tensor(shape=(*given.tensor("input").shape, given.size("num_classes")))


def _padded(given: Given) -> V:
    shape, pads = list(given.tensor("input").shape), numbers(given.value("pad"))
    if pads is None or len(pads) % 2 or len(pads) > 2 * len(shape):
        raise NotKnown
    for at in range(len(pads) // 2):
        sizes = [shape[-1 - at], *pads[2 * at : 2 * at + 2]]
        known = [one for one in sizes if isinstance(one, int)]
        shape[-1 - at] = sum(known) if len(known) == len(sizes) else fresh()
    return Tensor(shape=tuple(shape))


def _kept(given: Given) -> V:
    return given.tensor("input", whole=False)


def _as_layer(names: tuple[str, ...], gives: Callable[[Given, Tensor], V]) -> TensorFunction:
    return TensorFunction(("input", *names), lambda given: gives(given, given.tensor("input")))


_KEEPING = [
    "relu",
    "relu6",
    "gelu",
    "tanh",
    "sigmoid",
    "elu",
    "selu",
    "celu",
    "leaky_relu",
    "silu",
    "mish",
    "softplus",
    "softsign",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "logsigmoid",
    "softmax",
    "log_softmax",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "normalize",
    "layer_norm",
    "batch_norm",
    "group_norm",
    "instance_norm",
    "to",
    "cuda",
    "cpu",
    "float",
    "long",
    "int",
    "half",
    "double",
    "bfloat16",
    "bool",
    "byte",
    "type",
    "detach",
    "clone",
    "contiguous",
    "requires_grad_",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "square",
    "sign",
    "round",
    "floor",
    "ceil",
    "sin",
    "cos",
    "clamp",
    "clamp_min",
    "clamp_max",
    "clip",
    "cumsum",
    "cumprod",
    "flip",
    "roll",
    "tril",
    "triu",
    "nan_to_num",
    "logical_not",
    "masked_fill",
    "zeros_like",
    "ones_like",
    "rand_like",
    "randn_like",
    "empty_like",
    "full_like",
    "erf",
    "isnan",
    "isinf",
    "isfinite",
    "reciprocal",
    "type_as",
    "pin_memory",
    "numpy",
    "astype",
    "from_numpy",
    "as_tensor",
    "retain_grad",
    "fill_",
    "zero_",
    "uniform_",
    "normal_",
    "copy_",
    "add_",
    "sub_",
    "mul_",
    "div_",
]
_COMBINING = [
    "add",
    "sub",
    "subtract",
    "mul",
    "multiply",
    "div",
    "divide",
    "true_divide",
    "pow",
    "maximum",
    "minimum",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "atan2",
    "fmod",
    "remainder",
]
_REDUCING = [
    "mean",
    "sum",
    "prod",
    "amax",
    "amin",
    "std",
    "var",
    "logsumexp",
    "all",
    "any",
    "argmax",
    "argmin",
    "nanmean",
    "nansum",
]

FUNCTIONS: Mapping[str, TensorFunction] = {
    **dict.fromkeys(_KEEPING, TensorFunction(("input",), _kept)),
    **{
        f"{name}_": TensorFunction(("input",), _kept)
        for name in ("relu", "sigmoid", "tanh", "clamp")
    },
    **dict.fromkeys(_COMBINING, TensorFunction(("input", "other"), _combined)),
    **dict.fromkeys(_REDUCING, TensorFunction(("input", "dim", "keepdim"), _reduced)),
    **dict.fromkeys(("max", "min"), TensorFunction(("input", "dim", "keepdim"), _extreme)),
    **dict.fromkeys(("view", "reshape"), TensorFunction(("input", "shape"), _reshaped)),
    "flatten": TensorFunction(("input", "start_dim", "end_dim"), _flatten),
    "squeeze": TensorFunction(("input", "dim"), _squeezed),
    "unsqueeze": TensorFunction(("input", "dim"), _unsqueezed),
    **dict.fromkeys(
        ("transpose", "swapaxes"), TensorFunction(("input", "dim0", "dim1"), _transposed)
    ),
    "t": TensorFunction(("input",), _turned),
    "permute": TensorFunction(("input", "dims"), _permuted),
    "expand": TensorFunction(("input", "size"), _expanded),
    "repeat": TensorFunction(("input", "repeats"), _repeated),
    **dict.fromkeys(("cat", "concat", "concatenate"), TensorFunction(("tensors", "dim"), _joined)),
    "stack": TensorFunction(("tensors", "dim"), _stacked),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv"), TensorFunction(("input", "other"), _multiply)),
    "where": TensorFunction(("condition", "input", "other"), _chosen),
    "chunk": TensorFunction(("input", "chunks", "dim"), _chunked),
    "split": TensorFunction(("input", "split_size_or_sections", "dim"), _split),
    "unbind": TensorFunction(("input", "dim"), _unbound),
    "size": TensorFunction(("input", "dim"), _size),
    **dict.fromkeys(("dim", "ndimension"), TensorFunction(("input",), _rank)),
    **dict.fromkeys(("numel", "nelement"), TensorFunction(("input",), _count)),
    "one_hot": TensorFunction(("input", "num_classes"), _one_hot),
    "pad": TensorFunction(("input", "pad"), _padded),
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
"""Functions and methods by the last part of their name."""
