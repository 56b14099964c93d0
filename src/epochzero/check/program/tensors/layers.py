"""Layers of `torch.nn`: the sizes that each takes and gives.

Source: PyTorch documentation, torch.nn, sections Shape; the messages are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from epochzero.check.program.heap import Box, V
from epochzero.check.program.tensors.parameters import Given, numbers
from epochzero.check.program.tensors.values import (
    Dim,
    Misfit,
    NotKnown,
    Shape,
    Tensor,
    differ,
    fresh,
    product,
    quotient,
    shown,
)

_Gives = Callable[[Given, Tensor], V]


@dataclass(frozen=True, slots=True)
class LayerSignature:
    """A layer.

    Attributes:
        names: of the parameters of its constructor, in their order.
        gives: what it gives for the layer's parameters and a tensor.
        axes: of what it takes, where that is always as many; 1 when it looks at the last one only,
            0 when it takes any.
    """

    names: tuple[str, ...]
    gives: _Gives
    axes: int = 0

    def of(self, layer: Given, x: Tensor | None) -> V:
        """What it gives for a tensor, which may not be known.

        Raises:
            Misfit: it surely refuses the tensor.
            NotKnown: nothing is known of what it gives.
        """
        if x is None and self.axes > 1:
            return self.gives(layer, Tensor(shape=tuple(fresh() for _ in range(self.axes))))
        if x is None or x.is_last:
            return self._behind_others(layer, x)
        return self.gives(layer, x)

    def _behind_others(self, layer: Given, x: Tensor | None) -> V:
        """What it gives where only the last axis of the tensor is known, if that."""
        if self.axes != 1:
            raise NotKnown
        result = self.gives(layer, x or Tensor(shape=(fresh(),)))
        return replace(result, is_last=True) if isinstance(result, Tensor) else result


def _misfit(
    layer: str, name: str, wanted: Dim, given: Dim, said: str, error: type[Exception] = RuntimeError
) -> Misfit:
    """A layer is given another size than it takes."""
    return Misfit(
        said,
        f"{layer} has {name}={wanted} and is given {given}.",
        f"Give {layer} {name}={given}, or make what comes before give {wanted}.",
        error,
    )


def _linear(layer: Given, x: Tensor) -> V:
    wanted, given = layer.size("in_features"), x.shape[-1]
    if differ(wanted, given):
        out = layer.size("out_features")
        rows = product(x.shape[:-1])
        said = (
            "mat1 and mat2 shapes cannot be multiplied "
            f"({_number(rows)}x{_number(given)} and {_number(wanted)}x{_number(out)})"
        )
        raise _misfit("Linear", "in_features", wanted, given, said)
    return Tensor(shape=(*x.shape[:-1], layer.size("out_features")))


def _number(size: Dim) -> str:
    return str(size) if isinstance(size, int) else "?"


# -- Windows that move over an image ----------------------------------------------------------


def _spatial(x: Tensor, axes: int, what: str) -> tuple[Shape, Shape]:
    """The axes before those over which windows move, and these."""
    if len(x.shape) not in (axes + 1, axes + 2):
        raise Misfit(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {what}, but got "
            f"input of size: {shown(x.shape)}",
            f"{what} takes {axes + 2} axes and is given {len(x.shape)}.",
            "Give it a batch, its channels, and the axes over which it moves.",
        )
    return x.shape[:-axes], x.shape[-axes:]


def _window(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim, up: bool) -> Dim:
    """How often a window fits; 0 or less where it does not."""
    known = [one for one in (kernel, stride, padding, dilation) if isinstance(one, int)]
    if len(known) != 4:
        return fresh()
    kernel, stride, padding, dilation = known
    spare = 2 * padding - dilation * (kernel - 1) - 1
    if not isinstance(size, int):
        return size if stride == 1 and spare == -1 else fresh()
    if stride < 1:
        return fresh()
    return -(-(size + spare) // stride) + 1 if up else (size + spare) // stride + 1


def _convolution(axes: int) -> LayerSignature:
    name = f"Conv{axes}d"

    def gives(layer: Given, x: Tensor) -> V:
        before, spatial = _spatial(x, axes, name.lower())
        wanted, channels = layer.size("in_channels"), before[-1]
        if differ(wanted, channels):
            said = (
                f"expected input{shown(x.shape)} to have {_number(wanted)} channels, but got "
                f"{_number(channels)} channels instead"
            )
            raise _misfit(name, "in_channels", wanted, channels, said)
        kernel = layer.each("kernel_size", axes)
        moved = zip(
            spatial,
            kernel,
            layer.each("stride", axes, 1),
            layer.each("padding", axes, 0),
            layer.each("dilation", axes, 1),
            strict=True,
        )
        sizes = tuple(_window(*one, up=False) for one in moved)
        if any(isinstance(one, int) and one < 1 for one in sizes):
            said = "Calculated padded input size per channel is smaller than the kernel"
            raise _too_small(name, spatial, kernel, said)
        return Tensor(shape=(*before[:-1], layer.size("out_channels"), *sizes))

    names = (
        "in_channels",
        "out_channels",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "groups",
    )
    return LayerSignature(names, gives, axes + 2)


def _too_small(name: str, spatial: Shape, kernel: list[Dim], said: str) -> Misfit:
    return Misfit(
        said,
        f"{name} with a kernel of {shown(kernel)} is given an image of {shown(spatial)}.",
        "Use larger images, fewer layers that make them smaller, or padding.",
    )


def _transposed(axes: int) -> LayerSignature:
    name = f"ConvTranspose{axes}d"

    def gives(layer: Given, x: Tensor) -> V:
        before, spatial = _spatial(x, axes, f"conv_transpose{axes}d")
        wanted, channels = layer.size("in_channels"), before[-1]
        if differ(wanted, channels):
            said = (
                f"Given transposed=1, expected input{shown(x.shape)} to have {_number(wanted)} "
                f"channels, but got {_number(channels)} channels instead"
            )
            raise _misfit(name, "in_channels", wanted, channels, said)
        moved = zip(
            spatial,
            layer.each("kernel_size", axes),
            layer.each("stride", axes, 1),
            layer.each("padding", axes, 0),
            layer.each("output_padding", axes, 0),
            layer.each("dilation", axes, 1),
            strict=True,
        )
        sizes = (_grown(*one) for one in moved)
        return Tensor(shape=(*before[:-1], layer.size("out_channels"), *sizes))

    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding")
    return LayerSignature((*names, "groups", "bias", "dilation"), gives, axes + 2)


def _grown(size: Dim, kernel: Dim, stride: Dim, padding: Dim, more: Dim, dilation: Dim) -> Dim:
    known = [one for one in (size, kernel, stride, padding, more, dilation) if isinstance(one, int)]
    if len(known) != 6:
        return fresh()
    size, kernel, stride, padding, more, dilation = known
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1


def pool(axes: int, average: bool) -> LayerSignature:
    """Pooling with a window; its stride is the window's size where none is given."""
    name = f"{'Avg' if average else 'Max'}Pool{axes}d"

    def gives(layer: Given, x: Tensor) -> V:
        before, spatial = _spatial(x, axes, name)
        if layer.has("return_indices"):
            raise NotKnown
        kernel = layer.each("kernel_size", axes)
        up = layer.flag("ceil_mode")
        moved = zip(
            spatial,
            kernel,
            layer.each("stride", axes) if layer.has("stride") else kernel,
            layer.each("padding", axes, 0),
            [1] * axes if average else layer.each("dilation", axes, 1),
            strict=True,
        )
        # The last window of ``ceil_mode`` may be left out.
        sizes = tuple(fresh() if up else _window(*one, up=False) for one in moved)
        if any(isinstance(one, int) and one < 1 for one in sizes):
            said = f"Given input size: {shown(x.shape)}. Output size is too small"
            raise _too_small(name, spatial, kernel, said)
        return Tensor(shape=(*before, *sizes))

    last = ("ceil_mode",) if average else ("dilation", "return_indices", "ceil_mode")
    return LayerSignature(("kernel_size", "stride", "padding", *last), gives)


