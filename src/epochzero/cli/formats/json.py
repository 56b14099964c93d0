"""JSON: the schema of each kind of report is in docs/schemas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.cli.formats import OutputFormat
from epochzero.cli.output import echo_json

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking
    from epochzero.store.queries import JobSummary


class _Json(OutputFormat):
    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        echo_json(found.to_dict())

    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        results = [diagnosis.to_dict() for diagnosis in found]
        value = results if many else results[0]
        echo_json(value)

    def ranking(self, found: Ranking, *, explain: bool) -> None:
        echo_json(found.to_dict())

    def jobs(self, found: Sequence[JobSummary]) -> None:
        echo_json([asdict(job) for job in found])


FORMAT = _Json()
