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

from typing import TYPE_CHECKING

from epochzero.errors import CatalogError, EpochZeroError, InputError
from epochzero.lazy_exports import load_late

if TYPE_CHECKING:
    from epochzero.check import CheckResult, Target, check
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
    "CheckResult",
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
    "epochzero.check": ("CheckResult", "Target", "check"),
    "epochzero.diagnose": ("Diagnosis", "Facts", "diagnose"),
    "epochzero.errors": ("TrainingFault",),
    "epochzero.integrations": ("Watch", "memory", "progress", "watch", "watch_tensor"),
    "epochzero.locate": ("Locator", "Ranking", "Report", "locate"),
    "epochzero.run": ("run",),
    "epochzero.run.watch.live": ("WatchOptions",),
    "epochzero.run.replay": ("replay",),
}

load_late(__name__, _ROOMS)