def adaptive(axes: int) -> LayerSignature:
    """Pooling to a size that is given; None keeps an axis."""

    def gives(layer: Given, x: Tensor) -> V:
        before, _ = _spatial(x, axes, f"adaptive_pool{axes}d")
        if layer.has("return_indices"):
            raise NotKnown
        return Tensor(shape=(*before, *layer.each("output_size", axes)))

    return LayerSignature(("output_size", "return_indices"), gives)


def resized(layer: Given, x: Tensor) -> V:
    """An image in another size."""
    axes = len(x.shape) - 2
    if axes < 1:
        raise NotKnown
    if layer.has("size"):
        return Tensor(shape=(*x.shape[:2], *layer.each("size", axes)))
    factors = layer.each("scale_factor", axes)
    return Tensor(shape=(*x.shape[:2], *_scaled(x.shape[2:], factors)))


def _scaled(sizes: Shape, factors: list[Dim]) -> list[Dim]:
    return [product(one) for one in zip(sizes, factors, strict=True)]


def _padded(axes: int) -> LayerSignature:
    def gives(layer: Given, x: Tensor) -> V:
        before, spatial = _spatial(x, axes, f"pad{axes}d")
        pads = layer.each("padding", 2 * axes)
        sizes = [
            size + pads[2 * at] + pads[2 * at + 1]  # type: ignore[operator]
            if all(isinstance(one, int) for one in (size, *pads[2 * at : 2 * at + 2]))
            else fresh()
            for at, size in zip(reversed(range(axes)), spatial, strict=True)
        ]
        return Tensor(shape=(*before, *sizes))

    return LayerSignature(("padding",), gives)


