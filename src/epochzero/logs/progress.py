"""Detects lines that show progress, and those that prove that a process continued.

A line that names an epoch or a loss is weak evidence: trackers print such lines in the summary of a
failed run. Only a series that advances is a step: a line of the same form as an earlier one,
with different numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from epochzero.logs.prefix import split, strip_ansi

LOOKED_AT = 400
"""Number of characters of a line that are searched for progress."""
BARS = 3
"""A progress bar is redrawn when its process exits, so fewer bars than this prove nothing."""

# A step or epoch alone may be a heading or an instruction; with a metric, it is progress.
_METRIC = re.compile(
    r"(?i)loss|acc|lr\b|err|it/s|s/it|ppl|perplexity|reward|eta\b|grad|norm|time|sec|metric|score"
    r"|f1\b|auc|map\b|bleu|tokens|samples|throughput|speed|nll|kl\b|psnr|fid\b|finished|done|http/"
    r"|(?:step|epoch|iter\w*)\W{0,3}\d+\W+[a-z_]+\W{1,3}-?\d+(?:\.\d+)?(?:\W|$)"
)
_COUNT = re.compile(r"\d+ ?/ ?\d+")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"[-+]?\d+(?:[.:,]\d+)*(?:[eE][-+]?\d+)?")
_BAR = re.compile(r"\d%\||\d/\d+ \[[=>.]")
_TRANSFER = re.compile(r"\d ?[kKMGT]?i?B/s")
"""The unit of a download or upload; training counts steps, samples or tokens."""
LOSS_NAN = re.compile(
    r"""(?i)(?:loss|log(?:it|p)s?)[\w/]{0,20}["']?\W{0,4}nan\b|\bnan\W{1,3}(?:\w{1,12}\W){0,2}loss\b"""
)
"""A step whose loss, or the logits or log-probabilities that it is computed from, is NaN is no progress."""


class ProgressLine(NamedTuple):
    """A line that may show progress.

    Attributes:
        offset: of its first byte in the log.
        rank: from its prefix.
        bar: whether it draws a progress bar.
        process: from its prefix.
        work: what it shows: "training", "serving", "counting" (a bar without a label), or empty for other work.
        form: its text without numbers.
        numbers: the numbers in it.
        finished: whether every counter in it has reached its total; None if it contains none.
    """

    offset: int
    rank: int | None
    bar: bool
    form: str
    numbers: tuple[str, ...]
    finished: bool | None = None
    work: str = ""
    process: str | None = None


def progress_lines(lines: Iterable[tuple[int, bytes]], *, bare_ranks: bool) -> list[ProgressLine]:
    """The lines among ``lines`` (offset and bytes) that show that a process trains."""
    found = []
    for offset, raw in lines:
        prefix, text = split(strip_ansi(raw.decode("utf-8", "replace")), bare_ranks=bare_ranks)
        text = text[:LOOKED_AT]
        bar = _BAR.search(text) is not None
        if (bar or _measures(text)) and not _TRANSFER.search(text) and not LOSS_NAN.search(text):
            form = text[: text.find("%|")] if bar and "%|" in text else text
            numbers = tuple(_NUMBER.findall(text))
            finished = None if bar else _finished(text)
            work = _work(text, bar=bar)
            of, process = (offset, prefix.rank, bar), prefix.process
            found.append(ProgressLine(*of, template(form), numbers, finished, work, process))
    return found


_SERVES = re.compile(r"HTTP/\d|throughput\D{0,20}: [\d.]+ tokens")
_TRAINS = re.compile(r"(?i)epoch|iteration|train|loss|steps?:|\blr\b|reward")
_PREPARES = re.compile(
    r"(?i)cach|collect|compil|convert|download|extract|filter|fetch|generat|load|map\b|pack|process|read|resolv|shard"
    r"|split|token"
)
"""Words of a progress bar of work before a training."""


def _work(text: str, *, bar: bool) -> str:
    if _SERVES.search(text):
        return "serving"
    if not bar:
        return "training"
    label = text.partition("%|")[0].strip(" 0123456789:")
    if _PREPARES.search(label):
        return ""
    if _TRAINS.search(text):
        return "training"
    return "" if label else "counting"


_COUNTER = re.compile(r"(\d+) ?/ ?(\d+)")
_UNBOUNDED = re.compile(r"(?i)\bepochs?\W{0,4}\d+(?![\d ]*/)")
"""An epoch without a total: a counter of its steps says nothing about the end of the training."""


def _finished(text: str) -> bool | None:
    counters = _COUNTER.findall(text)
    if not counters or _UNBOUNDED.search(text):
        return None
    return all(int(made) >= int(total) > 0 for made, total in counters)


def template(text: str) -> str:
    """``text`` without its numbers, which all lines of a series share."""
    return " ".join(_NUMBER.sub("#", text).split())


def _measures(text: str) -> bool:
    """Whether a line that names a step or an epoch contains a metric, or counts up to a total."""
    if _COUNT.search(text):
        return True
    return _METRIC.search(text) is not None and len(_DIGITS.findall(text)) >= 2


class Progress:
    """The progress of one process, after any position in its log.

    Args:
        lines: that show progress of the process, in order.
    """

    def __init__(self, lines: Sequence[ProgressLine]) -> None:
        self._finished = [
            (line.offset, line.finished) for line in lines if line.finished is not None
        ]
        self._lines = _Counts(lines)
        self._advances = _Counts(_advancing(lines))

    def signs_after(self, offset: int) -> int:
        """Number of lines that show progress, whether or not they advance a series."""
        plain, bars = self._lines.after(offset)
        return plain + (bars if bars >= BARS else 0)

    def steps_after(self, offset: int) -> int:
        """Number of lines that advance a series, which may start before ``offset``."""
        plain, bars = self._advances.after(offset)
        return plain + (bars if bars >= BARS - 1 else 0)

    def finished_before(self, offset: int) -> bool:
        """Whether the last counter of steps before ``offset`` had reached its total."""
        at = bisect_left(self._finished, (offset,))
        return at > 0 and self._finished[at - 1][1]


class _Counts:
    """Number of lines, and of progress bars, after an offset."""

    def __init__(self, lines: Sequence[ProgressLine]) -> None:
        self._plain = [line.offset for line in lines if not line.bar]
        self._bars = [line.offset for line in lines if line.bar]

    def after(self, offset: int) -> tuple[int, int]:
        plain = len(self._plain) - bisect_right(self._plain, offset)
        return plain, len(self._bars) - bisect_right(self._bars, offset)


def _advancing(lines: Sequence[ProgressLine]) -> list[ProgressLine]:
    """The lines whose numbers differ from the preceding line of the same form."""
    last: dict[tuple[bool, str], tuple[str, ...]] = {}
    found = []
    for line in lines:
        series = line.bar, line.form
        if last.get(series, line.numbers) != line.numbers:
            found.append(line)
        last[series] = line.numbers
    return found


def last_form(tail: bytes) -> str:
    """The form of the last progress line at the end of a log; empty if none exists."""
    for raw in reversed(tail.replace(b"\r", b"\n").split(b"\n")):
        if found := progress_lines([(0, raw)], bare_ranks=False):
            return found[0].form
    return ""
