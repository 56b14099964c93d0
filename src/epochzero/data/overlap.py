"""Records that two splits share, such as test records that the model was trained on.

Of each split the 100,000 records with the smallest hashes are kept. What both keep is compared, so
that up to there the count is exact; beyond, it is that of a uniform sample of the records, scaled up
(bottom-k sketch; Cohen and Kaplan, "Summarizing data using bottom-k sketches", PODC 2007). Where
records repeat within a split, as those of a few small columns do, that two share some says nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from epochzero.data.formats import Batch, Faults, relative
from epochzero.data.source import TableSource, read, split_of

KEPT = 100_000
# Splits in which a larger share of the records repeat are not compared.
REPEATED = 0.05
CHUNK = 1 << 20

Place = tuple[Path, int]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Records of one table that are in another too.

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


def overlaps(sources: Sequence[TableSource], root: Path) -> Iterator[Overlap]:
    """What tables of different splits, in the same format, have in common."""
    splits = sorted((source for source in sources if split_of(source.name)), key=_training_first)
    pairs = [
        (first, second)
        for first, second in combinations(splits, 2)
        if first.format == second.format and split_of(first.name) != split_of(second.name)
    ]
    needed = {source.name: source for pair in pairs for source in pair}
    kept = {name: _smallest(source, root) for name, source in needed.items()}
    for first, second in pairs:
        if shared := _shared(kept[first.name], kept[second.name]):
            count, one, other = shared
            places = relative(one[0], root), one[1], relative(other[0], root), other[1]
            yield Overlap(first.name, second.name, count, *places)


def _training_first(source: TableSource) -> tuple[bool, str]:
    return split_of(source.name) != "train", source.name


def _smallest(source: TableSource, root: Path) -> dict[bytes, Place]:
    """The places of the records with the smallest hashes; none where records often repeat."""
    kept: dict[bytes, Place] = {}
    seen = repeated = 0
    limit = b"\xff" * 9
    for batch in read(source, root, Faults()):
        for index, key in enumerate(_hashes(batch, source)):
            if key < limit:
                seen += 1
                repeated += key in kept
                kept.setdefault(key, batch.place(index))
        if len(kept) > 2 * KEPT:
            kept = {key: kept[key] for key in sorted(kept)[:KEPT]}
            limit = max(kept)
    if repeated > REPEATED * seen:
        return {}
    return {key: kept[key] for key in sorted(kept)[:KEPT]}


def _hashes(batch: Batch, source: TableSource) -> Iterator[bytes]:
    """8 bytes for each record: of a file its content, of a row its values."""
    if source.format.record_is_file:
        for file in batch.files:
            with file.open("rb") as handle:
                digest = hashlib.blake2b(digest_size=8)
                while block := handle.read(CHUNK):
                    digest.update(block)
            yield digest.digest()
        return
    for row in zip(*batch.columns.values(), strict=True):
        yield hashlib.blake2b(repr(row).encode("utf-8", "replace"), digest_size=8).digest()


def _shared(
    first: dict[bytes, Place], second: dict[bytes, Place]
) -> tuple[int, Place, Place] | None:
    """How many records are in both, and the places of one."""
    both = first.keys() & second.keys()
    if not both:
        return None
    # Where records were left out, those below the smaller of both limits are a uniform sample.
    ends = [int.from_bytes(max(kept)) for kept in (first, second) if len(kept) == KEPT]
    share = min(ends, default=1 << 64) / (1 << 64)
    one = min(both, key=lambda key: second[key])
    return round(len(both) / share), first[one], second[one]
