"""Layers of `torch.nn` as data: the input sizes that each accepts, and its output sizes.

Source: PyTorch documentation, torch.nn, sections Shape; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from epochzero.check.program.heap import Box, Content, V
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Shape,
    Size,
    Tensor,
    as_dim,
    differ,
    fresh,
    number,
    product,
    shown,
)
from epochzero.check.program.values import Constant, Items

_NONE = Constant(None)


def _numbers(value: V | None) -> list[Dim] | None:
    """The sizes in a tuple or list."""
    content = value.content if isinstance(value, Box) else value
    if not isinstance(content, Content | Items) or not content.complete:
        return None
    return [*map(as_dim, content.values)]


class Given:
    """Positional arguments and keyword arguments by parameter; ``names`` has spaces between them."""

    def __init__(self, names: str, positional: Sequence[V], keywords: Mapping[str, V]) -> None:
        self._positional = positional
        self._values = {**dict(zip(names.split(), positional, strict=False)), **keywords}

    def has(self, name: str) -> bool:
        """Whether an argument is given and is not None."""
        return self._values.get(name, _NONE) != _NONE

    def known(self, name: str, default: int | None) -> object:
        """The value of an argument.

        Raises:
            NotKnown: it is unknown.
        """
        value = self._values.get(name, Constant(default))
        if not isinstance(value, Constant):
            raise NotKnown
        return value.value

    def size(self, name: str, default: int | None = None) -> Dim:
        """A size; an unknown one if the argument is unknown, or not given and without a default."""
        return as_dim(self._values.get(name, Constant(default)))

    def each(self, name: str, count: int, default: int | None = None) -> list[Dim]:
        """Sizes for several axes: one number for all, or one number each."""
        found = _numbers(self._values.get(name))
        if found is None:
            return [self.size(name, default)] * count
        return found if len(found) == count else [fresh() for _ in range(count)]

    def rest(self, start: int, name: str) -> list[Dim]:
        """Sizes that are given one by one, or as one tuple.

        Raises:
            NotKnown: their number is unknown.
        """
        values: list[V | None] = [*self._positional[start:]] or [self._values.get(name)]
        if len(values) == 1 and not isinstance(values[0], Constant | Size):
            if (found := _numbers(values[0])) is None:
                raise NotKnown
            return found
        return [*map(as_dim, values)]


@dataclass(frozen=True, slots=True)
class LayerSignature:
    """A layer, described by what it does to the channels of its input and to the axes behind them.

    Attributes:
        parameters: of its constructor, in order, separated by spaces.
        channel: position of the axis of the channels.
        ranks: numbers of axes that its input may have; empty if only the last axis matters.
        wanted: parameter with the number of channels that it accepts; empty if it accepts any.
        made: parameter with the number of channels of its output; empty if they stay the same.
        error: PyTorch's message if the number of channels is another one.
        space: returns the axes behind the channels of its output.
    """

    parameters: str = ""
    channel: int = -1
    ranks: tuple[int, ...] = ()
    wanted: str = ""
    made: str = ""
    error: str = ""
    space: Callable[[Given, Shape], Sequence[Dim]] = lambda _, space: space

    def output(self, name: str, layer: Given, x: Tensor | None) -> Tensor:
        """Return the output for a tensor, which may be unknown.

        Raises:
            Misfit: the layer certainly rejects the tensor.
            NotKnown: the output is unknown.
        """
        if x is None and self.ranks and self.made:
            x = Tensor(shape=tuple(fresh() for _ in range(self.ranks[-1])))
        x = x or Tensor(shape=(fresh(),), is_last=True)
        misses = self.ranks and (x.is_last or len(x.shape) not in self.ranks)
        if not x.shape or misses or layer.known("return_indices", False):
            raise NotKnown
        at = self.channel % len(x.shape)
        made = layer.size(self.made) if self.made else x.shape[at]
        if self.wanted and layer.known("track_running_stats", True):
            wanted, given = layer.size(self.wanted), x.shape[at]
            if differ(wanted, given):
                rows, sizes = number(product(x.shape[:at])), map(number, (given, wanted, made))
                message = self.error.format(shown(x.shape), rows, *sizes)
                raise Misfit(
                    message,
                    f"{name} has {self.wanted}={wanted} and is given {given}.",
                    f"Give {name} {self.wanted}={given}, or make what comes before give {wanted}.",
                )
        return replace(x, shape=(*x.shape[:at], made, *self.space(layer, x.shape[at + 1 :])))


def _windows(given: Given, space: Shape, *, is_pool: bool = False) -> list[Dim]:
    """The number of positions of a window along each axis."""
    if given.known("ceil_mode", False):
        raise NotKnown  # it may drop the last window
    kernel = given.each("kernel_size", len(space))
    stride = given.each("stride", len(space), 1)
    if is_pool and not given.has("stride"):
        stride = kernel
    padding, dilation = given.each("padding", len(space), 0), given.each("dilation", len(space), 1)
    sizes = [*map(_window, space, kernel, stride, padding, dilation)]
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise NotKnown
    return sizes


def _window(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim:
    """The number of positions of a window; 0 or less if it does not fit."""
    known = [value for value in (kernel, stride, padding, dilation) if isinstance(value, int)]
    if len(known) != 4:
        return fresh()
    kernel, stride, padding, dilation = known
    spare = 2 * padding - dilation * (kernel - 1) - 1
    if not isinstance(size, int):
        return size if stride == 1 and spare == -1 else fresh()
    return (size + spare) // stride + 1 if stride > 0 else fresh()


def _with_windows(axes: int) -> dict[str, LayerSignature]:
    """Layers of images with this number of axes."""
    layer = partial(LayerSignature, channel=-1 - axes, ranks=(axes + 1, axes + 2))
    pool = partial(layer, space=partial(_windows, is_pool=True))
    adaptive = layer(
        "output_size return_indices",
        space=lambda given, space: given.each("output_size", len(space)),
    )
    return {
        f"Conv{axes}d": layer(
            "in_channels out_channels kernel_size stride padding dilation",
            wanted="in_channels",
            made="out_channels",
            error="expected input{0} to have {3} channels, but got {2} channels instead",
            space=_windows,
        ),
        f"MaxPool{axes}d": pool("kernel_size stride padding dilation return_indices ceil_mode"),
        f"AvgPool{axes}d": pool("kernel_size stride padding ceil_mode"),
        f"AdaptiveAvgPool{axes}d": adaptive,
        f"AdaptiveMaxPool{axes}d": adaptive,
        f"BatchNorm{axes}d": LayerSignature(
            "num_features eps momentum affine track_running_stats",
            channel=1,
            ranks=(2, 3) if axes == 1 else (axes + 2,),
            wanted="num_features",
            error="running_mean should contain {2} elements not {3}",
        ),
    }


_SAME_SHAPE = """
    ReLU GELU ELU SELU LeakyReLU PReLU SiLU Mish Tanh Sigmoid Softplus Softmax LogSoftmax Identity
    Dropout Dropout1d Dropout2d Dropout3d
"""

LAYERS: Mapping[str, LayerSignature] = {
    "Linear": LayerSignature(
        "in_features out_features",
        wanted="in_features",
        made="out_features",
        error="mat1 and mat2 shapes cannot be multiplied ({1}x{2} and {3}x{4})",
    ),
    **_with_windows(1),
    **_with_windows(2),
    **_with_windows(3),
    **dict.fromkeys(_SAME_SHAPE.split(), LayerSignature()),
}
"""Layers by their name in `torch.nn`.

Only those with which `check` found a wrong size in a job of its benchmarks, and similar ones; the dry run covers all
others.
"""
