"""Finds the root cause of a failed job in its logs.

`Diagnoser` holds the expensive parts (the catalogue and the scanner) and diagnoses any
number of jobs; `diagnose` is a shortcut for one job. Both are loaded on first use, because reading a
stored `Diagnosis` requires neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero.diagnose.catalog import Catalog, Signature, builtin, load_folder
    from epochzero.diagnose.diagnoser import Diagnoser, LogRead, diagnose
    from epochzero.diagnose.facts import Facts, find_facts, read_facts
    from epochzero.diagnose.model import Diagnosis

_ROOMS = {
    "epochzero.diagnose.catalog": ("Catalog", "Signature", "builtin", "load_folder"),
    "epochzero.diagnose.diagnoser": ("Diagnoser", "LogRead", "diagnose"),
    "epochzero.diagnose.facts": ("Facts", "find_facts", "read_facts"),
    "epochzero.diagnose.model": ("Diagnosis",),
}

export_lazily(__name__, _ROOMS)
