"""EpochZero finds failures of deep-learning jobs, and what caused them.

>>> import epochzero
>>> diagnosis = epochzero.diagnose("job/logs")          # doctest: +SKIP
>>> diagnosis.category, diagnosis.root.line             # doctest: +SKIP
('tensor_mismatch', 148)
>>> ranking = epochzero.locate("Crash in the loader", ".")  # doctest: +SKIP
>>> ranking.items[0].path                               # doctest: +SKIP
'src/data/loader.py'
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from epochzero.errors import CatalogError, EpochZeroError, InputError

if TYPE_CHECKING:
    from epochzero.check import Checked, Target, check
    from epochzero.diagnose import Diagnosis, Facts, diagnose
    from epochzero.errors import TrainingFault
    from epochzero.integrations import Watch, memory, progress, watch, watch_tensor
    from epochzero.locate import Locator, Ranking, Report, locate
    from epochzero.run import run
    from epochzero.run.replay import replay
    from epochzero.run.watch.live import WatchOptions

__version__ = "0.1.0"

__all__ = [
    "CatalogError",
    "Checked",
    "Diagnosis",
    "EpochZeroError",
    "Facts",
    "InputError",
    "Locator",
    "Ranking",
    "Report",
    "Target",
    "TrainingFault",
    "Watch",
    "WatchOptions",
    "__version__",
    "check",
    "diagnose",
    "locate",
    "memory",
    "progress",
    "replay",
    "run",
    "watch",
    "watch_tensor",
]

_ROOMS = {
    "epochzero.check": ("Checked", "Target", "check"),
    "epochzero.diagnose": ("Diagnosis", "Facts", "diagnose"),
    "epochzero.errors": ("TrainingFault",),
    "epochzero.integrations": ("Watch", "memory", "progress", "watch", "watch_tensor"),
    "epochzero.locate": ("Locator", "Ranking", "Report", "locate"),
    "epochzero.run": ("run",),
    "epochzero.run.watch.live": ("WatchOptions",),
    "epochzero.run.replay": ("replay",),
}


def __getattr__(name: str) -> object:
    """Loads a room when it is first used: starting up must stay fast."""
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(room), name)
    raise AttributeError(f"module 'epochzero' has no attribute {name!r}")


class _Package(ModuleType):
    """This package: `diagnose` and `locate` are what they are called for, whatever was imported.

    A room and its function share a name, and loading a room, be it only for
    ``from epochzero.locate import Locator``, puts its module where the function belongs.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _ROOMS.get(f"epochzero.{name}", ()):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
