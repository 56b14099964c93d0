"""Named numbers for a report and the likeliest functions, which the learned ranking combines.

A group of features is one function; each gives columns by name, one number a candidate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from epochzero.code.words import IDENTIFIER, words
from epochzero.locate.features.context import SUMMARY, ranks, share
from epochzero.locate.functions.context import FunctionContext, Occurrences
from epochzero.locate.functions.table import NO_ROWS
from epochzero.locate.index import Floats
from epochzero.locate.query import PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epochzero.code import Unit


Columns = dict[str, Floats]

FAR = 30
"""The distance of a frame that is not there."""
SPREAD = 20
"""Scores of files are scaled between the file at this rank (0) and the best one (1), so that
they mean the same by whatever method."""
_CODE_PARTS = ("all", "summary", "prose", "code")


class Candidates:
    """Some functions against a report.

    Args:
        context: the report and all functions.
        rows: those that are candidates: sorted.
    """

    def __init__(self, context: FunctionContext, rows: NDArray[np.int64]) -> None:
        self.context = context
        self.rows = rows
        self.guess: Floats = context.guess[rows]
        self.document: NDArray[np.int64] = context.table.document[rows]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def units(self) -> Sequence[Unit]:
        """The candidates themselves."""
        units = self.context.table.units
        return [units[row] for row in self.rows.tolist()]

    @cached_property
    def lines(self) -> Occurrences:
        """The words of the query in their lines."""
        return self.context.lines.among(self._place)

    @cached_property
    def names(self) -> Occurrences:
        """The words of the query in their qualified names."""
        return self.context.names.among(self._place)

    @cached_property
    def _place(self) -> NDArray[np.int64]:
        place = np.full(len(self.context.table), -1, np.int64)
        place[self.rows] = np.arange(len(self.rows))
        return place

    @cached_property
    def by_name(self) -> Mapping[str, NDArray[np.int64]]:
        """The candidates of each name."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for number, unit in enumerate(self.units):
            found[unit.name].append(number)
        return {name: np.array(numbers, np.int64) for name, numbers in found.items()}

    @cached_property
    def called(self) -> Sequence[frozenset[str]]:
        """The names that each calls."""
        return [self.context.table.called(row) for row in self.rows.tolist()]

    @cached_property
    def around(self) -> NDArray[np.int64]:
        """The number of the class or function around each; one number for all at the top level of a file."""
        keys = [
            (document, unit.qualified.rpartition(".")[0])
            for document, unit in zip(self.document.tolist(), self.units, strict=True)
        ]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return np.array([numbers[key] for key in keys], np.int64)

    @cached_property
    def of_file(self) -> NDArray[np.int64]:
        """The number of the file of each, among the files that have candidates."""
        return np.unique(self.document, return_inverse=True)[1]


def features_of(candidates: Candidates) -> tuple[tuple[str, ...], Floats]:
    """All features.

    Returns:
        The names of the columns, and the values, (candidates, columns).
    """
    columns: Columns = {}
    for group in _GROUPS:
        columns |= group(candidates)
    for name in _RANKED:
        columns[f"rank_{name}"] = np.log1p(ranks(columns[name]))
        columns[f"file_rank_{name}"] = np.log1p(_ranks_within(columns[name], candidates.of_file))
    values = [np.asarray(column, np.float32) for column in columns.values()]
    return tuple(columns), np.stack(values, axis=1)


# -- Words ---------------------------------------------------------------------------------------


