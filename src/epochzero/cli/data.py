"""``epochzero data``: profiles, validates, synthesizes and samples data sets."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epochzero.cli.group import CommandGroup
from epochzero.cli.layout import counted, plain, shorten, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import OutputFile, echo_json, file_option, format_option, seed_option
from epochzero.errors import writing

if TYPE_CHECKING:
    from epochzero.data import ColumnProfile, DataFinding, DataTable, Profile


MOST_SHOWN = 5

_DATA = click.argument("data", metavar="PATH", type=click.Path(path_type=Path))
_LABEL = click.option(
    "--label", metavar="COLUMN", help="Label column.  [default: detected by name]"
)
_SEED = seed_option()
_COUNT = click.option(
    "-n",
    "count",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Records per table.",
)
_FILES = click.option(
    "--sample",
    "most_files",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read a random sample of at most N files per table.",
)


@click.group(cls=CommandGroup, name="data")
def command() -> None:
    """Profile, validate, synthesize and sample data sets.

    PATH is a file or directory of CSV, TSV, JSON, JSON lines, Parquet, text, NumPy arrays, images or
    WAV audio. It is never modified. `profile` and `validate` also accept a torch-style data set as MODULE:ATTRIBUTE,
    which the `python` on PATH imports in a sandboxed process.

    \b
    epochzero data profile train/ -o profile.json
    epochzero data profile train:dataset -o dataset.json
    epochzero data validate test/ --profile profile.json
    epochzero data synthesize profile.json -n 100 -o made/
    epochzero data sample train/ -n 100 -o small/
    """


@command.command(name="profile")
@_DATA
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=OutputFile(),
    help="Write the profile to FILE and print a summary.  [default: print the profile]",
)
@_LABEL
@_FILES
def make_profile(
    data: Path, output: Path | None, label: str | None, most_files: int | None
) -> None:
    """Create a profile of the data in PATH.

    A profile contains counts, ranges, quantiles, classes, lengths and encodings. It contains no free
    text, only label classes and short values that occur at least 5 times.

    Exit code 0 if the profile was written, 2 if the input is invalid.
    """
    from epochzero.data import profile, profile_items

    if _is_object(data):
        found = profile_items(str(data), _items(data), label=label)
    else:
        with _progress() as progress:
            found = profile(data, label=label, most_files=most_files, on_progress=progress)
    text = _json(found)
    if output is None:
        click.echo(text, nl=False)
        for table in found.tables:
            _write_faults(table, err=True)
        return
    with writing(output):
        output.write_text(text, encoding="utf-8")
    for table in found.tables:
        _write_table(table)
    for note in found.notes:
        click.echo(wrapped("Note", note))
    click.echo(f"{output}: {len(text):,} bytes", err=True)


def _is_object(data: Path) -> bool:
    """Whether it is ``module:attribute`` rather than a path."""
    return re.fullmatch(r"[\w.]+:[\w.]+", str(data)) is not None and not data.exists()


def _items(data: Path) -> list[Mapping[str, Any]]:
    """Return items of a data set that Python code creates."""
    from epochzero.check.dryrun.dataset import draw_items

    return draw_items(str(data), Path.cwd(), dict(os.environ))


def _json(found: Profile) -> str:
    """Return JSON with one line per column, so that profiles can be compared by eye."""
    written = dict(found.to_dict())
    tables = written.pop("tables")
    lines = []
    for table in tables:
        columns = ",\n   ".join(json.dumps(column) for column in table.pop("columns"))
        lines.append(f'{json.dumps(table)[:-1]}, "columns": [\n   {columns}\n  ]}}')
    head = json.dumps(written)[:-1]
    return head + ', "tables": [\n  ' + ",\n  ".join(lines) + "\n]}\n"


def _write_table(table: DataTable) -> None:
    files = f", {table.files:,} files" if table.files > 1 else ""
    title = f"{table.name}  {table.format}, {table.records:,} records{files}"
    click.echo(click.style(plain(title), bold=True))
    width = min(24, max((len(column.name) for column in table.columns), default=0))
    for column in table.columns:
        name = f"{shorten(column.name, width):<{width}}"
        label = " (label)" if column.name == table.label else ""
        click.echo(plain(f"  {name}  {column.kind:<9}{_described(column)}{label}").rstrip())
    _write_faults(table, err=False)


def _write_faults(table: DataTable, *, err: bool) -> None:
    for fault in table.faults:
        record = f" record {fault.record:,}" if fault.record else ""
        text = f"  {fault.count:,} x {fault.kind}: {fault.file}{record} {fault.message}"
        click.echo(plain(text).rstrip(), err=err)


def _described(column: ColumnProfile) -> str:
    """Return a one-line description of a column."""
    parts = []
    if column.categories and column.kind != "number":
        named = [f"{shorten(name, 20)} {count:,}" for name, count in column.categories]
        more = f" and {len(named) - MOST_SHOWN} more" if len(named) > MOST_SHOWN else ""
        parts.append(", ".join(named[:MOST_SHOWN]) + more)
    elif column.numbers is not None and column.kind != "date":
        numbers = column.numbers
        parts.append(f"{numbers.min:,.6g} to {numbers.max:,.6g}, mean {numbers.mean:,.6g}")
    if column.lengths is not None:
        unit = "characters" if column.kind == "text" else "long"
        parts.append(f"{column.lengths.min:,.0f} to {column.lengths.max:,.0f} {unit}")
    if column.shape is not None:
        parts.append(f"{column.dtype} {list(column.shape)}")
    if column.unique:
        parts.append("unique")
    if column.missing:
        parts.append(f"{column.missing / column.count:.1%} missing")
    return "; ".join(parts)


@command.command(name="validate")
@_DATA
@file_option("--profile", "known", required=True, help="Profile to compare with.")
@format_option("Output format.")
@_FILES
def make_validation(data: Path, known: Path, form: str, most_files: int | None) -> None:
    """Compare the data in PATH with a profile and list the differences, worst first.

    Exit code 0 if there are no errors, 1 if there are errors, 2 if the input is invalid.
    """
    from epochzero.data import profile_items, read_profile, validate, validate_items

    expected = read_profile(known)
    if _is_object(data):
        label = expected.tables[0].label or None
        found = validate_items(profile_items(str(data), _items(data), label=label), expected)
    else:
        with _progress() as progress:
            found = validate(data, expected, most_files=most_files, on_progress=progress)
    errors = sum(finding.severity == "error" for finding in found.findings)
    if form == "json":
        echo_json(found.to_dict())
    else:
        for finding in found.findings:
            _write_finding(finding)
        for note in found.notes:
            click.echo(wrapped("Note", note))
        warnings = len(found.findings) - errors
        title = "DIFFERS" if found.findings else "CONFORMS"
        counts = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        click.echo(wrapped(title, f"{counts}; {counted(found.records, 'record')} read"))
    sys.exit(1 if errors else 0)


def _write_finding(finding: DataFinding) -> None:
    place = finding.file or finding.table
    if finding.record:
        place += f":{finding.record}"
    color = "red" if finding.severity == "error" else "yellow"
    severity = click.style(finding.severity, fg=color)
    click.echo(
        f"{click.style(plain(place), bold=True)}  {severity}  {finding.kind}"
        + plain(f"  {finding.column}").rstrip()
    )
    click.echo(plain(f"    {finding.message}"))


@command.command(name="synthesize")
@click.argument("known", metavar="PROFILE", type=click.Path(path_type=Path, dir_okay=False))
@_COUNT
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("synthesized"),
    show_default=True,
    help="Output directory.",
)
@click.option(
    "--corner",
    "corners",
    multiple=True,
    metavar="NAME,..",
    help="Corner cases to generate, or none.  [default: all]",
)
@_SEED
def make_synthesis(
    known: Path, count: int, output: Path, corners: tuple[str, ...], seed: int
) -> None:
    """Generate data that conform to PROFILE, and corner cases, each in its own directory.

    Only classes and categories named in the profile are copied. The same seed gives the same files.

    \b
    epochzero data synthesize profile.json -n 64 -o made/ --corner longest,single-class

    Exit code 0 if the data were written, 2 if the profile is invalid.
    """
    from epochzero.data import CORNERS, read_profile, synthesize

    named = [name.strip() for text in corners for name in text.split(",") if name.strip()]
    chosen = [name for name in named if name != "none"] if corners else None
    for folder in synthesize(read_profile(known), output, count=count, seed=seed, corners=chosen):
        about = CORNERS.get(folder.name, "like the data of the profile")
        click.echo(f"{plain(str(folder))}: {about}")


@command.command(name="sample")
@_DATA
@_COUNT
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Output directory, outside PATH.",
)
@_LABEL
@_SEED
def make_sample(data: Path, count: int, output: Path, label: str | None, seed: int) -> None:
    """Draw a small sample of the data in PATH that retains rare cases.

    The sample contains every class and category, the extreme numbers, the shortest and longest texts, and
    missing values, even if this requires more than N records. The same seed gives the same sample.

    Exit code 0 if the sample was written, 2 if the input is invalid.
    """
    from epochzero.data import sample

    with _progress() as progress:
        drawn = sample(data, output, count=count, seed=seed, label=label, on_progress=progress)
    for each in drawn:
        click.echo(
            plain(
                f"{each.table}: {each.drawn:,} of {each.records:,} records,"
                f" {each.corners:,} of them corner cases"
            )
        )


@contextmanager
def _progress() -> Iterator[Callable[[str, int], None]]:
    """Yield a callback for the number of records read from a table."""
    with line() as shown:
        yield lambda table, records: shown.show(f"records of {plain(table)}", records)
