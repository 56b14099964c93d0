"""Outputs of the layers of a model, for every supported format.

`modules` observes torch modules, `scripted` operators of TorchScript, `onnx` those of ONNX, `keras` layers of Keras 3.
The tests know only the name and the kind of a `Layer`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

SEQUENCES = (3,)
"""Numbers of dimensions of sequences, whose channels are last except in models with convolutions over them."""

# Kinds in lower case without underscores: torch, TorchScript, ONNX and Keras differ only in these.
_FINISHING = re.compile(
    r"activation|hard(shrink|sigmoid|swish|tanh)|(leaky|thresholded|p|r)?relu6?|[cs]?elu|gelu|glu|mish|silu|swish"
    r"|(log)?(sigmoid|softmax)|soft(max2d|min|plus|shrink|sign)|tanh(shrink)?|threshold|clip"
    r"|(lazy)?(sync)?(batch|group|instance|layer|rms|unit|localresponse)norm(alization)?([123]d)?|lrn"
)
_DROPOUT = re.compile(r"(feature)?(alpha|gaussian|spatial)?dropout([123]d)?")
_HANDING_ON = re.compile(
    r"cast|clone|contiguous|detach|expand|flatten|identity|permute|reshape|(un)?squeeze|t|to|transpose|view"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a model.

    Attributes:
        name: unique in the model.
        kind: its class or operator, such as ``Conv2d``, ``conv2d`` or ``Conv``.
        container: name of the layer that contains it; empty for a direct part of the model.
        has_parts: whether it consists of other known layers.
    """

    name: str
    kind: str
    container: str = ""
    has_parts: bool = False

    @property
    def depth(self) -> int:
        """Number of layers that contain it."""
        return self.container.count(".") + 1 if self.container else 0

    @property
    def finishes(self) -> bool:
        """Whether it is a normalization or an activation, which belongs to the layer before it."""
        return _FINISHING.fullmatch(self._plain) is not None

    @property
    def drops(self) -> bool:
        """Whether it is dropout."""
        return _DROPOUT.fullmatch(self._plain) is not None

    @property
    def hands_on(self) -> bool:
        """Whether it returns its input values unchanged."""
        return self.drops or _HANDING_ON.fullmatch(self._plain) is not None

    @property
    def _plain(self) -> str:
        return self.kind.replace("_", "").lower()


@dataclass(frozen=True, eq=False, slots=True)
class LayerCall:
    """A layer and its output: real numbers, shape (n, channels, ...)."""

    layer: Layer
    output: Tensor


class Layers(Protocol):
    """The layers of a model, and how to observe their outputs."""

    @property
    def known(self) -> Sequence[Layer]:
        """Return all observable layers."""

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """Return the outputs of the model, and each call of a wanted layer that returns one tensor, in order of completion."""


def calls_of(
    seen: Iterable[tuple[Layer, Any]], count: int, channels_last: Collection[int] = SEQUENCES
) -> list[LayerCall]:
    """Return layer outputs with channels second; skip outputs that are not real tensors with one row per input.

    Args:
        seen: layers with their outputs, shape (n, ...).
        count: n, number of inputs.
        channels_last: numbers of dimensions of outputs whose channels are last.
    """
    return [
        LayerCall(layer, output.movedim(-1, 1) if output.ndim in channels_last else output)
        for layer, output in seen
        if isinstance(output, Tensor)
        and output.is_floating_point()
        and output.ndim > 1
        and len(output) == count
        and 0 not in output.shape[1:]
    ]
