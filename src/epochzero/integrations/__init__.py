"""What a training program imports so that `epochzero run` knows exactly how far it is.

>>> from epochzero.integrations import LightningCallback            # doctest: +SKIP
>>> trainer = lightning.Trainer(callbacks=[LightningCallback()])    # doctest: +SKIP

For a loop written by hand: ``epochzero.progress(step=step, steps=10_000, loss=loss.item())``. Without
`epochzero run` all of it does nothing. A framework is imported when its callback is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from epochzero.integrations.reporting import progress

if TYPE_CHECKING:
    from epochzero.integrations.keras import KerasCallback
    from epochzero.integrations.lightning import LightningCallback
    from epochzero.integrations.transformers import TransformersCallback

__all__ = ["KerasCallback", "LightningCallback", "TransformersCallback", "progress"]

_MODULES = {
    "KerasCallback": "epochzero.integrations.keras",
    "LightningCallback": "epochzero.integrations.lightning",
    "TransformersCallback": "epochzero.integrations.transformers",
}


def __getattr__(name: str) -> object:
    """Loads a callback, and with it its framework."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'epochzero.integrations' has no attribute {name!r}")
