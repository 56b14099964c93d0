"""What is known of one file, and its compact form on disk."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from epochzero.code.words import HIGHEST_COUNT, MEMO_SIZE, Bag, frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray


PARSER_VERSION = 1
"""Goes up with every change of what a parse yields or how it is stored."""

FIELDS = ("whole", "identifiers", "definitions", "comments", "strings", "imports", "card")
"""The parts of a file that have a bag of their own; see `Parsed.bags`."""


class Unit(NamedTuple):
    """A class, function or method.

    Attributes:
        kind: ``class``, ``function`` or ``method``.
        name: its own name.
        qualified: with the units around it, ``Class.method``.
        start, end: first and last line, from 1, with decorators and a comment right above it.
    """

    kind: str
    name: str
    qualified: str
    start: int
    end: int


class Import(NamedTuple):
    """An import, include or require.

    Attributes:
        module: what is imported, as it is written: ``a.b``, ``dir/file.h``, ``./file``.
        names: what is taken from it by name; ``*`` for all.
        level: leading dots of a relative Python import.
    """

    module: str
    names: tuple[str, ...]
    level: int


class Call(NamedTuple):
    """A name that is called: the index of the innermost unit (-1: none) and the last name."""

    unit: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class BagTable:
    """Many bags over one vocabulary: row ``r`` is ``bounds[r]:bounds[r + 1]`` of the columns.

    Attributes:
        vocabulary: hashes of all words of the file: sorted, uint32.
        bounds: uint32, one more than there are rows.
        columns: indices into the vocabulary, rising within a row.
        counts: uint16, one for each column.
        totals: uint32, words in each row, repetitions included.
    """

    vocabulary: NDArray[np.uint32]
    bounds: NDArray[np.uint32]
    columns: NDArray[np.uint16 | np.uint32]
    counts: NDArray[np.uint16]
    totals: NDArray[np.uint32]

    @classmethod
    def of(cls, stream: NDArray[np.uint32], rows: Sequence[NDArray[np.int64] | slice]) -> BagTable:
        """The bags of parts of a stream of words.

        Args:
            stream: hashes of the words, in order.
            rows: which positions of the stream each bag holds.
        """
        vocabulary, place = np.unique(stream, return_inverse=True)
        columns, counts, totals = [], [], []
        for row in rows:
            chosen = place[row]
            counted = np.bincount(chosen, minlength=1)
            found = counted.nonzero()[0]
            columns.append(found)
            counts.append(counted[found])
            totals.append(len(chosen))
        bounds = np.zeros(len(rows) + 1, dtype=np.uint32)
        np.cumsum([len(row) for row in columns], out=bounds[1:])
        return cls(
            vocabulary,
            bounds,
            np.concatenate(columns).astype(_width(len(vocabulary))),
            np.minimum(np.concatenate(counts), HIGHEST_COUNT).astype(np.uint16),
            np.array(totals, dtype=np.uint32),
        )

    def bag(self, row: int) -> Bag:
        """The bag of one row."""
        begin, end = int(self.bounds[row]), int(self.bounds[row + 1])
        counts = self.counts[begin:end]
        counts.flags.writeable = False
        hashes = self.vocabulary[self.columns[begin:end]]
        return Bag(frozen(hashes), counts, int(self.totals[row]))


class _FieldBags(Mapping[str, Bag]):
    """The bags of a file by the names of its fields, made when asked for."""

    __slots__ = ("_table",)

    def __init__(self, table: BagTable) -> None:
        self._table = table

    def __getitem__(self, field: str) -> Bag:
        if field not in FIELDS:
            raise KeyError(field)
        return self._table.bag(FIELDS.index(field))

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)


class _UnitBags(Sequence[Bag]):
    """The bags of a file's units, made when asked for."""

    __slots__ = ("_table",)

    def __init__(self, table: BagTable) -> None:
        self._table = table

    @overload
    def __getitem__(self, index: int) -> Bag: ...
    @overload
    def __getitem__(self, index: slice) -> list[Bag]: ...
    def __getitem__(self, index: int | slice) -> Bag | list[Bag]:
        rows = range(len(FIELDS), len(self._table.totals))[index]
        return self._table.bag(rows) if isinstance(rows, int) else [*map(self._table.bag, rows)]

    def __len__(self) -> int:
        return len(self._table.totals) - len(FIELDS)


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """One file, taken apart.

    Attributes:
        language: what `epochzero.code.languages.refined` says; ``text`` for code that no parser
            accepts.
        lines: how many lines there are.
        units: in the order of their first byte, outer ones before those inside them.
        imports: in the order of the text.
        called: last names of what is called, in the order of the text, each once for each unit;
        callers: the index of the innermost unit of each, -1 for none, int32.
        names: hashes of the exact identifiers in code, without keywords.
        defined: those of the names of units; classes: of classes.
        phrases: hashes of the word trigrams in string literals, as `words.phrases` makes them.
        raises: statements that raise, throw, assert or check.
        table: the bags: `FIELDS`, then the units.
    """

    language: str
    lines: int
    units: tuple[Unit, ...]
    imports: tuple[Import, ...]
    called: tuple[str, ...]
    callers: NDArray[np.int32]
    names: NDArray[np.uint32]
    defined: NDArray[np.uint32]
    classes: NDArray[np.uint32]
    phrases: NDArray[np.uint32]
    raises: int
    table: BagTable

    @property
    def calls(self) -> tuple[Call, ...]:
        """`callers` and `called` together, made when asked for."""
        return tuple(map(Call, self.callers.tolist(), self.called))

    @property
    def bags(self) -> Mapping[str, Bag]:
        """Bags by field.

        ``whole``: all words. ``identifiers``: code without strings and comments. ``definitions``:
        names of units. ``comments``: comments and docstrings. ``strings``: other literals.
        ``imports``: import statements. ``card``: the first 300 characters of the module's docstring
        or head comment, and the names of units.
        """
        return _FieldBags(self.table)

    @property
    def unit_bags(self) -> Sequence[Bag]:
        """For each unit the bag of all its lines; a method counts for its class too."""
        return _UnitBags(self.table)

    def to_bytes(self) -> bytes:
        """The file's form on disk; `from_bytes` reads it."""
        table = self.table
        lines = [(unit.start, unit.end) for unit in self.units]
        arrays: tuple[NDArray[np.generic], ...] = (
            table.vocabulary,
            table.bounds,
            table.totals,
            self.names,
            self.defined,
            self.classes,
            self.phrases,
            np.array(lines, dtype=np.uint32).reshape(-1),
            self.callers,
            table.counts,
            table.columns,
        )
        head = json.dumps(
            [
                self.language,
                self.lines,
                self.raises,
                [unit.kind for unit in self.units],
                [unit.name for unit in self.units],
                [unit.qualified for unit in self.units],
                self.imports,
                self.called,
                [len(array) for array in arrays],
            ],
            separators=(",", ":"),
        ).encode()
        body = b"".join([array.tobytes() for array in arrays])
        checksum = zlib.crc32(body, zlib.crc32(head, _seed(PARSER_VERSION, len(head))))
        return _HEAD.pack(PARSER_VERSION, len(head), checksum) + head + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Parsed:
        """What `to_bytes` wrote.

        Raises:
            ValueError: the bytes are of another version or damaged.
        """
        if len(data) < _HEAD.size:
            raise ValueError("truncated cache entry")
        version, length, checksum = _HEAD.unpack_from(data)
        found = zlib.crc32(memoryview(data)[_HEAD.size :], _seed(version, length))
        if version != PARSER_VERSION or found != checksum:
            raise ValueError("cache entry of another version, or damaged")
        start = _HEAD.size + length
        head = json.loads(data[_HEAD.size : start])
        language, lines, raises, kinds, names, qualified, imports, called, sizes = head
        # A copy of the arrays alone: they keep alive the whole of what they are read from.
        arrays = _arrays(data[start:], sizes)
        bounds = arrays[7].tolist()
        table = BagTable(arrays[0], arrays[1], arrays[10], arrays[9], arrays[2])
        return cls(
            language=language,
            lines=lines,
            units=tuple(
                map(Unit, _same(kinds), _same(names), _same(qualified), bounds[::2], bounds[1::2])
            ),
            imports=tuple([Import(_SAME[module], _same(taken), n) for module, taken, n in imports]),
            called=_same(called),
            callers=arrays[8],
            names=arrays[3],
            defined=arrays[4],
            classes=arrays[5],
            phrases=arrays[6],
            raises=raises,
            table=table,
        )


class _Same(dict[str, str]):
    """One object for all equal names: most names of a repository occur in many of its files."""

    def __missing__(self, name: str) -> str:
        if len(self) >= MEMO_SIZE:
            self.clear()
        self[name] = name
        return name


_SAME = _Same()


def _same(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_SAME.__getitem__, names))


_HEAD = struct.Struct("<HII")
_WIDTHS: tuple[type[np.generic], ...] = (*[np.uint32] * 8, np.int32, np.uint16)


def _seed(version: int, length: int) -> int:
    """The checksum of the fields in front of it, so that damage to them is noticed, too."""
    return zlib.crc32(_HEAD.pack(version, length, 0))


def _width(words: int) -> type[np.uint16 | np.uint32]:
    """The narrowest integer that counts so many words."""
    return np.uint16 if words <= HIGHEST_COUNT else np.uint32


def _arrays(body: bytes, sizes: Sequence[int]) -> list[NDArray[Any]]:
    """The arrays behind the head; they share its memory and are read-only."""
    arrays = []
    start = 0
    for width, size in zip((*_WIDTHS, _width(sizes[0])), sizes, strict=True):
        array = np.frombuffer(body, dtype=width, count=size, offset=start)
        arrays.append(array)
        start += array.nbytes
    return arrays
