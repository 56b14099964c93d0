"""Text for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.formats import OutputFormat

if TYPE_CHECKING:
    from epochzero.check import CheckResult
    from epochzero.diagnose import Diagnosis
    from epochzero.locate import Ranking
    from epochzero.store.queries import JobSummary


class _TextFormat(OutputFormat):
    def findings(self, found: CheckResult, *, folder: Path, verbose: bool, seconds: float) -> None:
        from epochzero.cli.render_findings import lines

        _echo(lines(found, folder, verbose, seconds))

    def diagnoses(self, found: Iterable[Diagnosis], *, top: int, many: bool) -> None:
        from epochzero.cli.render_diagnosis import lines

        for number, diagnosis in enumerate(found):
            if number:
                click.echo()
            _echo(lines(diagnosis, top))

    def ranking(self, found: Ranking, *, explain: bool) -> None:
        from epochzero.cli.render_ranking import lines

        _echo(lines(found, explain))

    def jobs(self, found: Sequence[JobSummary]) -> None:
        from epochzero.cli.render_job import listing

        _echo(listing(found, now=time.time()))


def _echo(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


FORMAT = _TextFormat()