# -- Normalization ----------------------------------------------------------------------------


def _batch_norm(axes: int) -> LayerSignature:
    name = f"BatchNorm{axes}d"
    ranks = (2, 3) if axes == 1 else (axes + 2,)

    def gives(layer: Given, x: Tensor) -> V:
        if len(x.shape) not in ranks:
            takes = " or ".join(f"{rank}D" for rank in ranks)
            raise Misfit(
                f"expected {takes} input (got {len(x.shape)}D input)",
                f"{name} takes {' or '.join(map(str, ranks))} axes and is given {len(x.shape)}.",
                f"Use the BatchNorm for {len(x.shape)} axes, or give it others.",
                ValueError,
            )
        wanted, channels = layer.size("num_features"), x.shape[1]
        if differ(wanted, channels) and not layer.has("track_running_stats"):
            said = f"running_mean should contain {_number(channels)} elements not {_number(wanted)}"
            raise _misfit(name, "num_features", wanted, channels, said)
        return x

    return LayerSignature(
        ("num_features", "eps", "momentum", "affine", "track_running_stats"), gives
    )


def _group_norm(layer: Given, x: Tensor) -> V:
    wanted = layer.size("num_channels")
    if len(x.shape) > 1 and differ(wanted, x.shape[1]) and not layer.has("affine"):
        said = (
            "Expected weight to be a vector of size equal to the number of channels in input, but "
            f"got weight of shape [{_number(wanted)}] and input of shape {shown(x.shape)}"
        )
        raise _misfit("GroupNorm", "num_channels", wanted, x.shape[1], said)
    return x


def _layer_norm(layer: Given, x: Tensor) -> V:
    sizes = numbers(layer.value("normalized_shape")) or [layer.size("normalized_shape")]
    given = x.shape[-len(sizes) :]
    if len(given) < len(sizes) or any(map(differ, sizes, given)):
        stars = ", ".join(["*", *map(_number, sizes)])
        raise Misfit(
            f"Given normalized_shape={shown(sizes)}, expected input with shape [{stars}], but got "
            f"input of size {shown(x.shape)}",
            f"LayerNorm has normalized_shape={shown(sizes)} and is given {shown(x.shape)}.",
            f"Give LayerNorm normalized_shape={shown(given)}, or make what comes before fit.",
        )
    return x


# -- Words and sequences ----------------------------------------------------------------------


def _embedding(layer: Given, x: Tensor) -> V:
    return Tensor(shape=(*x.shape, layer.size("embedding_dim")))


def _recurrent(name: str) -> LayerSignature:
    def gives(layer: Given, x: Tensor) -> V:
        if len(x.shape) not in (2, 3):
            raise Misfit(
                f"{name}: Expected input to be 2D or 3D, got {len(x.shape)}D instead",
                f"{name} takes 3 axes and is given {len(x.shape)}.",
                "Give it a batch, the steps and their features.",
                ValueError,
            )
        wanted, given = layer.size("input_size"), x.shape[-1]
        if differ(wanted, given):
            said = (
                "input.size(-1) must be equal to input_size. Expected "
                f"{_number(wanted)}, got {_number(given)}"
            )
            raise _misfit(name, "input_size", wanted, given, said)
        ways = 2 if layer.flag("bidirectional") else 1
        hidden = layer.size("hidden_size")
        out = fresh() if layer.has("proj_size") else hidden
        at = 0 if layer.flag("batch_first") else 1
        batch = x.shape[at : at + 1] if len(x.shape) == 3 else ()
        layers = product([layer.size("num_layers", 1), ways])
        state = Tensor(shape=(layers, *batch, out))
        cell = Tensor(shape=(layers, *batch, hidden))
        result = Tensor(shape=(*x.shape[:-1], product([out, ways])))
        states: V = Box.of("tuple", (state, cell)) if name == "LSTM" else state
        return Box.of("tuple", (result, states))

    names = ("input_size", "hidden_size", "num_layers")
    more = ("nonlinearity",) if name == "RNN" else ()
    last = ("bias", "batch_first", "dropout", "bidirectional", "proj_size")
    return LayerSignature((*names, *more, *last), gives, 3)


def _attention(layer: Given, x: Tensor) -> V:
    wanted, given = layer.size("embed_dim"), x.shape[-1]
    if differ(wanted, given):
        said = f"was expecting embedding dimension of {_number(wanted)}, but got {_number(given)}"
        raise _misfit("MultiheadAttention", "embed_dim", wanted, given, said, AssertionError)
    return Box.of("tuple", (x,), complete=False)


