"""What the layers of a model give on the way to its outputs, whatever the model is made with.

`modules` sees the modules of torch, `scripted` the operators of TorchScript, `onnx` those of ONNX, `keras` the layers
of Keras 3. The tests know a `Layer` by its name and its kind alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

__all__ = ["SEQUENCES", "Layer", "LayerCall", "Layers", "calls_of"]

SEQUENCES = (3,)
"""Dimensions of sequences, which have their channels last, but in models that convolve over them."""

# Of kinds in small letters without _: torch, TorchScript, ONNX and Keras differ in these only.
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
    """A step of a model.

    Attributes:
        name: by which it is told apart.
        kind: its class or operator, such as ``Conv2d``, ``conv2d`` or ``Conv``.
        container: name of the layer that it is a part of; empty for a part of the model itself.
        has_parts: whether it consists of layers that are known, too.
    """

    name: str
    kind: str
    container: str = ""
    has_parts: bool = False

    @property
    def depth(self) -> int:
        """In how many other layers it stands."""
        return self.container.count(".") + 1 if self.container else 0

    @property
    def finishes(self) -> bool:
        """Whether it is a normalization or an activation, which only finishes the layer before it."""
        return _FINISHING.fullmatch(self._plain) is not None

    @property
    def drops(self) -> bool:
        """Whether it is dropout."""
        return _DROPOUT.fullmatch(self._plain) is not None

    @property
    def hands_on(self) -> bool:
        """Whether it gives the numbers that it is given."""
        return self.drops or _HANDING_ON.fullmatch(self._plain) is not None

    @property
    def _plain(self) -> str:
        return self.kind.replace("_", "").lower()


@dataclass(frozen=True, eq=False, slots=True)
class LayerCall:
    """A layer and what it gave: real numbers, shape (n, channels, ...)."""

    layer: Layer
    output: Tensor


class Layers(Protocol):
    """The layers of a model and how to see what they give."""

    @property
    def known(self) -> Sequence[Layer]:
        """All layers that can be asked for."""

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """The outputs of the model, and each call of a wanted layer that gives one tensor, as they end."""


def calls_of(
    seen: Iterable[tuple[Layer, Any]], count: int, channels_last: Collection[int] = SEQUENCES
) -> list[LayerCall]:
    """What layers gave, with channels second; without what is no tensor of real numbers for each input.

    Args:
        seen: layers with what they gave, shape (n, ...).
        count: n, of inputs.
        channels_last: numbers of dimensions of outputs whose channels are the last one.
    """
    return [
        LayerCall(layer, output.movedim(-1, 1) if output.ndim in channels_last else output)
        for layer, output in seen
        if isinstance(output, Tensor)
        and output.is_floating_point()
        and output.ndim > 1
        and len(output) == count
        and output.numel()
    ]
