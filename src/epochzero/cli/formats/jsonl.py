"""JSON Lines: one object per job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from epochzero.cli.formats import OutputFormat
from epochzero.cli.output import echo_json

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis
    from epochzero.store.queries import JobSummary


class _JsonLines(OutputFormat):
    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        for diagnosis in found:
            echo_json(diagnosis.to_dict(), indent=None)

    def jobs(self, found: Sequence[JobSummary]) -> None:
        for job in found:
            echo_json(asdict(job), indent=None)


FORMAT = _JsonLines()
