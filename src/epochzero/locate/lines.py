"""From functions to lines: which lines of the ranked functions fit the report best.

Lines that a traceback of the report shows or counts come first; the others follow by the words that
they share with the report.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from epochzero.code.words import words
from epochzero.locate.corpus import Corpus
from epochzero.locate.index import inverse_document_frequency
from epochzero.locate.mentions import Mention
from epochzero.locate.query import NOTEBOOK_ARROW, PARTS, Query

SHOWN, COUNTED = 1.0, 0.5
"""What a line gains when the report shows it, and when a frame has its number, which may be of
another version: half as much for the outermost of many frames. Words give a line at most 1."""
SHORTEST_SHOWN = 10
"""Characters; a shorter line occurs in many places."""
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|$)")
_LONG_STRING = re.compile(r"\"{3}|'{3}")


@dataclass(frozen=True, slots=True)
class FunctionLine:
    """A line of a function.

    Attributes:
        number: in its file, from 1.
        text: without the blanks around it.
        score: of its function, plus what the line itself has for it.
        shown: whether the report shows it or a frame has its number.
    """

    number: int
    text: str
    score: float
    shown: bool


class LineScorer:
    """Scores the lines of functions for one query."""

    def __init__(self, query: Query, corpus: Corpus, mentioned: Sequence[Mention]) -> None:
        idf = inverse_document_frequency(corpus.find(query).fields["whole"])
        weights = idf * query.weights[:, PARTS.index("all")]
        self._weight: Mapping[str, float] = dict(zip(query.terms, weights.tolist(), strict=True))
        self._shown = {
            line.strip() for line in NOTEBOOK_ARROW.sub("", query.texts["all"]).split("\n")
        }
        depth = {frame: n / len(query.frames) for n, frame in enumerate(query.frames, 1)}
        self._printed: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._counted: dict[tuple[int, int | None], float] = {}
        for mention in mentioned:  # the innermost frame last, and it counts most
            if (frame := mention.frame) is not None:
                self._printed[frame.code][mention.document] = (1 + depth[frame]) / 2
                self._counted[mention.document, frame.line] = (1 + depth[frame]) / 2

    def lines(
        self, document: int, span: tuple[int, int], content: Sequence[str], score: float
    ) -> Iterator[FunctionLine]:
        """The lines of a function that have anything to do with the report.

        Args:
            document: the number of its file.
            span: the first and last line of the function.
            content: all lines of its file.
            score: the function's, as a share of the best one's.
        """
        start, end = span
        texts = content[start - 1 : end]
        own = [self._words(text) if is_code else 0.0 for text, is_code in _code(texts)]
        best = max(own, default=0.0) or 1.0
        for number, (text, value) in enumerate(zip(texts, own, strict=True), start):
            bare = text.strip()
            shown = self._is_shown(document, bare) if len(bare) >= SHORTEST_SHOWN else 0.0
            counted = self._counted.get((document, number), 0.0)
            if value or shown or counted:
                gain = SHOWN * shown + COUNTED * counted
                yield FunctionLine(number, bare, score + value / best + gain, gain > 0)

    def _is_shown(self, document: int, bare: str) -> float:
        """How surely the report means this line; a frame's source line is one of the frame's file only."""
        if bare in self._printed:
            return self._printed[bare].get(document, 0.0)
        return float(bare in self._shown)

    def _words(self, text: str) -> float:
        return sum(self._weight.get(word, 0.0) for word in set(words(text)))


def _code(texts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each is code: neither a comment nor of a docstring."""
    inside = False
    for text in texts:
        quotes = len(_LONG_STRING.findall(text))
        starts = quotes > 0 and text.lstrip()[:3] in ('"""', "'''")
        yield text, not (inside or starts or _COMMENT.match(text))
        inside ^= quotes % 2 == 1
