"""Compares data with the profile of others that went well.

The data are profiled themselves, and the two profiles compared; only where they differ in values are
the data read again, to name a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from epochzero.data.comparison import Bad, DataFinding, compare
from epochzero.data.formats import Faults, relative
from epochzero.data.model import DataTable, Profile
from epochzero.data.overlap import Overlap, overlaps
from epochzero.data.profiling import LABELS, OnProgress, learn, left_out, silent
from epochzero.data.source import TableSource, find_sources, read

SCHEMA = "epochzero.data-findings/1"


@dataclass(frozen=True, slots=True)
class Validated:
    """What a validation found.

    Attributes:
        findings: errors first, then by the number of records.
        records: how many were read.
        notes: what was left out.
    """

    findings: tuple[DataFinding, ...]
    records: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        return {"schema": SCHEMA, **asdict(self)}


def validate(
    path: str | Path,
    known: Profile,
    *,
    most_files: int | None = None,
    most_records: int | None = None,
    on_progress: OnProgress = silent,
) -> Validated:
    """How the data in a file or folder differ from those that a profile was made of.

    Args:
        path: a file or folder; it is only read.
        known: what the data should be like.
        most_files: how many files of each table to read, drawn at random; None for all.
        most_records: how many records of each table to read at least, from its beginning; None for
            all. Of a part neither shares nor counts are compared, nor records of several splits.
        on_progress: called with a table's name and its number of records so far.

    Raises:
        InputError: there is no such file or folder, the file has no known format, or a format needs
            a package that is missing.
    """
    root = Path(path)
    labels = tuple(table.label for table in known.tables if table.label)
    sources = find_sources(root, most_files, may_be_empty=True)
    categories = {
        column.name for table in known.tables for column in table.columns if column.categories
    }
    seen = tuple(
        learn(
            source,
            root,
            (*labels, *LABELS),
            on_progress,
            categories=categories,
            most_records=most_records,
        )
        for source in sources
    )
    cut = [found.name for found in seen if most_records and found.records >= most_records]
    findings = list(_unpaired(known, seen))
    notes = [*left_out(sources), *(f"{name}: only the beginning was read" for name in cut)]
    for expected, found, source in _pairs(known, seen, sources):
        whole = found.name not in cut and not source.left_out
        findings += _placed(list(compare(expected, found, whole=whole)), source, root)
        if whole and found.name == expected.name and found.records < expected.records:
            known_records = f"the profile has {expected.records:,}"
            notes.append(f"{found.name}: {found.records:,} records; {known_records}")
    if most_records is None:
        of = {table.name: table.label for table in seen}
        findings += map(_duplicates, overlaps(sources, of, root))
    records = sum(table.records for table in seen)
    return Validated(tuple(sorted(findings, key=order)), records, tuple(notes))


def order(finding: DataFinding) -> tuple[bool, int, str, str, str]:
    """Errors first, then by the number of records."""
    mild = finding.severity != "error"
    return mild, -finding.count, finding.table, finding.column, finding.kind


def _match(found: DataTable, known: Profile) -> DataTable | None:
    """The known table that a table is compared with: of its name, else the one most like it."""
    alike = [table for table in known.tables if table.format == found.format]
    names = {column.name for column in found.columns}
    likest = max(
        alike,
        key=lambda table: (table.name == found.name, len(names & _names(table))),
        default=None,
    )
    if likest is None or len(known.tables) == 1 or likest.name == found.name:
        return likest
    return likest if names & _names(likest) else None


def _names(table: DataTable) -> set[str]:
    return {column.name for column in table.columns}


def _pairs(
    known: Profile, seen: Sequence[DataTable], sources: Sequence[TableSource]
) -> Iterator[tuple[DataTable, DataTable, TableSource]]:
    for found, source in zip(seen, sources, strict=True):
        if (expected := _match(found, known)) is not None:
            yield expected, found, source


def _unpaired(known: Profile, seen: Sequence[DataTable]) -> Iterator[DataFinding]:
    """Tables that only the profile or only the data have; one table alone may be a part."""
    for found in seen:
        if _match(found, known) is None:
            message = f"the profile has no {found.format} data"
            yield DataFinding("warning", "extra_table", found.name, "", message)
    if len(seen) == 1:
        return
    matched = {match.name for found in seen if (match := _match(found, known))}
    for table in known.tables:
        if table.name not in matched:
            yield DataFinding("error", "missing_table", table.name, "", "the table is missing")


def _placed(
    compared: Sequence[tuple[DataFinding, Bad | None]], source: TableSource, root: Path
) -> list[DataFinding]:
    """The findings, each with the first record that it is true of; reads until all are found."""
    done = [finding for finding, bad in compared if bad is None]
    open_ = {finding: bad for finding, bad in compared if bad is not None}
    for batch in read(source, root, Faults()):
        if not open_:
            break
        for finding, bad in list(open_.items()):
            values = batch.columns.get(finding.column, ())
            index = next((n for n, value in enumerate(values) if bad(value)), None)
            if index is not None:
                file, record = batch.place(index)
                name = relative(file, root)
                done.append(replace(finding, file=name, record=record))
                del open_[finding]
    return done + list(open_)


def _duplicates(shared: Overlap) -> DataFinding:
    records = f"{shared.count:,} records also occur" if shared.count > 1 else "a record also occurs"
    where = f"record {shared.first_record:,} of {shared.first_file}"
    if shared.first == shared.second:
        kind, message = "conflicting_labels", f"{records} with another label: {where}"
    else:
        kind, message = "duplicates", f"{records} in {shared.first}, such as {where}"
    return DataFinding(
        "warning", kind, shared.second, "", message,
        shared.second_file, shared.second_record, shared.count,
    )  # fmt: skip
