"""Source lines of ranked places, for readers that do not have the repository at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from epochzero.locate.lines import LineScorer

Span: TypeAlias = tuple[int, int]
"""The first and the last line, from 1."""

MOST_LINES = 30
"""Lines of a place, shared by the functions that are shown."""
MOST_CHARACTERS = 1400
"""Of an excerpt: tools of agents shorten longer texts."""
LONGEST_LINE = 160
_HEAD = 2
"""The first lines of a long function say what it is and what it takes."""


def excerpt(
    content: Sequence[str], document: int, spans: Sequence[Span], scorer: LineScorer
) -> str:
    """The lines of a place that fit the report best, with their numbers.

    Args:
        content: all lines of the file.
        document: the number of the file in the corpus of ``scorer``.
        spans: of the functions to show, or of one line, which is shown with its neighbors; if there
            are none, the head of the file is shown.
        scorer: of the lines.
    """
    share = MOST_LINES // max(1, len(spans))
    numbers = set(range(1, min(len(content), MOST_LINES) + 1)) if not spans else set()
    for start, end in spans:
        if start == end:
            numbers.update(_window(start, (1, len(content)), MOST_LINES // 3))
        elif end - start < share:
            numbers.update(range(start, end + 1))
        else:
            lines = scorer.lines(document, (start, end), content, 0.0)
            best = max(lines, key=lambda line: line.score, default=None)
            numbers.update(range(start, start + _HEAD))
            center = best.number if best else start
            numbers.update(_window(center, (start, end), share - _HEAD))
    return "\n".join(_bounded(_numbered(content, sorted(numbers))))


def _window(center: int, span: Span, length: int) -> range:
    """Lines around one, inside a span."""
    start = max(span[0], min(center - length // 2, span[1] - length + 1))
    return range(start, min(start + length, span[1] + 1))


def _numbered(content: Sequence[str], numbers: Sequence[int]) -> Iterator[str]:
    before = 0
    for number in numbers:
        if before and number > before + 1:
            yield "..."
        if number <= len(content):
            yield f"{number}: {content[number - 1].rstrip()[:LONGEST_LINE]}"
        before = number


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > MOST_CHARACTERS:
            return
        yield line
