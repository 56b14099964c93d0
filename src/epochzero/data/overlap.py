"""Records that come twice and should not: in two splits, or under two labels.

Of each split the 100,000 records with the smallest hashes are kept. What both keep is compared, so
that up to there the count is exact; beyond, it is that of a uniform sample of the records, scaled up
(bottom-k sketch; Cohen and Kaplan, "Summarizing data using bottom-k sketches", PODC 2007). A label is
not part of a record. Where rows repeat within a table, as those of a few small columns do, neither
says anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from epochzero.data.formats import Batch, Faults, relative
from epochzero.data.source import TableSource, read, split_of

KEPT = 100_000
# Tables in which a larger share of the rows repeat are not compared.
REPEATED = 0.05
CHUNK = 1 << 20

Place = tuple[Path, int]


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A record of the sample: where it is and its label."""

    place: Place
    label: Any


@dataclass(frozen=True, slots=True)
class Overlap:
    """Records of one table that are in another too, or in the same one under another label.

    Attributes:
        first, second: names of the tables; training data come first.
        count: how many different records both have.
        first_file, first_record, second_file, second_record: one of them.
    """

    first: str
    second: str
    count: int
    first_file: str
    first_record: int
    second_file: str
    second_record: int


def overlaps(
    sources: Sequence[TableSource], labels: Mapping[str, str], root: Path
) -> Iterator[Overlap]:
    """What tables of different splits, in the same format, have in common, and each under two labels.

    Args:
        sources: the tables.
        labels: name of the label's column by name of the table; empty where there is none.
        root: the data set's own path.
    """
    splits = sorted((source for source in sources if split_of(source.name)), key=_training_first)
    pairs = [
        (first.name, second.name)
        for first, second in combinations(splits, 2)
        if first.format == second.format and split_of(first.name) != split_of(second.name)
    ]
    paired = {name for pair in pairs for name in pair}
    kept: dict[str, dict[bytes, SampleRecord]] = {}
    for source in sources:
        label = labels.get(source.name, "")
        if source.name in paired or label:
            kept[source.name], conflicts = _smallest(source, label, root)
            if conflicts:
                yield _overlap(source.name, source.name, len(conflicts), *conflicts[0], root)
    for first, second in pairs:
        if shared := _shared(kept[first], kept[second]):
            yield _overlap(first, second, *shared, root)


def _overlap(
    first: str, second: str, count: int, left: SampleRecord, right: SampleRecord, root: Path
) -> Overlap:
    (first_file, first_record), (second_file, second_record) = left.place, right.place
    names = relative(first_file, root), relative(second_file, root)
    return Overlap(first, second, count, names[0], first_record, names[1], second_record)


def _training_first(source: TableSource) -> tuple[bool, str]:
    return split_of(source.name) != "train", source.name


def _smallest(
    source: TableSource, label: str, root: Path
) -> tuple[dict[bytes, SampleRecord], list[tuple[SampleRecord, SampleRecord]]]:
    """The records with the smallest hashes, and pairs with two labels; none where many repeat."""
    kept: dict[bytes, SampleRecord] = {}
    conflicts: list[tuple[SampleRecord, SampleRecord]] = []
    seen = repeated = 0
    limit = b"\xff" * 9
    for batch in read(source, root, Faults()):
        classes = batch.columns.get(label) if label else None
        for index, key in enumerate(_hashes(batch, source, label)):
            if key < limit:
                record = SampleRecord(
                    batch.place(index), None if classes is None else classes[index]
                )
                seen += 1
                if (first := kept.setdefault(key, record)) is not record:
                    repeated += 1
                    if first.label != record.label:
                        conflicts.append((first, record))
        if len(kept) > 2 * KEPT:
            kept = {key: kept[key] for key in sorted(kept)[:KEPT]}
            limit = max(kept)
    if repeated > REPEATED * seen and not source.format.record_is_file:
        return {}, []
    return {key: kept[key] for key in sorted(kept)[:KEPT]}, conflicts


def _hashes(batch: Batch, source: TableSource, label: str) -> Iterator[bytes]:
    """8 bytes for each record: of a file its content, of a row its values except the label."""
    if source.format.record_is_file:
        for file in batch.files:
            with file.open("rb") as handle:
                digest = hashlib.blake2b(digest_size=8)
                while block := handle.read(CHUNK):
                    digest.update(block)
            yield digest.digest()
        return
    columns = [values for name, values in batch.columns.items() if name != label]
    for row in zip(*columns, strict=True):
        yield hashlib.blake2b(repr(row).encode("utf-8", "replace"), digest_size=8).digest()


def _shared(
    first: dict[bytes, SampleRecord], second: dict[bytes, SampleRecord]
) -> tuple[int, SampleRecord, SampleRecord] | None:
    """How many records are in both, and one of them in each."""
    both = first.keys() & second.keys()
    if not both:
        return None
    # Where records were left out, those below the smaller of both limits are a uniform sample.
    ends = [int.from_bytes(max(kept)) for kept in (first, second) if len(kept) == KEPT]
    share = min(ends, default=1 << 64) / (1 << 64)
    data = min(both, key=lambda key: second[key].place)
    return round(len(both) / share), first[data], second[data]
