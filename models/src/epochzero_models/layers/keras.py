"""Layers of Keras 3 on its torch backend.

Keras does not call torch's hooks. During a batch, the ``call`` method of a wanted layer is replaced by one that also
records the output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from torch import Tensor

from epochzero_models.layers import Layer, LayerCall, calls_of


class KerasLayers:
    """The layers of a Keras model, and of models within it, as ``inner.dense``."""

    def __init__(self, model: Any) -> None:
        self._model = model
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
            raw = self._model(inputs)
        finally:
            for _, value in calls:
                del vars(value)["call"]
        return raw, calls_of(seen, len(inputs), self._channels_last)


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
