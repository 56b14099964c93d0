"""EpochZero finds failures of deep-learning jobs, and what caused them.

>>> import epochzero
>>> diagnosis = epochzero.diagnose("job/logs")          # doctest: +SKIP
>>> diagnosis.category, diagnosis.root.line             # doctest: +SKIP
('tensor_mismatch', 148)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.errors import CatalogError, EpochZeroError, InputError

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis, Facts, diagnose

__version__ = "0.1.0"

__all__ = [
    "CatalogError",
    "Diagnosis",
    "EpochZeroError",
    "Facts",
    "InputError",
    "__version__",
    "diagnose",
]


def __getattr__(name: str) -> object:
    """Loads a room when it is first used: starting up must stay fast."""
    if name in ("Diagnosis", "Facts", "diagnose"):
        import importlib

        room = importlib.import_module("epochzero.diagnose")
        value = getattr(room, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'epochzero' has no attribute {name!r}")
