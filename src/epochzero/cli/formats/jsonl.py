"""JSON Lines: one object per job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from epochzero.cli.formats import OutputFormat

if TYPE_CHECKING:
    from epochzero.diagnose import Diagnosis
    from epochzero.store.queries import JobSummary


class _JsonLines(OutputFormat):
    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        for diagnosis in found:
            click.echo(json.dumps(diagnosis.to_dict(), ensure_ascii=False))

    def jobs(self, found: Sequence[JobSummary]) -> None:
        for job in found:
            click.echo(json.dumps(asdict(job)))


FORMAT = _JsonLines()
