"""Lines that show that a job makes progress, and which of them prove that a process lived on.

A line that names an epoch or a loss is weak evidence: trackers print such lines in the summary of a
run that has died. Only a series that advances is a step: a line of the same form as an earlier one,
with other numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from epochzero.logs.prefix import split, strip_ansi

__all__ = [
    "LOOKED_AT",
    "LOSS_NAN",
    "ProgressLine",
    "progress_lines",
    "signs",
    "steps",
    "template",
]

LOOKED_AT = 400
"""So many characters of a line tell whether it shows progress."""
BARS = 3
"""A progress bar is drawn again when its process dies, so fewer bars than this prove nothing."""

# A step or epoch alone may be a heading or an instruction; with a measure it is progress.
_METRIC = re.compile(
    r"(?i)loss|acc|lr\b|err|it/s|s/it|ppl|perplexity|reward|eta\b|grad|norm|time|sec|metric|score"
    r"|f1\b|auc|map\b|bleu|tokens|samples|throughput|speed|nll|kl\b|psnr|fid\b|finished|done"
    r"|(?:step|epoch|iter\w*)\W{0,3}\d+\W+[a-z_]+\W{1,3}-?\d+(?:\.\d+)?(?:\W|$)"
)
_COUNT = re.compile(r"\d+ ?/ ?\d+")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"[-+]?\d+(?:[.:,]\d+)*(?:[eE][-+]?\d+)?")
_BAR = re.compile(r"\d%\||\d/\d+ \[[=>.]")
_TRANSFER = re.compile(r"\d ?[kKMGT]?i?B/s")
"""The unit of a download or an upload; training counts steps, samples or tokens."""
LOSS_NAN = re.compile(
    r"""(?i)loss\w{0,20}["']?\W{0,4}nan\b|\bnan\W{1,3}(?:\w{1,12}\W){0,2}loss\b"""
)
"""A step whose loss is no number is no progress."""


class ProgressLine(NamedTuple):
    """A line that may show progress.

    Attributes:
        offset: of its first byte in the log.
        rank: that its prefix names.
        bar: whether it draws a progress bar.
        form: its text without numbers.
        numbers: the numbers in it.
    """

    offset: int
    rank: int | None
    bar: bool
    form: str
    numbers: tuple[str, ...]


def progress_lines(lines: Iterable[tuple[int, bytes]], *, bare_ranks: bool) -> list[ProgressLine]:
    """Those of ``lines`` (offset and bytes) that show that a process trains."""
    found = []
    for offset, raw in lines:
        prefix, text = split(strip_ansi(raw.decode("utf-8", "replace")), bare_ranks=bare_ranks)
        text = text[:LOOKED_AT]
        bar = _BAR.search(text) is not None
        if (bar or _measures(text)) and not _TRANSFER.search(text) and not LOSS_NAN.search(text):
            form = text[: text.find("%|")] if bar and "%|" in text else text
            numbers = tuple(_NUMBER.findall(text))
            found.append(ProgressLine(offset, prefix.rank, bar, template(form), numbers))
    return found


def template(text: str) -> str:
    """``text`` without its numbers: what lines of one series share."""
    return " ".join(_NUMBER.sub("#", text).split())


def _measures(text: str) -> bool:
    """Whether a line that names a step or an epoch gives a measure, or counts up to a total."""
    if _COUNT.search(text):
        return True
    return _METRIC.search(text) is not None and len(_DIGITS.findall(text)) >= 2


def steps(before: Sequence[ProgressLine], after: Sequence[ProgressLine]) -> int:
    """How many of the lines ``after`` an event advance a series.

    Args:
        before: lines of the same process before the event, which may have begun the series.
        after: lines of the same process after it.
    """
    last = {(line.bar, line.form): line.numbers for line in before}
    advanced = {False: 0, True: 0}
    for line in after:
        series = line.bar, line.form
        advanced[line.bar] += last.get(series, line.numbers) != line.numbers
        last[series] = line.numbers
    bars = advanced[True]
    return advanced[False] + (bars if bars >= BARS - 1 else 0)


def signs(after: Sequence[ProgressLine]) -> int:
    """How many of the lines ``after`` an event show progress, whether or not they advance a series."""
    bars = sum(1 for line in after if line.bar)
    return len(after) - bars + (bars if bars >= BARS else 0)
