"""The files that are searched, with what is known of them at one moment: text, history, reports.

Nothing later than that moment is in it: the snapshot, the history and the past reports are cut
there by whoever builds the corpus.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from epochzero.code import (
    Bag,
    Cache,
    Changes,
    File,
    History,
    Parsed,
    Snapshot,
    is_test,
    is_vendored,
    language_of,
    parse_snapshot,
)
from epochzero.code.words import BagList, ranges, words
from epochzero.errors import InputError
from epochzero.locate.index import Floats, Index, SearchResult, Sets, matches
from epochzero.locate.query import PARTS, Query
from epochzero.locate.report import PastReport

CODE_LANGUAGES = frozenset(
    {"python", "c", "cpp", "cuda", "java", "go", "javascript", "typescript", "tsx"}
)


MADE_OF_HISTORY = (
    "change_messages",
    "commits",
    "changed",
    "past",
    "former_by_stem",
    "_touched",
)
MOST_COMMITS = 6000
MOST_MESSAGES = 60
"""So many messages of a file's changes are read, the latest first."""
MOST_CELLS = 4_000_000
"""So many pairs of a word and a file are weighed, if that leaves a query with `FEWEST_WORDS`; each
needs some 100 bytes while it is."""
FEWEST_WORDS = 200


@lru_cache(maxsize=200_000)
def bag_of(text: str) -> Bag:
    """The words of a message, which come again with every revision of a repository."""
    return Bag.of(words(text))


def searched(snapshot: Snapshot, *, languages: frozenset[str] = CODE_LANGUAGES) -> list[File]:
    """The files of a snapshot in which a bug is searched for: source code without tests and without
    copies of other projects.
    """
    return [
        file
        for file in snapshot.files
        if language_of(file.path) in languages
        and not is_test(file.path)
        and not is_vendored(file.path)
    ]


def _parts_of(path: str) -> tuple[str, ...]:
    return tuple(path.rpartition(".")[0].split("/"))


