"""Many changes as columns: a change is made when it is asked for, so that reading them costs little."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from epochzero import zstd
from epochzero.code.words import BagList, ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray


FORMAT_VERSION = 3
_COMPRESSION = 3
_ALIGNMENT = 8


class Change(NamedTuple):
    """A commit that is no merge.

    Attributes:
        commit: its full hash.
        time: when it was committed, in seconds since the epoch.
        author_hash: stands for the author; the address itself is not kept.
        message: the first 600 characters of subject and body.
        files: paths after the change, those that it deleted included.
        renames: old and new path of each file that it moved.
        is_fix: whether the first 200 characters of the message speak of a fault.
    """

    commit: str
    time: int
    author_hash: str
    message: str
    files: tuple[str, ...]
    renames: tuple[tuple[str, str], ...]
    is_fix: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """What of changes is numbers. Paths are numbers too; those of change ``n`` are
    ``bounds[n]:bounds[n + 1]``.
    """

    times: NDArray[np.int64]
    fixes: NDArray[np.bool_]
    file_bounds: NDArray[np.int64]
    files: NDArray[np.int32]
    rename_bounds: NDArray[np.int64]
    old: NDArray[np.int32]
    new: NDArray[np.int32]


_ARRAYS = tuple(field.name for field in fields(_Numbers))
_KINDS = (np.int64, np.bool_, np.int64, np.int32, np.int64, np.int32, np.int32)
_BAG_KINDS = (np.int64, np.uint32, np.uint16, np.uint32)


class Changes(Sequence[Change]):
    """A sequence of changes.

    Attributes:
        paths: all paths, as `Change.files` and `Change.renames` have them.
        times: `Change.time` of each, int64.
        fixes: `Change.is_fix` of each.
        bags: the words of each message.
    """

    def __init__(
        self,
        commits: Sequence[str],
        authors: Sequence[str],
        messages: Sequence[str],
        paths: Sequence[str],
        numbers: _Numbers,
        bags: BagList,
    ) -> None:
        self._commits, self._authors, self._messages = commits, authors, messages
        self._numbers = numbers
        self.paths = paths
        self.bags = bags

    @classmethod
    def of(cls, changes: Sequence[Change]) -> Changes:
        """The columns of some changes."""
        number: dict[str, int] = {}

        def numbered(paths: Iterator[str]) -> NDArray[np.int32]:
            return np.array([number.setdefault(path, len(number)) for path in paths], np.int32)

        messages = [change.message for change in changes]
        numbers = _Numbers(
            np.array([change.time for change in changes], np.int64),
            np.array([change.is_fix for change in changes], np.bool_),
            _bounds([len(change.files) for change in changes]),
            numbered(path for change in changes for path in change.files),
            _bounds([len(change.renames) for change in changes]),
            numbered(old for change in changes for old, _ in change.renames),
            numbered(new for change in changes for _, new in change.renames),
        )
        commits = [change.commit for change in changes]
        authors = [change.author_hash for change in changes]
        return cls(commits, authors, messages, list(number), numbers, BagList.of(messages))

    @property
    def times(self) -> NDArray[np.int64]:
        return self._numbers.times

    @property
    def fixes(self) -> NDArray[np.bool_]:
        return self._numbers.fixes

    # -- As a sequence -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._commits)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Changes: ...
    def __getitem__(self, index: int | slice) -> Change | Changes:
        """A change; a slice is `Changes` again."""
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        at = range(len(self))[index]
        numbers, paths = self._numbers, self.paths
        renamed = slice(numbers.rename_bounds[at], numbers.rename_bounds[at + 1])
        old, new = numbers.old[renamed].tolist(), numbers.new[renamed].tolist()
        return Change(
            self._commits[at],
            int(numbers.times[at]),
            self._authors[at],
            self._messages[at],
            tuple([paths[n] for n in self.files(at).tolist()]),
            tuple([(paths[o], paths[n]) for o, n in zip(old, new, strict=True)]),
            bool(numbers.fixes[at]),
        )

    def __eq__(self, other: object) -> bool:
        """Whether the other holds the same changes in the same order."""
        return isinstance(other, Sequence) and len(self) == len(other) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def take(self, rows: NDArray[np.int64]) -> Changes:
        """Some of the changes, in the order given."""
        numbers, chosen = self._numbers, rows.tolist()
        files, file_bounds = ranges(numbers.file_bounds, rows)
        renames, rename_bounds = ranges(numbers.rename_bounds, rows)
        return Changes(
            [self._commits[n] for n in chosen],
            [self._authors[n] for n in chosen],
            [self._messages[n] for n in chosen],
            self.paths,
            _Numbers(
                numbers.times[rows],
                numbers.fixes[rows],
                file_bounds,
                numbers.files[files],
                rename_bounds,
                numbers.old[renames],
                numbers.new[renames],
            ),
            self.bags.take(rows),
        )

    def joined(self, other: Changes) -> Changes:
        """The changes of both, the other's behind."""
        number = {path: n for n, path in enumerate(self.paths)}
        here = np.array([number.setdefault(p, len(number)) for p in other.paths], np.int32)
        mine, theirs = self._numbers, other._numbers
        return Changes(
            [*self._commits, *other._commits],
            [*self._authors, *other._authors],
            [*self._messages, *other._messages],
            list(number),
            _Numbers(
                np.concatenate([mine.times, theirs.times]),
                np.concatenate([mine.fixes, theirs.fixes]),
                _behind(mine.file_bounds, theirs.file_bounds),
                np.concatenate([mine.files, here[theirs.files]]),
                _behind(mine.rename_bounds, theirs.rename_bounds),
                np.concatenate([mine.old, here[theirs.old]]),
                np.concatenate([mine.new, here[theirs.new]]),
            ),
            self.bags.joined(other.bags),
        )

    def latest_first(self) -> Changes:
        """The changes by time; those of one second stay in their order."""
        return self.take(np.argsort(-self.times, kind="stable"))

    # -- Paths ---------------------------------------------------------------------------------

    def files(self, at: int) -> NDArray[np.int32]:
        """The numbers of the paths of one change."""
        bounds = self._numbers.file_bounds
        return self._numbers.files[bounds[at] : bounds[at + 1]]

    @cached_property
    def file_counts(self) -> NDArray[np.int64]:
        """How many paths each change has."""
        return np.diff(self._numbers.file_bounds)

    @cached_property
    def today(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Each change with each of its files, by the name that the file has after the first change
        of all: the number of the change, rising, and that of the path, each pair once.

        The changes must come latest first.
        """
        numbers = self._numbers
        named = np.arange(len(self.paths), dtype=np.int32)
        present = np.empty_like(numbers.files)
        done = 0
        # Between two changes that moved files the names stay, so that all there are looked up at once.
        for at in np.flatnonzero(np.diff(numbers.rename_bounds)).tolist():
            end = numbers.file_bounds[at + 1]
            present[done:end] = named[numbers.files[done:end]]
            done = end
            for n in range(numbers.rename_bounds[at], numbers.rename_bounds[at + 1]):
                named[numbers.old[n]] = named[numbers.new[n]]
        present[done:] = named[numbers.files[done:]]
        change = np.repeat(np.arange(len(self)), self.file_counts)
        pairs = np.unique(change << 32 | present)
        return pairs >> 32, pairs.astype(np.int32)

    @cached_property
    def moved(self) -> Mapping[str, str]:
        """For each path that a file was moved from, latest first, the name that it came to have."""
        names: dict[str, str] = {}
        for old, new in zip(self._numbers.old.tolist(), self._numbers.new.tolist(), strict=True):
            before, after = self.paths[old], self.paths[new]
            names.setdefault(before, names.get(after, after))
        return names

    # -- On disk -------------------------------------------------------------------------------

    def to_bytes(self, **extra: object) -> bytes:
        """The form on disk; `from_bytes` reads it.

        Args:
            extra: JSON values to store with it.
        """
        arrays = [getattr(self._numbers, name) for name in _ARRAYS]
        arrays += [self.bags.bounds, self.bags.hashes, self.bags.counts, self.bags.totals]
        texts = "\0".join([*self._commits, *self._authors, *self._messages, *self.paths])
        text = texts.encode("utf-8", "surrogateescape")
        head = [FORMAT_VERSION, extra, len(self), len(text), [len(array) for array in arrays]]
        line = json.dumps(head).encode() + b"\n"
        parts = [*map(_padded, (line, *(array.tobytes() for array in arrays))), text]
        options: dict[int, int] = {
            zstd.CompressionParameter.compression_level: _COMPRESSION,
            zstd.CompressionParameter.checksum_flag: 1,
        }
        return zstd.compress(b"".join(parts), options=options)

    @classmethod
    def from_bytes(cls, data: bytes) -> tuple[Changes, dict[str, Any]]:
        """What `to_bytes` wrote, with the JSON values.

        Raises:
            ValueError: the bytes are of another version or damaged.
        """
        try:
            whole = zstd.decompress(data)
        except zstd.ZstdError as error:
            raise ValueError(f"damaged history: {error}") from error
        start = whole.find(b"\n") + 1
        head = json.loads(whole[:start] or whole)
        if head[:1] != [FORMAT_VERSION]:
            raise ValueError("unsupported version of the history")
        _, extra, n, length, sizes = head
        arrays: list[NDArray[Any]] = []
        at = _aligned(start)
        for kind, size in zip((*_KINDS, *_BAG_KINDS), sizes, strict=True):
            arrays.append(np.frombuffer(whole, kind, size, at))
            at = _aligned(at + arrays[-1].nbytes)
        texts = whole[at : at + length].decode("utf-8", "surrogateescape").split("\0")
        numbers, bags = _Numbers(*arrays[: len(_KINDS)]), BagList(*arrays[len(_KINDS) :])
        commits, authors, messages = texts[:n], texts[n : 2 * n], texts[2 * n : 3 * n]
        return cls(commits, authors, messages, texts[3 * n :], numbers, bags), extra


def _bounds(sizes: Sequence[int]) -> NDArray[np.int64]:
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def _behind(bounds: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([bounds, others[1:] + bounds[-1]])


def _aligned(at: int) -> int:
    """The next place at which any number may begin."""
    return -(-at // _ALIGNMENT) * _ALIGNMENT


def _padded(data: bytes) -> bytes:
    return data.ljust(_aligned(len(data)), b"\0")
