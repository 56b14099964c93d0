"""``epochzero study``: reports about many failures or bugs, with tables and figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epochzero import taxonomy
from epochzero.cli.group import CommandGroup
from epochzero.cli.layout import counted, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import format_option, out_option, seed_option, write_study
from epochzero.cli.store_options import moment, opened, store_option
from epochzero.cli.study_import import command as import_command
from epochzero.cli.study_localization import command as localization_command
from epochzero.cli.study_simulate import command as simulate_command
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.study import FailureCorpus


_LAST = re.compile(r"last (\d+) (minute|hour|day|week)s?")
_SQLITE = b"SQLite format 3\0"


@click.group(cls=CommandGroup, name="study")
def command() -> None:
    """Generate a report of many failures or bugs: tables, figures and statistics.

    \b
    epochzero study failures "last 30 days" --out report/
    epochzero study failures logs/ --out report/
    epochzero study localization --reports reports.jsonl --repos clones/ --out report/
    epochzero study import --issues issues.json --repo CLONE --out reports.jsonl
    epochzero study simulate --out report/
    """


command.add_command(import_command)
command.add_command(simulate_command)
command.add_command(localization_command)


@command.command(name="failures")
@click.argument("source")
@out_option()
@seed_option("Random seed of the bootstrap.")
@format_option("Output format of the summary.")
@store_option
def failures(source: str, out: Path, seed: int, form: str, store: str | None) -> None:
    """Analyze the failures in SOURCE: categories, causes, phases, costs and recurrences.

    SOURCE is "last 30 days" (of the store), a store (an SQLite file or postgresql://...), a directory of logs (each subdirectory and each log in it is a job), the output of `epochzero diagnose
    --out` (a directory or s3://...), or a file of records with a log or a diagnosis: JSON Lines (.jsonl,
    .jsonl.gz) or Parquet.

    \b
    epochzero study failures "last 30 days" --out report/
    epochzero study failures jobs.db --out report/
    epochzero study failures failures.jsonl.gz --out report/ --format json

    DIR receives report.html, report.md, each table as CSV and Parquet, and each figure as SVG and PNG.

    Exit code 0 if the report was written, even if there are no failures; 2 if the input is invalid.
    """
    from epochzero.reports.figures import require_matplotlib
    from epochzero.study import study_failures

    require_matplotlib()
    corpus = _read(source, store)
    studied = study_failures(corpus, seed=seed)
    write_study(studied, out, form, _write_text)


def _read(source: str, store: str | None) -> FailureCorpus:
    from epochzero.scale import is_result
    from epochzero.study import read_diagnoses, read_file, read_folder

    path = Path(source)
    if (last := _LAST.fullmatch(source)) and not path.exists():
        return _read_store(store, moment(f"{last[1]}{last[2][0]}"))
    if source.startswith("s3://") or is_result(path):
        with line() as shown:
            return read_diagnoses(source, partial(shown.show, "rows read"))
    if "://" in source or _is_sqlite(path):
        return _read_store(source, None)
    with line() as shown:
        if path.is_dir():
            return read_folder(path, partial(shown.show, "jobs read"))
        if path.is_file():
            return read_file(path, partial(shown.show, "records read"))
    raise InputError(
        f'{source}: no such file or directory; SOURCE is "last 30 days", a store, a directory of logs, or a '
        "file of failures"
    )


def _read_store(address: str | None, since: float | None) -> FailureCorpus:
    from epochzero.store.queries import JobFilter
    from epochzero.study import read_database

    with opened(address) as database, line() as shown:
        wanted = JobFilter(since=since)
        return read_database(database, wanted, partial(shown.show, "failed attempts read"))


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _write_text(summary: Mapping[str, Any]) -> None:
    left = sum(summary["left_out"].values())
    failures = f"{summary['failures']:,}, of {counted(summary['read'], 'record')}"
    click.echo(wrapped("Failures", failures + (f"; {left:,} could not be used" if left else "")))
    for label, key, terms in (
        ("Dimensions", "dimensions", taxonomy.dimensions()),
        ("Categories", "categories", taxonomy.categories()),
    ):
        groups = sorted(summary[key].items(), key=lambda pair: -pair[1]["count"])[:5]
        if groups:
            shares = (
                f"{terms[word].title} {100 * group['share']:.1f}\xa0%" for word, group in groups
            )
            click.echo(wrapped(label, ", ".join(shares)))
    for word, value in summary["agreement"].items():
        kappa = value["kappa"]["value"]
        agreed = (
            f"{word}: {100 * value['accuracy']['value']:.1f}\xa0% of {value['labelled']:,} agree"
        )
        click.echo(wrapped("Labels", agreed + ("" if kappa is None else f", kappa {kappa:.2f}")))
    for why, count in sorted(summary["left_out"].items(), key=lambda pair: -pair[1]):
        click.echo(wrapped("Not used", f"{count:,}: {why}"))
    for what, count in sorted(summary["unusable"].items(), key=lambda pair: -pair[1]):
        click.echo(wrapped("Not known", f"{count:,}: {what}"))
    for title, why in summary["missing"].items():
        click.echo(wrapped("Left out", f"{title}: {why}"))
