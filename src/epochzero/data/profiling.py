"""Learns what a data set is like: one pass over its files, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochzero.data.formats import Batch, Faults
from epochzero.data.lines import DAMAGED
from epochzero.data.measures import measures_of
from epochzero.data.model import DataTable, Profile
from epochzero.data.relations import RecordSample
from epochzero.data.source import CLASS, TableSource, find_sources, read
from epochzero.data.summary import ColumnSummary, classes_of
from epochzero.errors import InputError

# Told the name of a table and how many of its records were read.
OnProgress = Callable[[str, int], None]

# What people call the column that is to be predicted, where records are rows.
LABELS = ("label", "labels", "target", "class", "y")


def silent(table: str, records: int) -> None:
    """Tells nobody."""


def profile(
    path: str | Path,
    *,
    label: str | None = None,
    most_files: int | None = None,
    on_progress: OnProgress = silent,
) -> Profile:
    """What the data in a file or folder are like.

    Args:
        path: a file or folder; it is only read.
        label: the column that is to be predicted. All its classes are named, and numbers are also
            summarized by class. When None, a column called ``label``, ``labels``, ``target``,
            ``class`` or ``y``, or the folders of images and sounds.
        most_files: how many files of each table to read, drawn at random; None for all.
        on_progress: called with a table's name and its number of records so far.

    Raises:
        InputError: there are no data of a known format, a format needs a package that is missing,
            or no table has the column ``label``.
    """
    root = Path(path)
    sources = find_sources(root, most_files)
    labels = LABELS if label is None else (label,)
    tables = tuple(learn(source, root, labels, on_progress) for source in sources)
    if label is not None and not any(table.label for table in tables):
        raise InputError(f"{path} has no column {label!r}")
    notes = left_out(sources)
    return Profile(tables, complete=not notes, notes=notes)


def left_out(sources: Sequence[TableSource]) -> tuple[str, ...]:
    """What was not read of the tables, for people."""
    return tuple(
        f"{source.name}: {source.left_out:,} of {source.left_out + len(source.files):,} files"
        " were not read"
        for source in sources
        if source.left_out
    )


def learn(
    source: TableSource,
    root: Path,
    labels: Sequence[str],
    on_progress: OnProgress = silent,
    *,
    categories: Collection[str] = (),
    most_records: int | None = None,
) -> DataTable:
    """What the data of one table are like.

    Args:
        source: its files.
        root: the data set's own path.
        labels: names of the column to be predicted; the first that the table has is it.
        on_progress: called with a table's name and its number of records so far.
        categories: names of columns all values of which are counted, as those of a label are.
        most_records: how many records to read at least; None for all.
    """
    faults = Faults()
    columns: dict[str, ColumnSummary] = {}
    measures: dict[str, ColumnSummary] = {}
    sample = RecordSample()
    records = 0
    target = ""
    for batch in read(source, root, faults):
        target = target or _label_of(batch, source, labels)
        _add(batch, columns, target, source)
        measured = {**measures_of(batch.columns), **batch.measured}
        _measure(batch, measured, measures, target)
        sample.add({**batch.columns, **measured}, len(batch))
        records = max((summary.count for summary in columns.values()), default=0)
        on_progress(source.name, records)
        if most_records is not None and records >= most_records:
            break
    if not source.format.uneven:
        for summary in columns.values():
            summary.add_missing(records - summary.count)
    profiles = tuple(
        summary.column(every=summary.name == target or summary.name in categories)
        for summary in columns.values()
    )
    computed = tuple(summary.column() for summary in measures.values())
    return DataTable(
        name=source.name,
        format=source.format.name,
        files=len(source.files) + source.left_out,
        records=records,
        columns=profiles,
        label=target,
        details=_details(source),
        faults=faults.counted(root),
        measures=computed,
        relations=sample.relations((*profiles, *computed)),
    )


def _label_of(batch: Batch, source: TableSource, labels: Sequence[str]) -> str:
    if source.format.record_is_file:
        return CLASS if CLASS in batch.columns else ""
    return next((name for name in labels if name in batch.columns), "")


def _add(batch: Batch, columns: dict[str, ColumnSummary], target: str, source: TableSource) -> None:
    before = max((summary.count for summary in columns.values()), default=0)
    classes = classes_of(batch.columns[target]) if target in batch.columns else None
    for name, values in batch.columns.items():
        column = columns.setdefault(name, ColumnSummary(name, texts=source.format.only_texts))
        if not source.format.uneven:
            column.add_missing(before - column.count)
        column.add(values, classes if name != target else None)
        if name == target and not source.format.record_is_file:
            column.add_order(values)


def _measure(
    batch: Batch,
    measured: Mapping[str, Sequence[Any]],
    measures: dict[str, ColumnSummary],
    target: str,
) -> None:
    for name, values in measured.items():
        aligned = target in batch.columns and len(values) == len(batch)
        classes = classes_of(batch.columns[target]) if aligned else None
        measures.setdefault(name, ColumnSummary(name)).add(values, classes)


def _details(source: TableSource) -> tuple[tuple[str, str], ...]:
    """What the first file that can be read says of how it is written."""
    for file in source.files:
        try:
            return tuple(sorted(source.format.describe(file).items()))
        except (OSError, *DAMAGED):
            continue
    return ()