def _transformer(layer: Given, x: Tensor) -> V:
    wanted, given = layer.size("d_model"), x.shape[-1]
    if differ(wanted, given):
        said = f"was expecting embedding dimension of {_number(wanted)}, but got {_number(given)}"
        error = AssertionError
        raise _misfit("TransformerEncoderLayer", "d_model", wanted, given, said, error)
    return x


# -- The shape alone --------------------------------------------------------------------------


def flattened(shape: Shape, start: int, end: int) -> Shape:
    """A shape with the axes from ``start`` to ``end`` made one.

    Raises:
        NotKnown: there are no such axes.
    """
    rank = len(shape)
    first, last = start % rank if rank else 0, end % rank if rank else 0
    if not rank or first > last or not -rank <= start < rank or not -rank <= end < rank:
        raise NotKnown
    return (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :])


def _flatten(layer: Given, x: Tensor) -> V:
    start, end = layer.number("start_dim", 1), layer.number("end_dim", -1)
    return Tensor(shape=flattened(x.shape, start, end))


def _shuffle(layer: Given, x: Tensor) -> V:
    if len(x.shape) < 3:
        raise NotKnown
    by = layer.number("upscale_factor")
    channels, *sizes = x.shape[-3:]
    fewer = quotient(channels, by * by) if by else None
    if fewer is None:
        raise Misfit(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={_number(channels)} is not divisible by {by * by}",
            f"PixelShuffle({by}) needs a multiple of {by * by} channels and is given "
            f"{_number(channels)}.",
            f"Give it a multiple of {by * by} channels.",
        )
    return Tensor(shape=(*x.shape[:-3], fewer, *(product([one, by]) for one in sizes)))


def _kept(layer: Given, x: Tensor) -> V:
    return x


_KEEPING = [
    "ReLU",
    "ReLU6",
    "GELU",
    "Tanh",
    "Sigmoid",
    "ELU",
    "SELU",
    "CELU",
    "LeakyReLU",
    "PReLU",
    "SiLU",
    "Mish",
    "Softplus",
    "Softsign",
    "Hardtanh",
    "Hardswish",
    "Hardsigmoid",
    "LogSigmoid",
    "Softmax",
    "LogSoftmax",
    "Softmin",
    "Tanhshrink",
    "Threshold",
    "Identity",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "AlphaDropout",
    "FeatureAlphaDropout",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LocalResponseNorm",
    "RMSNorm",
]

LAYERS: Mapping[str, LayerSignature] = {
    "Linear": LayerSignature(("in_features", "out_features"), _linear, 1),
    **{f"Conv{axes}d": _convolution(axes) for axes in (1, 2, 3)},
    **{f"ConvTranspose{axes}d": _transposed(axes) for axes in (1, 2, 3)},
    **{f"MaxPool{axes}d": pool(axes, average=False) for axes in (1, 2, 3)},
    **{f"AvgPool{axes}d": pool(axes, average=True) for axes in (1, 2, 3)},
    **{f"AdaptiveAvgPool{axes}d": adaptive(axes) for axes in (1, 2, 3)},
    **{f"AdaptiveMaxPool{axes}d": adaptive(axes) for axes in (1, 2, 3)},
    **{f"BatchNorm{axes}d": _batch_norm(axes) for axes in (1, 2, 3)},
    **{
        f"{kind}Pad{axes}d": _padded(axes)
        for kind in ("Zero", "Reflection", "Replication", "Constant")
        for axes in (1, 2, 3)
    },
    "Upsample": LayerSignature(("size", "scale_factor"), resized),
    "GroupNorm": LayerSignature(("num_groups", "num_channels", "eps", "affine"), _group_norm),
    "LayerNorm": LayerSignature(("normalized_shape",), _layer_norm),
    "Embedding": LayerSignature(("num_embeddings", "embedding_dim"), _embedding, 1),
    **{name: _recurrent(name) for name in ("RNN", "LSTM", "GRU")},
    "MultiheadAttention": LayerSignature(("embed_dim", "num_heads"), _attention),
    "TransformerEncoderLayer": LayerSignature(("d_model", "nhead"), _transformer),
    "TransformerDecoderLayer": LayerSignature(("d_model", "nhead"), _kept),
    "Flatten": LayerSignature(("start_dim", "end_dim"), _flatten),
    "PixelShuffle": LayerSignature(("upscale_factor",), _shuffle),
    **dict.fromkeys(_KEEPING, LayerSignature((), _kept, 1)),
}
"""Layers by their name in `torch.nn`."""