def _lexical(candidates: Candidates) -> Columns:
    """BM25 of each part of the report against the lines and the qualified name."""
    n, weights = len(candidates), candidates.context.query.weights
    columns: Columns = {"guess": candidates.guess}
    for number, part in enumerate(PARTS):
        lines = candidates.lines.scores(weights[:, number], n)
        names = candidates.names.scores(weights[:, number], n)
        columns[f"lines_{part}"] = share(lines)
        columns[f"name_{part}"] = share(names)
        if part in ("all", "summary"):
            columns[f"lines_{part}_plain"] = lines / (float(weights[:, number].sum()) + 1e-6)
            columns[f"file_share_{part}"] = lines / _per(np.add, lines, candidates.of_file)
            columns[f"best_of_file_{part}"] = lines / _per(np.maximum, lines, candidates.of_file)
    once = (weights[:, SUMMARY] > 0).astype(np.float32)
    held = np.unique(candidates.lines.row * len(once) + candidates.lines.word)
    in_title = once[held % max(1, len(once))]
    covered = np.bincount(held // max(1, len(once)), in_title, minlength=n)
    columns["title_covered"] = np.asarray(covered / max(1.0, float(once.sum())), np.float32)
    return columns


def _own_names(candidates: Candidates) -> Columns:
    """How much of a function's own name, and of its enclosing name, occurs in the report."""
    counters = {part: candidates.context.query.words[part] for part in PARTS}
    own = [words(unit.name) for unit in candidates.units]
    outer = [words(unit.qualified.rpartition(".")[0]) for unit in candidates.units]
    columns: Columns = {}
    for part, counts in counters.items():
        columns[f"name_covered_{part}"] = _covered(own, counts)
    for part in ("all", "summary"):
        columns[f"around_covered_{part}"] = _covered(outer, counters[part])
    return columns


def _covered(names: Sequence[Sequence[str]], words: Mapping[str, int]) -> Floats:
    shares = [sum(w in words for w in name) / len(name) if name else 0.0 for name in names]
    return np.array(shares, np.float32)


def _identifiers(candidates: Candidates) -> Columns:
    """Identifiers of the report that are the function's name, around it, or called by it."""
    table, query = candidates.context.table, candidates.context.query
    columns: Columns = {}
    for part in _CODE_PARTS:
        found = query.identifiers[part]
        columns[f"named_{part}"] = np.array(
            [(u.name in found) / len(table.by_name[u.name]) for u in candidates.units], np.float32
        )
        around = [
            found.intersection(IDENTIFIER.findall(u.qualified)[:-1]) for u in candidates.units
        ]
        columns[f"around_named_{part}"] = np.array([bool(held) for held in around], np.float32)
        columns[f"calls_named_{part}"] = _rarity([found & called for called in candidates.called])
    dotted = query.modules
    ends = {".".join(name.split(".")[-2:]) for name in dotted}
    columns["dotted"] = np.array(
        [".".join(u.qualified.split(".")[-2:]) in ends for u in candidates.units], np.float32
    )
    return columns


def _rarity(held: Sequence[frozenset[str]]) -> Floats:
    """The sum over names of one over how many sets hold it."""
    often: defaultdict[str, int] = defaultdict(int)
    for names in held:
        for name in names:
            often[name] += 1
    return np.array([sum(1 / often[name] for name in names) for names in held], np.float32)


# -- Frames --------------------------------------------------------------------------------------


def _frames(candidates: Candidates) -> Columns:
    """Frames of tracebacks in a function, and how far from the innermost."""
    context = candidates.context
    rows = candidates.rows.tolist()
    by_name = [context.framed_by_name.get(row, FAR) for row in rows]
    by_line = [context.framed_by_line.get(row, FAR) for row in rows]
    distance = {f.function: d for d, f in reversed([*enumerate(reversed(context.query.frames), 1)])}
    anywhere = [distance.get(unit.name, FAR) for unit in candidates.units]
    framed = [context.table.called(row) for row in context.framed_by_name]
    called = frozenset[str]().union(*framed)
    names = {frame.function for frame in context.query.frames}
    return {
        "frame_by_name": np.array(by_name, np.float32),
        "frame_by_line": np.array(by_line, np.float32),
        "frame_anywhere": np.array(anywhere, np.float32),
        "called_by_framed": np.array([u.name in called for u in candidates.units], np.float32),
        "calls_framed": np.array([bool(names & c) for c in candidates.called], np.float32),
        "frames": np.full(len(rows), len(context.query.frames), np.float32),
        "frames_here": np.full(len(rows), len(context.framed_by_name), np.float32),
    }


# -- Files ---------------------------------------------------------------------------------------


def _files(candidates: Candidates) -> Columns:
    """What is thought of the file of a function."""
    context, document = candidates.context, candidates.document
    scores = context.files
    ordered = np.sort(scores)[::-1]
    low = float(ordered[min(SPREAD, len(ordered)) - 1])
    relative = (scores - low) / ((float(ordered[0]) - low) or 1.0)
    rank = ranks(scores)
    following = ordered[np.minimum(rank.astype(np.int64) + 1, len(ordered) - 1)]
    gap = (scores - following) / ((float(ordered[0]) - low) or 1.0)
    columns: Columns = {
        "file": np.maximum(relative, -1.0)[document],
        "file_rank": np.log1p(rank)[document],
        "file_gap": gap[document],
        "files": np.full(len(candidates), np.log1p(len(scores)), np.float32),
        "functions_of_file": np.log1p(np.diff(context.table.first))[document],
    }
    for kind in ("frame", "path", "module"):
        strength = np.zeros(len(scores), np.float32)
        for mention in context.mentioned:
            if mention.kind == kind:
                strength[mention.document] = max(strength[mention.document], mention.strength)
        columns[f"file_{kind}"] = strength[document]
    return columns


# -- Neighbours ----------------------------------------------------------------------------------


def _neighbours(candidates: Candidates) -> Columns:
    """The scores of callers, of called functions, and of other functions of the same class or file."""
    n, guess = len(candidates), candidates.guess
    callers, callees, callers_count = (np.zeros(n, np.float32) for _ in range(3))
    for caller, names in enumerate(candidates.called):
        for name in names:
            for callee in candidates.by_name.get(name, NO_ROWS).tolist():
                if callee != caller:
                    share = 1 / len(candidates.by_name[name])
                    callers[callee] = max(callers[callee], guess[caller] * share)
                    callees[caller] = max(callees[caller], guess[callee] * share)
                    callers_count[callee] += 1
    best = max(float(guess.max(initial=0.0)), 1e-6)
    return {
        "callers_best": callers / best,
        "callees_best": callees / best,
        "callers": np.log1p(callers_count),
        **_in_same_class(candidates, best),
    }


def _in_same_class(candidates: Candidates, best: float) -> Columns:
    """The guesses of the other candidates of the same class or, of free functions, file."""
    guess, group = candidates.guess, candidates.around
    order = np.lexsort((-guess, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.bincount(group)
    first = guess[order[starts]]
    second = np.where(size > 1, guess[order[np.minimum(starts + 1, len(order) - 1)]], 0.0)
    is_first = np.zeros(len(guess), np.bool_)
    is_first[order[starts]] = True
    total = np.bincount(group, guess)
    return {
        "beside_best": np.where(is_first, second[group], first[group]) / best,
        "beside_mean": (total[group] - guess) / np.maximum(1, size[group] - 1) / best,
        "beside": np.log1p(size[group] - 1),
        "rank_beside": np.log1p(_ranks_within(guess, group)),
        "guess_share": guess / best,
        "lead": (guess - np.where(is_first, second[group], first[group])) / best,
    }


# -- The function itself -------------------------------------------------------------------------


def _shape(candidates: Candidates) -> Columns:
    """What a function is: its size, its place, its kind of name."""
    units, table = candidates.units, candidates.context.table
    names = [unit.name for unit in units]

    def flags(held: Sequence[bool]) -> Floats:
        return np.array(held, np.float32)

    text = candidates.context.query.words
    place = table.place[candidates.rows] / np.maximum(1, np.diff(table.first)[candidates.document])
    return {
        "words": np.log1p(table.lengths[candidates.rows]),
        "line_count": np.log1p([unit.end - unit.start + 1 for unit in units]),
        "depth": np.array([unit.qualified.count(".") for unit in units], np.float32),
        "is_method": flags([unit.kind == "method" for unit in units]),
        "is_constructor": flags([name == "__init__" for name in names]),
        "is_dunder": flags(
            [name[:2] == "__" == name[-2:] and name != "__init__" for name in names]
        ),
        "is_private": flags([name[:1] == "_" and name[:2] != "__" for name in names]),
        "is_test": flags(["test" in name.lower() for name in names]),
        "same_name": np.log1p([len(table.by_name[name]) for name in names]),
        "calls": np.log1p([len(called) for called in candidates.called]),
        "place": place,
        "query_words": np.full(len(units), np.log1p(sum(text["all"].values())), np.float32),
        "title_words": np.full(len(units), sum(text["summary"].values()), np.float32),
        "code_words": np.full(len(units), np.log1p(sum(text["code"].values())), np.float32),
    }


_GROUPS: tuple[Callable[[Candidates], Columns], ...] = (
    _lexical,
    _own_names,
    _identifiers,
    _frames,
    _files,
    _neighbours,
    _shape,
)
_RANKED = ("guess", "lines_all", "lines_summary", "name_all", "name_summary")
"""Columns whose rank among the candidates, and among those of the file, is a feature too."""


def _per(how: np.ufunc, scores: Floats, group: NDArray[np.int64]) -> Floats:
    """The sum or the best of each candidate's group, never 0."""
    found = np.full(int(group.max(initial=0)) + 1, 1e-9, np.float32)
    how.at(found, group, scores)
    return found[group]


def _ranks_within(scores: Floats, group: NDArray[np.int64]) -> Floats:
    """The rank of each within its group, from 0."""
    order = np.lexsort((-scores, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    ranks = np.empty(len(scores), np.float32)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return ranks
