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
    from epochzero.check import CheckResult as CheckResult
    from epochzero.check import Finding as Finding
    from epochzero.check import Limits as Limits
    from epochzero.check import Target as Target
    from epochzero.check import Unknown as Unknown
    from epochzero.check import check as check
    from epochzero.cli.jupyter import load_ipython_extension as load_ipython_extension
    from epochzero.cli.jupyter import unload_ipython_extension as unload_ipython_extension
    from epochzero.diagnose import Diagnosis as Diagnosis
    from epochzero.diagnose import Facts as Facts
    from epochzero.diagnose import diagnose as diagnose
    from epochzero.errors import CatalogError as CatalogError
    from epochzero.errors import EpochZeroError as EpochZeroError
    from epochzero.errors import InputError as InputError
    from epochzero.errors import TrainingFault as TrainingFault
    from epochzero.integrations import Watch as Watch
    from epochzero.integrations import guard as guard
    from epochzero.integrations import memory as memory
    from epochzero.integrations import progress as progress
    from epochzero.integrations import watch as watch
    from epochzero.integrations import watch_tensor as watch_tensor
    from epochzero.locate import Locator as Locator
    from epochzero.locate import Ranking as Ranking
    from epochzero.locate import Report as Report
    from epochzero.locate import locate as locate
    from epochzero.run import run as run
    from epochzero.run.replay import replay as replay
    from epochzero.run.replay.model import ReplayResult as ReplayResult
    from epochzero.run.session import RunResult as RunResult
    from epochzero.run.watch.live import WatchOptions as WatchOptions

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
