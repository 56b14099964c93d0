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
    "KerasCallback": "epochzero.integrations.keras",
    "KerasWatch": "epochzero.integrations.keras",
    "LightningCallback": "epochzero.integrations.lightning",
    "LightningFitMemory": "epochzero.integrations.lightning",
    "LightningWatch": "epochzero.integrations.lightning",
    "TransformersCallback": "epochzero.integrations.transformers",
    "TransformersFitMemory": "epochzero.integrations.transformers",
    "TransformersWatch": "epochzero.integrations.transformers",
    "Watch": "epochzero.integrations.watching",
    "guard": "epochzero.integrations.loss_guard",
    "watch": "epochzero.integrations.watching",
    "watch_tensor": "epochzero.integrations.watching",
}


def __getattr__(name: str) -> object:
    """Loads a callback, and with it its framework."""
    if name == "memory":
        return import_module("epochzero.integrations.memory")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'epochzero.integrations' has no attribute {name!r}")
