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

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero.check import CheckResult, Finding, Limits, Target, Unknown, check
    from epochzero.cli.jupyter import load_ipython_extension, unload_ipython_extension
    from epochzero.diagnose import Diagnosis, Facts, diagnose
    from epochzero.errors import CatalogError, EpochZeroError, InputError, TrainingFault
    from epochzero.integrations import Watch, guard, memory, progress, watch, watch_tensor
    from epochzero.locate import Locator, Ranking, Report, locate
    from epochzero.run import run
    from epochzero.run.replay import replay
    from epochzero.run.replay.model import ReplayResult
    from epochzero.run.session import RunResult
    from epochzero.run.watch.live import WatchOptions

__version__ = "0.1.0"

_ROOMS = {
    "epochzero.check": ("CheckResult", "Finding", "Limits", "Target", "Unknown", "check"),
    "epochzero.cli.jupyter": ("load_ipython_extension", "unload_ipython_extension"),
    "epochzero.diagnose": ("Diagnosis", "Facts", "diagnose"),
    "epochzero.errors": ("CatalogError", "EpochZeroError", "InputError", "TrainingFault"),
    "epochzero.integrations": ("Watch", "guard", "memory", "progress", "watch", "watch_tensor"),
    "epochzero.locate": ("Locator", "Ranking", "Report", "locate"),
    "epochzero.run": ("run",),
    "epochzero.run.watch.live": ("WatchOptions",),
    "epochzero.run.replay": ("replay",),
    "epochzero.run.replay.model": ("ReplayResult",),
    "epochzero.run.session": ("RunResult",),
}

export_lazily(__name__, _ROOMS)