class Corpus:
    """Source files and what is known of them.

    Args:
        paths: of the files, from the top of the repository.
        parsed: the files, in the same order.
        history: the changes that led here; None where it is not known.
        past: reports that were closed before, with the files that their fixes changed.
        snapshot: where the files' content can be read; None where it is not at hand.

    Attributes:
        reported: ``past`` as it was given.
    """

    def __init__(
        self,
        paths: Sequence[str],
        parsed: Sequence[Parsed],
        history: History | None = None,
        past: Sequence[PastReport] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self.parsed = tuple(parsed)
        self.history = history
        self.reported = tuple(past)
        self.snapshot = snapshot
        self.index = Index(self.parsed)
        self._found: tuple[Query | None, SearchResult | None] = (None, None)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        cache: Cache | None = None,
        *,
        history: History | None = None,
        past: Sequence[PastReport] = (),
        languages: frozenset[str] = CODE_LANGUAGES,
        workers: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Corpus:
        """The corpus of a snapshot's source files.

        Raises:
            InputError: a file cannot be read.
        """
        files = searched(snapshot, languages=languages)
        parsed = parse_snapshot(snapshot, files, cache, workers, on_progress)
        return cls([file.path for file in files], parsed, history, past, snapshot)

    def __len__(self) -> int:
        return len(self.paths)

    def with_known(self, history: History | None, past: Sequence[PastReport]) -> Corpus:
        """The same files at another moment: with other changes and past reports."""
        corpus = copy(self)  # shares the index
        for name in MADE_OF_HISTORY:
            vars(corpus).pop(name, None)
        corpus.history = history
        corpus.reported = tuple(past)
        return corpus

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """The number and the content of each file; those too large to be code are left out.

        Raises:
            InputError: a file cannot be read, or the corpus was made without a snapshot.
        """
        if self.snapshot is None:
            raise InputError("this corpus contains only parsed files, not their text")
        wanted = [file for file in self.snapshot.files if file.path in self.number]
        for file, content in self.snapshot.read(wanted):
            yield self.number[file.path], content

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each path."""
        return {path: n for n, path in enumerate(self.paths)}

    @cached_property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The folders and the stem of each path."""
        return tuple(map(_parts_of, self.paths))

    @cached_property
    def by_stem(self) -> Mapping[str, tuple[int, ...]]:
        """The files of each stem."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for n, parts in enumerate(self.parts):
            found[parts[-1]].append(n)
        return {stem: tuple(numbers) for stem, numbers in found.items()}

    @cached_property
    def path_bags(self) -> Bags:
        """The words of each path."""
        return Bags.of(BagList.of([" ".join(parts) for parts in self.parts]))

    def narrowed(self, query: Query) -> Query:
        """The query without its least telling words, where all would take too much memory: every
        word takes some of it for every file.
        """
        most = max(FEWEST_WORDS, MOST_CELLS // max(1, len(self)))
        if len(query.terms) <= most:
            return query
        often = self.index.files_with(query.hashes)
        rarity = np.where(often > 0, np.log1p(len(self) / np.maximum(1, often)), 0)
        relevance = query.weights[:, PARTS.index("all")] * rarity
        best = np.argsort(-relevance, kind="stable")[:most]
        return replace(query, only=frozenset(query.terms[n] for n in best.tolist()))

    def find(self, query: Query) -> SearchResult:
        """Where the words of a query occur; the result for the last query is cached."""
        if self._found[0] is not query or self._found[1] is None:
            self._found = (query, self.index.find(query.hashes))
        found = self._found[1]
        assert found is not None
        return found

    def path_counts(self, query: Query) -> Floats:
        """How often each word of a query occurs in each path, (documents, words)."""
        return self.path_bags.counts(query)

    @cached_property
    def path_lengths(self) -> Floats:
        """Words in each path."""
        return self.path_bags.lengths

    @cached_property
    def past(self) -> tuple[PastReport, ...]:
        """`reported`, with the names that files have now for those that were moved after the fix."""
        history = self.history
        if history is None:
            return self.reported
        return tuple(
            past
            if all(path in self.number for path in past.fixed)
            else replace(past, fixed=tuple(dict.fromkeys(map(self._name_now, past.fixed))))
            for past in self.reported
        )

    def _name_now(self, path: str) -> str:
        return path if path in self.number or not self.history else self.history.name_of(path)

    @cached_property
    def former_by_stem(self) -> Mapping[str, Sequence[tuple[tuple[str, ...], int]]]:
        """The former names of files that were moved, by their stems: folders and stem, and the file."""
        moved = self.history.changes.moved if self.history else {}
        found: defaultdict[str, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
        for former, name in moved.items():
            if name in self.number and former not in self.number:
                parts = _parts_of(former)
                found[parts[-1]].append((parts, self.number[name]))
        return found

    @cached_property
    def change_messages(self) -> MessageWords:
        """The words of the messages of each file's latest changes."""
        file, change = self._touched
        changes = self.history.changes if self.history else Changes.of(())
        # Each file's changes are together, the latest first.
        latest = np.arange(len(file)) - np.searchsorted(file, file) < MOST_MESSAGES
        return MessageWords(changes.bags, file[latest], change[latest], len(self))

    @cached_property
    def commits(self) -> tuple[Changes, Bags]:
        """The latest changes, and the words of their messages."""
        latest = self.history.changes[:MOST_COMMITS] if self.history else Changes.of(())
        return latest, Bags.of(latest.bags)

    @cached_property
    def changed(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Every change of every file: the file's number, the time, and whether it was a fix."""
        file, change = self._touched
        changes = self.history.changes if self.history else Changes.of(())
        return file, changes.times[change].astype(np.float64), changes.fixes[change]

    @cached_property
    def _touched(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every change of every file: both numbers, file after file, the latest first."""
        if self.history is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return self.history.touching(self.paths)

    @cached_property
    def defined(self) -> Sets:
        """The names of the functions and classes of each file."""
        return Sets([parsed.defined for parsed in self.parsed])

    @cached_property
    def classes(self) -> Sets:
        """The names of the classes of each file."""
        return Sets([parsed.classes for parsed in self.parsed])

    @cached_property
    def used(self) -> Sets:
        """The identifiers in the code of each file."""
        return Sets([parsed.names for parsed in self.parsed])

    @cached_property
    def phrases(self) -> Sets:
        """The word trigrams in the string literals of each file."""
        return Sets([parsed.phrases for parsed in self.parsed])

    @cached_property
    def modules(self) -> Mapping[str, int]:
        """The file of each dotted module name: whole, and without up to two folders in front, as
        sources often lie below ``src`` or ``python``.
        """
        found: dict[str, int] = {}
        for skipped in range(3):
            for n, parts in enumerate(self.parts):
                named = parts[:-1] if parts[-1] == "__init__" else parts
                if len(named) > skipped:
                    found.setdefault(".".join(named[skipped:]), n)
        return found

    @cached_property
    def imports(self) -> tuple[tuple[int, ...], ...]:
        """For each file the files of this corpus that it imports."""
        return tuple(self._imports(n) for n in range(len(self)))

    def _imports(self, number: int) -> tuple[int, ...]:
        package = self.parts[number][:-1]
        found: set[int] = set()
        for module, names, level in self.parsed[number].imports:
            base = module
            if level:
                base_parts = package[: len(package) - level + 1]
                base = ".".join((*base_parts, *([module] if module else [])))
            within = [self.modules.get(f"{base}.{name}") for name in names]
            targets = [n for n in within if n is not None]
            # What is taken from a package's own file counts for that; a submodule for itself.
            if not targets and (whole := self.modules.get(base)) is not None:
                targets = [whole]
            found.update(targets)
        return tuple(sorted(found - {number}))

    @cached_property
    def imported_by(self) -> tuple[tuple[int, ...], ...]:
        """For each file the files that import it."""
        found: list[list[int]] = [[] for _ in self.paths]
        for n, targets in enumerate(self.imports):
            for target in targets:
                found[target].append(n)
        return tuple(map(tuple, found))

    @cached_property
    def folders(self) -> Mapping[str, tuple[int, ...]]:
        """The files of each folder."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for n, path in enumerate(self.paths):
            found[path.rpartition("/")[0]].append(n)
        return {folder: tuple(numbers) for folder, numbers in found.items()}


class Bags:
    """Bags of words that are searched together.

    Attributes:
        lengths: words in each, repetitions included.
    """

    def __init__(self, bags: Sequence[Bag]) -> None:
        self.lengths: Floats = np.array([bag.total for bag in bags], np.float32)
        self._row = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
        none = [np.zeros(0, np.uint32)]
        self._held = np.concatenate([bag.hashes for bag in bags] or none)
        self._often = np.concatenate([bag.counts for bag in bags] or none)

    @classmethod
    def of(cls, bags: BagList) -> Bags:
        """The bags of a list."""
        found = cls(())
        found.lengths = bags.totals.astype(np.float32)
        found._row = np.repeat(np.arange(len(bags)), np.diff(bags.bounds))
        found._held, found._often = bags.hashes, bags.counts
        return found

    def counts(self, query: Query) -> Floats:
        """How often each word of a query occurs in each bag, (bags, words)."""
        counts = np.zeros((len(self.lengths), len(query.terms)), np.float32)
        row, word, often = self.occurrences(query)
        counts[row, word] = often
        return counts

    def occurrences(
        self, query: Query
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]:
        """Where words of a query occur: the bag, the word, and how often."""
        entry, word = matches(self._held, query.hashes)
        return self._row[entry], word, self._often[entry]


class MessageWords:
    """The words of the messages of each file's changes.

    A message counts for all files of its change, and is looked up once for all of them.

    Args:
        messages: of all changes.
        file: a file's number, with
        change: the number of one of its changes.
        files: how many files there are.

    Attributes:
        lengths: words in all messages of each file.
    """

    def __init__(
        self,
        messages: BagList,
        file: NDArray[np.int64],
        change: NDArray[np.int64],
        files: int,
    ) -> None:
        self.lengths: Floats = np.bincount(file, messages.totals[change], files).astype(np.float32)
        self._messages = Bags.of(messages)
        order = np.argsort(change, kind="stable")
        self._file = file[order]
        self._bounds = np.searchsorted(change[order], np.arange(len(messages) + 1))

    def counts(self, query: Query) -> Floats:
        """How often each word of a query occurs in the messages of each file, (files, words)."""
        change, word, often = self._messages.occurrences(query)
        entries, bounds = ranges(self._bounds, change)
        times = np.diff(bounds)
        shape = (len(self.lengths), len(query.terms))
        place = self._file[entries] * shape[1] + np.repeat(word, times)
        counts = np.bincount(place, np.repeat(often, times), shape[0] * shape[1])
        return counts.astype(np.float32).reshape(shape)
