"""Finds the root cause of a failed job in its logs.

`Diagnoser` holds the expensive parts (the catalogue and the scanner) and diagnoses any
number of jobs; `diagnose` is a shortcut for one job. Both are loaded on first use, because reading a
stored `Diagnosis` requires neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochzero.lazy_exports import export_lazily

if TYPE_CHECKING:
    from epochzero.diagnose.catalog import Catalog as Catalog
    from epochzero.diagnose.catalog import Signature as Signature
    from epochzero.diagnose.catalog import builtin as builtin
    from epochzero.diagnose.catalog import load_folder as load_folder
    from epochzero.diagnose.diagnoser import Diagnoser as Diagnoser
    from epochzero.diagnose.diagnoser import LogRead as LogRead
    from epochzero.diagnose.diagnoser import diagnose as diagnose
    from epochzero.diagnose.facts import Facts as Facts
    from epochzero.diagnose.facts import find_facts as find_facts
    from epochzero.diagnose.facts import read_facts as read_facts
    from epochzero.diagnose.model import Diagnosis as Diagnosis

_ROOMS = {
    "epochzero.diagnose.catalog": ("Catalog", "Signature", "builtin", "load_folder"),
    "epochzero.diagnose.diagnoser": ("Diagnoser", "LogRead", "diagnose"),
    "epochzero.diagnose.facts": ("Facts", "find_facts", "read_facts"),
    "epochzero.diagnose.model": ("Diagnosis",),
}

export_lazily(__name__, _ROOMS)
