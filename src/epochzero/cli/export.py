"""``epochzero export``: exports the store as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from epochzero.cli.store_options import filter_options, opened, store_option
from epochzero.store.export import FORMATS, export
from epochzero.store.queries import JobFilter


@click.command(name="export")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@filter_options
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="File format.",
)
@store_option
def command(folder: Path, form: str, store: str | None, **wanted: Any) -> None:
    """Export jobs, attempts, failures, samples and related tables to DIR, one file per table.

    \b
    epochzero export jobs/ --since 7d
    epochzero export jobs/ --state failed --format csv

    Secrets were redacted when the jobs ran. Logs are not exported; `epochzero show JOB --log` prints the
    log of a job.
    """
    with opened(store) as database:
        counts = export(database, folder, form, JobFilter(**wanted))
    for name, count in counts.items():
        click.echo(f"{folder / name}.{form}  {count:,} row{'' if count == 1 else 's'}", err=True)
