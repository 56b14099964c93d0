"""BugLocator and BLUiR as the study of Jahan et al. (EMSE 2025) coded them, to stand beside ours.

What its public replication package computes differs from the papers of the techniques: words are
not stemmed, past reports are guarded by a condition that never holds, files weigh by scikit-learn's
TF-IDF over the 10,000 commonest words, and BLUiR sums BM25 over every method, class, assignment and
comment of a file, so that files with many of them come first. Written anew from that description;
only what decides the order of files is here.
"""

from __future__ import annotations

import ast
import html
import io
import re
import string
import tokenize
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from epochzero.code.words import words

__all__ = [
    "KINDS",
    "StudyFile",
    "Vocabulary",
    "bluir",
    "buglocator",
    "cleaned",
    "numbers",
    "study_file",
]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KINDS = ("method", "class", "variable", "comment")
MOST_WORDS = 10_000
K1, B, EPSILON = 1.5, 0.75, 0.25
"""Of BM25, as the library that the study calls has them."""

_TAG = re.compile(r"<[^<>]*>")
_BLANK = str.maketrans(dict.fromkeys(string.punctuation + string.digits, " "))
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


class Vocabulary(dict[str, int]):
    """A number for each word, in the order in which they come."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]


@dataclass(frozen=True, slots=True, eq=False)
class StudyFile:
    """The words of a file.

    Attributes:
        words: of the whole text.
        units: the words of each unit, by `KINDS`.
    """

    words: Ints
    units: Mapping[str, tuple[Ints, ...]]


def cleaned(text: str) -> str:
    """A report after the study's cleaning: words of three letters and more with blanks between."""
    text = _TAG.sub(" ", html.unescape(text)).translate(_BLANK)
    return " ".join(word for word in text.split() if len(word) > 2)


def _tokens(text: str) -> list[str]:
    return [token for word in cleaned(text).split() for token in _tokens_of(word)]


@lru_cache(maxsize=100_000)
def _tokens_of(word: str) -> tuple[str, ...]:
    """A word and, where it is compound, its parts; unstemmed."""
    parts = _HUMP.findall(word)
    kept = (word, *parts) if len(parts) > 1 else (word,)
    # Where `words` finds nothing it is a stop word.
    return tuple(token.lower() for token in kept if len(token) > 2 and words(token))


def numbers(text: str, vocabulary: Vocabulary) -> Ints:
    """The words of a text as numbers."""
    return np.array([vocabulary[token] for token in _tokens(text)], np.int64)


def study_file(data: bytes, vocabulary: Vocabulary) -> StudyFile:
    """The words of a Python file; one that cannot be parsed has no units, as in the study."""
    text = data.decode("utf-8", "replace")
    units = _units(text)
    return StudyFile(
        numbers(text, vocabulary),
        {kind: tuple(numbers(part, vocabulary) for part in units[kind]) for kind in KINDS},
    )


def _units(text: str) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    lines = text.split("\n")

    def of(node: ast.stmt) -> str:
        return "\n".join(lines[node.lineno - 1 : node.end_lineno])

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found["method"].append(of(node))
        elif isinstance(node, ast.ClassDef):
            methods = [of(each) for each in node.body if isinstance(each, ast.FunctionDef)]
            found["class"].append("\n".join([node.name, *methods]))
        elif isinstance(node, ast.Assign):
            found["variable"].append(of(node))
    found["comment"] = list(_comments(text))
    return found


def _comments(text: str) -> Iterator[str]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
    except (tokenize.TokenError, SyntaxError):
        return


# -- Scores --------------------------------------------------------------------------------------


def buglocator(query: Ints, files: Sequence[StudyFile]) -> Floats:
    """The cosine of TF-IDF vectors of the commonest words, times the boost of length, (files,)."""
    lengths = np.array([len(file.words) for file in files])
    document = np.repeat(np.arange(len(files)), lengths)
    every = np.concatenate([file.words for file in files])
    often = np.bincount(every)
    kept = np.zeros(max(len(often), int(query.max(initial=0)) + 1), bool)
    kept[np.argsort(-often, kind="stable")[:MOST_WORDS]] = True
    place = document[kept[every]] * len(kept) + every[kept[every]]
    cells, counts = np.unique(place, return_counts=True)
    row, word = cells // len(kept), cells % len(kept)
    held = np.bincount(word, minlength=len(kept))
    idf = np.log((1 + len(files)) / (1 + held)) + 1
    weights = counts * idf[word]
    norms = np.sqrt(np.bincount(row, weights**2, len(files)))
    asks = np.bincount(query, minlength=len(kept)) * kept * idf
    products = np.bincount(row, weights * asks[word], len(files))
    spread = max(1, int(lengths.max()) - int(lengths.min()))
    boost = 1 / (1 + np.exp(-(lengths - lengths.min()) / spread))
    return np.asarray(products / np.where(norms > 0, norms, 1) * boost, np.float32)


def bluir(query: Ints, files: Sequence[StudyFile]) -> Floats:
    """BM25 of every unit, summed over the units of a file, (files,).

    Assignments and comments count only for files that have a class.
    """
    asked = np.bincount(query) if len(query) else np.zeros(1, np.int64)
    scores = {kind: _summed(asked, [file.units[kind] for file in files]) for kind in KINDS}
    classes = np.array([bool(file.units["class"]) for file in files])
    outside = np.where(classes, scores["variable"] + scores["comment"], 0)
    return np.asarray(scores["method"] + scores["class"] + outside, np.float32)


def _summed(asked: Ints, units: Sequence[Sequence[Ints]]) -> Doubles:
    """The sum of the scores of the units of each file."""
    flat = [unit for own in units for unit in own]
    if not flat:
        return np.zeros(len(units))
    file = np.repeat(np.arange(len(units)), [len(own) for own in units])
    return np.bincount(file, _bm25(asked, flat), len(units))


def _bm25(asked: Ints, units: Sequence[Ints]) -> Doubles:
    lengths = np.array([len(unit) for unit in units])
    unit = np.repeat(np.arange(len(units)), lengths)
    word = np.concatenate(units)
    cells, counts = np.unique(unit * (int(word.max(initial=0)) + 1) + word, return_counts=True)
    row, word = cells // (int(word.max(initial=0)) + 1), cells % (int(word.max(initial=0)) + 1)
    held = np.bincount(word, minlength=len(asked))
    idf = np.log(len(units) - held + 0.5) - np.log(held + 0.5)
    idf[idf < 0] = EPSILON * float(idf[held > 0].mean()) if held.any() else 0.0
    times = np.pad(asked, (0, len(held) - len(asked)))
    soft = K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean())))
    values = times[word] * idf[word] * counts * (K1 + 1) / (counts + soft[row])
    return np.bincount(row, values, len(units))
