"""Text as the reader sees it: pieces of words, and what of a report and of a file is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias

from epochzero.code import Parsed
from epochzero.locate.query import Query

__all__ = ["VIEWS", "Candidates", "Piece", "Vocabulary", "pieces_of", "views_of", "word_counts"]

VIEWS = ("title", "prose", "error")
"""What of a report is read: its title; title and prose; title, and the errors that it shows."""

PADDING, UNKNOWN, SEPARATOR = 0, 1, 2
"""Numbers of the tokens that are no pieces of words."""
QUERY_TOKENS, DOCUMENT_TOKENS = 96, 160
"""The rest of a report or a function is not read."""
_FOLDERS = 3
"""Of a path, its file and so many directories above it."""
_MEMO_SIZE = 1 << 17
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,2}(?![0-9])")


class Vocabulary(dict[str, tuple[int, ...]]):
    """The numbers of the pieces of each word; a word that is no piece is split greedily.

    Args:
        pieces: in the order of their numbers, from ``SEPARATOR + 1``; a piece that continues a word
            begins with ``##``.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        super().__init__()
        self.pieces: Mapping[str, int] = {p: n for n, p in enumerate(pieces, SEPARATOR + 1)}

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _MEMO_SIZE:
            self.clear()
        value = self[word] = self._split(word)
        return value

    def _split(self, word: str) -> tuple[int, ...]:
        found: list[int] = []
        begin = 0
        while begin < len(word):
            mark = "##" if begin else ""
            for end in range(len(word), begin, -1):
                number = self.pieces.get(mark + word[begin:end])
                if number is not None:
                    break
            else:
                return (UNKNOWN,)
            found.append(number)
            begin = end
        return tuple(found)

    def tokens(self, text: str, most: int) -> list[int]:
        """The first tokens of a text."""
        found: list[int] = []
        for match in _WORD.finditer(text):
            found.extend(self[match[0].lower()])
            if len(found) >= most:
                break
        return found[:most]

    def query(self, texts: Sequence[str]) -> list[int]:
        """The tokens of a report.

        Args:
            texts: its title, and what else is read in this order.
        """
        found: list[int] = []
        for text in texts:
            room = QUERY_TOKENS - len(found) - 1
            if room > 0 and (tokens := self.tokens(text, room)):
                found += [*tokens, SEPARATOR]
        return found or [UNKNOWN]

    def document(self, path: str, name: str, text: str) -> list[int]:
        """The tokens of a function: its path, its qualified name, and its lines.

        Args:
            path: of its file, from the top of the repository.
            name: qualified; empty for the code of a module outside of functions.
            text: its lines.
        """
        parts = PurePosixPath(path).with_suffix("").parts[-1 - _FOLDERS :]
        head = [*self.tokens(" ".join(parts), 16), SEPARATOR, *self.tokens(name, 16), SEPARATOR]
        return [*head, *self.tokens(text, DOCUMENT_TOKENS - len(head))]


def word_counts(texts: Iterable[str]) -> dict[str, int]:
    """How often each word occurs, of which a vocabulary is made."""
    counts: dict[str, int] = {}
    for text in texts:
        for match in _WORD.finditer(text):
            word = match[0].lower()
            counts[word] = counts.get(word, 0) + 1
    return counts


_FORM = re.compile(
    r"<!--[\s\S]*?-->|^[ \t]*(?:#+ .*|\*\*[^*\n]*\*\*:?[ \t]*|- \[[ xX]\].*)$", re.MULTILINE
)
"""What the form of an issue adds to what its reporter writes."""
_LINK = re.compile(r"https?://\S+|#\d+\b")


def views_of(query: Query) -> list[list[str]]:
    """The texts of a report that make each of `VIEWS`."""
    title = query.report.title
    prose = _LINK.sub("", _FORM.sub("", query.texts["prose"].removeprefix(title))).strip()
    errors = query.texts["error"].strip() or query.texts["traceback"].strip()[-400:]
    return [[title], [title, prose], [title, errors]]


# Files

MODULE = -1
"""In place of the number of a unit: the code outside of functions."""
MOST_CHARACTERS = 1600
"""More of a piece than the network reads."""


class Piece(NamedTuple):
    """A part of a file.

    Attributes:
        unit: its number among `Parsed.units`, or `MODULE`.
        name: the qualified name; empty for the module.
        text: its first characters.
    """

    unit: int
    name: str
    text: str


def pieces_of(parsed: Parsed, lines: Sequence[str]) -> Iterator[Piece]:
    """The pieces of a file. A function within a function belongs to the outer one.

    Args:
        parsed: the file.
        lines: its lines.
    """
    done = 0
    outside: list[str] = []
    for number, unit in enumerate(parsed.units):
        if unit.kind == "class" or unit.start <= done:
            continue
        outside += lines[done : unit.start - 1]
        done = unit.end
        yield Piece(number, unit.qualified, _beginning(lines[unit.start - 1 : unit.end]))
    outside += lines[done:]
    yield Piece(MODULE, "", _beginning(outside))


def _beginning(lines: Sequence[str]) -> str:
    text: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        if room <= 0:
            break
        text.append(line)
        room -= len(line) + 1
    return "\n".join(text)[:MOST_CHARACTERS]


# Benchmark

Tokens: TypeAlias = tuple[int, ...]


@dataclass
class Candidates:
    """Of one project: what is read of each bug.

    Attributes:
        documents: the different functions, as tokens.
        queries: of each bug its views, as tokens.
        files: of each bug the numbers of the files that are read, and of each the units and
            documents of its pieces.
    """

    documents: list[Tokens] = field(default_factory=list)
    queries: dict[str, list[list[int]]] = field(default_factory=dict)
    files: dict[str, list[tuple[int, list[int], list[int]]]] = field(default_factory=dict)
