"""Layers of Keras 3.

Keras does not call torch's hooks. During a batch, the ``call`` method of a wanted layer is replaced by one that also
records the output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from epochzero_models.layers import Layer, LayerCall, calls_of


class KerasLayers:
    """The layers of a Keras model, and of models within it, as ``inner.dense``.

    Args:
        model: of Keras.
        convert: makes torch tensors of outputs, where Keras runs on another backend.
    """

    def __init__(self, model: Any, convert: Callable[[Any], Any] | None = None) -> None:
        self._model = model
        self._convert = convert
        self._found = {layer.name: (layer, value) for layer, value in _layers(model, "")}
        formats = {getattr(value, "data_format", None) for _, value in self._found.values()}
        self._channels_last = () if "channels_first" in formats else (3, 4, 5)

    @property
    def known(self) -> Sequence[Layer]:
        """Return all layers except the model itself."""
        return tuple(layer for layer, _ in self._found.values())

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """Return the outputs, and the calls of the wanted layers."""
        seen: list[tuple[Layer, Any]] = []
        calls = [self._found[name] for name in wanted if name in self._found]
        for layer, value in calls:
            # Not set as an attribute, which Keras would track.
            vars(value)["call"] = _keeping(layer, value.call, seen)
        try:
            raw = self._model(inputs if self._convert is None else inputs.numpy())
        finally:
            for _, value in calls:
                del vars(value)["call"]
        if self._convert is not None:
            raw = self._convert(raw)
            seen = [(layer, self._convert(output)) for layer, output in seen]
        return raw, calls_of(seen, len(inputs), self._channels_last)


def from_backend(output: Any) -> Any:
    """Return the tensors of JAX or TensorFlow as tensors of torch; structures keep their form."""
    if isinstance(output, tuple | list):
        return [from_backend(item) for item in output]
    if isinstance(output, dict):
        return {name: from_backend(item) for name, item in output.items()}
    return torch.from_numpy(np.array(output)) if hasattr(output, "__array__") else output


def _keeping(
    layer: Layer, own: Callable[..., Any], seen: list[tuple[Layer, Any]]
) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        output = own(*args, **options)
        seen.append((layer, output))
        return output

    return call


def _layers(model: Any, container: str) -> Iterator[tuple[Layer, Any]]:
    for layer in model.layers:
        if type(layer).__name__ == "InputLayer":
            continue
        name = f"{container}.{layer.name}".lstrip(".")
        has_parts = bool(getattr(layer, "layers", ()))
        yield Layer(name, type(layer).__name__, container, has_parts), layer
        if has_parts:
            yield from _layers(layer, name)
