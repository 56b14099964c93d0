"""Layers of a torch module: its submodules, observed by hooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from torch import Tensor, nn

from epochzero_models.layers import SEQUENCES, Layer, LayerCall, calls_of

_OVER_SEQUENCES = (nn.Conv1d, nn.ConvTranspose1d)


class ModuleLayers:
    """The submodules of a module."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._modules = {name: value for name, value in module.named_modules() if name}
        self._layers = {name: _layer(name, layer) for name, layer in self._modules.items()}
        convolved = any(isinstance(layer, _OVER_SEQUENCES) for layer in self._modules.values())
        self._channels_last = () if convolved else SEQUENCES

    @property
    def known(self) -> Sequence[Layer]:
        """Return all modules except the outermost one."""
        return tuple(self._layers.values())

    def run(self, inputs: Tensor, wanted: Collection[str]) -> tuple[Any, list[LayerCall]]:
        """Return the outputs, and the calls of the wanted modules."""
        seen: list[tuple[Layer, Any]] = []
        handles = [
            self._modules[name].register_forward_hook(_keeping(self._layers[name], seen))
            for name in wanted
            if name in self._modules
        ]
        try:
            raw = self._module(inputs)
        finally:
            for handle in handles:
                handle.remove()
        return raw, calls_of(seen, len(inputs), self._channels_last)


def _keeping(layer: Layer, seen: list[tuple[Layer, Any]]) -> Callable[[nn.Module, Any, Any], None]:
    def hook(module: nn.Module, given: Any, output: Any) -> None:
        seen.append((layer, output))

    return hook


def _layer(name: str, module: nn.Module) -> Layer:
    has_parts = next(module.children(), None) is not None
    return Layer(name, type(module).__name__, name.rpartition(".")[0], has_parts)
