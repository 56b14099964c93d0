"""What a training program imports: so that `epochzero run` knows exactly how far it is, and to be watched.

>>> from epochzero.integrations import LightningCallback            # doctest: +SKIP
>>> trainer = lightning.Trainer(callbacks=[LightningCallback()])    # doctest: +SKIP

For a loop written by hand: ``epochzero.progress(step=step, steps=10_000, loss=loss.item())``. Without
`epochzero run` that does nothing. ``epochzero.watch(model, optimizer)`` and the callbacks called
``...Watch`` look for faults of the training itself; those called ``...FitMemory`` survive
out-of-memory, as ``epochzero.memory`` does for a loop. A framework is imported when its callback is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from epochzero.integrations.reporting import progress

if TYPE_CHECKING:
    from epochzero.integrations import memory
    from epochzero.integrations.keras import KerasCallback, KerasWatch
    from epochzero.integrations.lightning import (
        LightningCallback,
        LightningFitMemory,
        LightningWatch,
    )
    from epochzero.integrations.loss_guard import guard
    from epochzero.integrations.transformers import (
        TransformersCallback,
        TransformersFitMemory,
        TransformersWatch,
    )
    from epochzero.integrations.watching import Watch, watch, watch_tensor

__all__ = [
    "KerasCallback",
    "KerasWatch",
    "LightningCallback",
    "LightningFitMemory",
    "LightningWatch",
    "TransformersCallback",
    "TransformersFitMemory",
    "TransformersWatch",
    "Watch",
    "guard",
    "memory",
    "progress",
    "watch",
    "watch_tensor",
]

_MODULES = {
    "keras": ("KerasCallback", "KerasWatch"),
    "lightning": ("LightningCallback", "LightningFitMemory", "LightningWatch"),
    "loss_guard": ("guard",),
    "transformers": ("TransformersCallback", "TransformersFitMemory", "TransformersWatch"),
    "watching": ("Watch", "watch", "watch_tensor"),
}


def __getattr__(name: str) -> object:
    """Loads a callback, and with it its framework."""
    if name == "memory":
        return import_module("epochzero.integrations.memory")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"epochzero.integrations.{module}"), name)
    raise AttributeError(f"module 'epochzero.integrations' has no attribute {name!r}")
