"""What the layers of a module give on the way to its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

__all__ = ["Call", "recorded"]

Call = tuple[str, nn.Module, Tensor]
"""Name of a module, the module, and what it gave."""


@contextmanager
def recorded(module: nn.Module, wanted: Callable[[str, nn.Module], bool]) -> Iterator[list[Call]]:
    """A list that gets each call of a wanted module, in the order in which they end.

    Only modules that give one tensor are kept. The caller empties the list between batches.
    """
    calls: list[Call] = []

    def hook_of(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(layer: nn.Module, given: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                calls.append((name, layer, output))

        return hook

    handles = [
        layer.register_forward_hook(hook_of(name))
        for name, layer in module.named_modules()
        if name and wanted(name, layer)
    ]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()
