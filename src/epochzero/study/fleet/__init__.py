"""A simulated fleet of jobs: what its failures cost, and how much of that the tools would save.

studied = study_fleet(assumptions(), [1000, 10_000], days=30)
write_report(studied.report, Path("report/"))
"""

from __future__ import annotations

from epochzero.study.fleet.assumptions import FleetAssumption, assumptions, with_own
from epochzero.study.fleet.model import Outcome, expected, simulated
from epochzero.study.fleet.report import study_fleet
