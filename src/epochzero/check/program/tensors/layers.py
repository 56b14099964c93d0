"""Layers of `torch.nn`: the input sizes that each accepts, and its output sizes.

Source: PyTorch documentation, torch.nn, sections Shape; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from epochzero.check.program.heap import V
from epochzero.check.program.tensors.parameters import Given
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Shape,
    Tensor,
    differ,
    fresh,
    product,
    shown,
)

_Gives = Callable[[Given, Tensor], V]


@dataclass(frozen=True, slots=True)
class LayerSignature:
    """A layer.

    Attributes:
        names: the parameters of its constructor, in order.
        gives: returns its output for the layer's parameters and a tensor.
        axes: number of input axes if it is fixed; 1 if only the last one matters, 0 for any number.
    """

    names: tuple[str, ...]
    gives: _Gives
    axes: int = 0

    def of(self, layer: Given, x: Tensor | None) -> V:
        """Return the output for a tensor, which may be unknown.

        Raises:
            Misfit: it certainly rejects the tensor.
            NotKnown: the output is unknown.
        """
        if x is None and self.axes > 1:
            return self.gives(layer, Tensor(shape=tuple(fresh() for _ in range(self.axes))))
        if x is None or x.is_last:
            return self._behind_others(layer, x)
        return self.gives(layer, x)

    def _behind_others(self, layer: Given, x: Tensor | None) -> V:
        """Return the output if at most the last axis of the tensor is known."""
        if self.axes != 1:
            raise NotKnown
        result = self.gives(layer, x or Tensor(shape=(fresh(),)))
        return replace(result, is_last=True) if isinstance(result, Tensor) else result


def _misfit(
    layer: str,
    name: str,
    wanted: Dim,
    given: Dim,
    message: str,
    error: type[Exception] = RuntimeError,
) -> Misfit:
    """The error for an input of the wrong size."""
    return Misfit(
        message,
        f"{layer} has {name}={wanted} and is given {given}.",
        f"Give {layer} {name}={given}, or make what comes before give {wanted}.",
        error,
    )


def _linear(layer: Given, x: Tensor) -> V:
    wanted, given = layer.size("in_features"), x.shape[-1]
    if differ(wanted, given):
        out = layer.size("out_features")
        rows = product(x.shape[:-1])
        message = (
            "mat1 and mat2 shapes cannot be multiplied "
            f"({_number(rows)}x{_number(given)} and {_number(wanted)}x{_number(out)})"
        )
        raise _misfit("Linear", "in_features", wanted, given, message)
    return Tensor(shape=(*x.shape[:-1], layer.size("out_features")))


def _number(size: Dim) -> str:
    return str(size) if isinstance(size, int) else "?"


# -- Windows that move over an image ----------------------------------------------------------


def _spatial(x: Tensor, axes: int) -> tuple[Shape, Shape]:
    """Split the axes into those before the window's axes, and the window's axes.

    Raises:
        NotKnown: the number of axes differs.
    """
    if len(x.shape) not in (axes + 1, axes + 2):
        raise NotKnown
    return x.shape[:-axes], x.shape[-axes:]


def _windows(moved: Iterable[tuple[Dim, Dim, Dim, Dim, Dim]]) -> list[Dim]:
    """The number of window positions along each axis.

    Raises:
        NotKnown: the window does not fit.
    """
    sizes = [_window(*row) for row in moved]
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise NotKnown
    return sizes


def _window(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim:
    """The number of window positions; 0 or less if the window does not fit."""
    known = [value for value in (kernel, stride, padding, dilation) if isinstance(value, int)]
    if len(known) != 4:
        return fresh()
    kernel, stride, padding, dilation = known
    spare = 2 * padding - dilation * (kernel - 1) - 1
    if not isinstance(size, int):
        return size if stride == 1 and spare == -1 else fresh()
    return (size + spare) // stride + 1 if stride > 0 else fresh()


def _convolution(axes: int) -> LayerSignature:
    name = f"Conv{axes}d"

    def gives(layer: Given, x: Tensor) -> V:
        before, spatial = _spatial(x, axes)
        wanted, channels = layer.size("in_channels"), before[-1]
        if differ(wanted, channels):
            message = (
                f"expected input{shown(x.shape)} to have {_number(wanted)} channels, but got "
                f"{_number(channels)} channels instead"
            )
            raise _misfit(name, "in_channels", wanted, channels, message)
        moved = zip(
            spatial,
            layer.each("kernel_size", axes),
            layer.each("stride", axes, 1),
            layer.each("padding", axes, 0),
            layer.each("dilation", axes, 1),
            strict=True,
        )
        return Tensor(shape=(*before[:-1], layer.size("out_channels"), *_windows(moved)))

    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation")
    return LayerSignature(names, gives, axes + 2)


def pool(axes: int, average: bool) -> LayerSignature:
    """Pooling with a window; its default stride is the window size."""

    def gives(layer: Given, x: Tensor) -> V:
        before, spatial = _spatial(x, axes)
        # ``ceil_mode`` may drop the last window.
        if layer.has("return_indices") or layer.flag("ceil_mode"):
            raise NotKnown
        kernel = layer.each("kernel_size", axes)
        moved = zip(
            spatial,
            kernel,
            layer.each("stride", axes) if layer.has("stride") else kernel,
            layer.each("padding", axes, 0),
            [1] * axes if average else layer.each("dilation", axes, 1),
            strict=True,
        )
        return Tensor(shape=(*before, *_windows(moved)))

    last = ("ceil_mode",) if average else ("dilation", "return_indices", "ceil_mode")
    return LayerSignature(("kernel_size", "stride", "padding", *last), gives)


def adaptive(axes: int) -> LayerSignature:
    """Pooling to a given size; None leaves an axis as it is."""

    def gives(layer: Given, x: Tensor) -> V:
        before, _ = _spatial(x, axes)
        if layer.has("return_indices"):
            raise NotKnown
        return Tensor(shape=(*before, *layer.each("output_size", axes)))

    return LayerSignature(("output_size", "return_indices"), gives)


# -- Normalization ----------------------------------------------------------------------------


def _batch_norm(axes: int) -> LayerSignature:
    name = f"BatchNorm{axes}d"
    ranks = (2, 3) if axes == 1 else (axes + 2,)

    def gives(layer: Given, x: Tensor) -> V:
        if len(x.shape) not in ranks:
            raise NotKnown
        wanted, channels = layer.size("num_features"), x.shape[1]
        if differ(wanted, channels) and not layer.has("track_running_stats"):
            message = (
                f"running_mean should contain {_number(channels)} elements not {_number(wanted)}"
            )
            raise _misfit(name, "num_features", wanted, channels, message)
        return x

    return LayerSignature(
        ("num_features", "eps", "momentum", "affine", "track_running_stats"), gives
    )


# -- The shape alone --------------------------------------------------------------------------


def flattened(shape: Shape, start: int, end: int) -> Shape:
    """A shape with the axes from ``start`` to ``end`` flattened.

    Raises:
        NotKnown: the axes do not exist.
    """
    rank = len(shape)
    first, last = start % rank if rank else 0, end % rank if rank else 0
    if not rank or first > last or not -rank <= start < rank or not -rank <= end < rank:
        raise NotKnown
    return (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :])


def _flatten(layer: Given, x: Tensor) -> V:
    start, end = layer.number("start_dim", 1), layer.number("end_dim", -1)
    return Tensor(shape=flattened(x.shape, start, end))


def _kept(layer: Given, x: Tensor) -> V:
    return x


_KEEPING = tuple(
    """
    ReLU GELU ELU SELU LeakyReLU PReLU SiLU Mish Tanh Sigmoid Softplus Softmax LogSoftmax
    Identity Dropout Dropout1d Dropout2d Dropout3d
    """.split()
)

LAYERS: Mapping[str, LayerSignature] = {
    "Linear": LayerSignature(("in_features", "out_features"), _linear, 1),
    **{f"Conv{axes}d": _convolution(axes) for axes in (1, 2, 3)},
    **{f"MaxPool{axes}d": pool(axes, average=False) for axes in (1, 2, 3)},
    **{f"AvgPool{axes}d": pool(axes, average=True) for axes in (1, 2, 3)},
    **{f"AdaptiveAvgPool{axes}d": adaptive(axes) for axes in (1, 2, 3)},
    **{f"AdaptiveMaxPool{axes}d": adaptive(axes) for axes in (1, 2, 3)},
    **{f"BatchNorm{axes}d": _batch_norm(axes) for axes in (1, 2, 3)},
    "Flatten": LayerSignature(("start_dim", "end_dim"), _flatten),
    **dict.fromkeys(_KEEPING, LayerSignature((), _kept, 1)),
}
"""Layers by their name in `torch.nn`.

Only those with which `check` found a wrong size in a job of its benchmarks, and similar ones; the dry run covers all
others.
"""
