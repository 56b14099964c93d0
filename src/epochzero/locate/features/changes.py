"""The history of a file: how often, how lately and why it changed, and what else changed with it.

Recency and frequency of fixes: Kim et al., "Predicting Faults from Cached History", ICSE 2007, as
weighted by Lewis et al., "Does Bug Prediction Support Human Developers?", ICSE 2013.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from epochzero.code import Bag, Change
from epochzero.code.words import words
from epochzero.locate.corpus import counts_of
from epochzero.locate.features.context import ALL, SUMMARY, Columns, Context, share
from epochzero.locate.index import Floats, bm25
from epochzero.locate.query import PARTS

__all__ = ["changes"]

DAY = 86_400.0
NEVER_DAYS = 4000.0
LATELY_DAYS, MONTH_DAYS = 90.0, 30.0
MOST_COMMITS = 6000
MOST_SIMILAR = 150
LARGEST_SIMILAR = 10
"""Commits of more files say little of any of them."""
FIRST_GUESSES = 3


def changes(context: Context) -> Columns:
    """All of it; zeros for what needs a history where that is not known."""
    if context.corpus.history is None:
        unknown: Columns = {name: np.zeros(context.size, np.float32) for name in _NAMES}
        return unknown | _past(context)
    return (
        _counts(context) | _said(context) | _similar(context) | _together(context) | _past(context)
    )


def _counts(context: Context) -> Columns:
    history, n = context.corpus.history, context.size
    assert history is not None
    now = context.opened
    born = min((change.time for change in history.changes), default=now)
    table = {name: np.zeros(n, np.float32) for name in _COUNTED}
    for number, path in enumerate(context.corpus.paths):
        own = history.of(path)
        for name, value in _of_file(own, now, born).items():
            table[name][number] = value
    return table | {
        "changes_share": share(table["changes"]),
        "fixes_share": share(table["fixes"]),
        "fix_cache_share": share(table["fix_cache"]),
        "activity_share": share(table["activity"]),
        "recency_rank": np.asarray(_rank(-table["last_change"]) / max(1, n), np.float32),
    }


def _of_file(own: Sequence[Change], now: float, born: float) -> dict[str, float]:
    ages = [max(0.0, (now - change.time) / DAY) for change in own]
    fixes = [age for age, change in zip(ages, own, strict=True) if change.is_fix]
    span = max(1.0, (now - born) / DAY)
    return {
        "changes": math.log1p(len(own)),
        "fixes": math.log1p(len(fixes)),
        "last_change": math.log1p(min(ages, default=NEVER_DAYS)),
        "last_fix": math.log1p(min(fixes, default=NEVER_DAYS)),
        "age": math.log1p(max(ages, default=0.0)),
        "changed_lately": math.log1p(sum(age < LATELY_DAYS for age in ages)),
        "activity": sum(math.exp(-age / MONTH_DAYS) for age in ages),
        "fix_cache": sum(1 / (1 + math.exp(12 * min(1.0, age / span))) for age in fixes),
    }


_COUNTED = (
    "changes",
    "fixes",
    "last_change",
    "last_fix",
    "age",
    "changed_lately",
    "activity",
    "fix_cache",
)


def _rank(scores: Floats) -> Floats:
    return np.argsort(np.argsort(-scores, kind="stable"), kind="stable").astype(np.float32)


@lru_cache(maxsize=200_000)
def _message(text: str) -> Bag:
    return Bag.of(words(text))


def _said(context: Context) -> Columns:
    """BM25 against the messages of a file's latest changes."""
    bags = context.corpus.said
    lengths = np.array([bag.total for bag in bags], np.float32)
    scores = bm25(counts_of(bags, context.query), lengths, context.query.weights)
    return {
        f"said_{part}": share(scores[:, number])
        for number, part in enumerate(PARTS)
        if part not in ("traceback", "error")
    }


def _similar(context: Context) -> Columns:
    """Files that commits changed whose messages are like the report."""
    history = context.corpus.history
    assert history is not None
    recent = history.changes[:MOST_COMMITS]
    bags = [_message(change.message) for change in recent]
    lengths = np.array([bag.total for bag in bags], np.float32)
    scores = bm25(counts_of(bags, context.query), lengths, context.query.weights)
    alike = share(scores[:, ALL]) + share(scores[:, SUMMARY])
    total, best = np.zeros(context.size, np.float32), np.zeros(context.size, np.float32)
    for number in np.argsort(-alike, kind="stable")[:MOST_SIMILAR]:
        files = recent[number].files
        if len(files) > LARGEST_SIMILAR or alike[number] <= 0:
            continue
        for path in files:
            if (place := context.corpus.number.get(path)) is not None:
                total[place] += alike[number] ** 2 / len(files)
                best[place] = max(best[place], alike[number] / math.sqrt(len(files)))
    return {"similar_commits": share(total), "similar_commit": share(best)}


def _together(context: Context) -> Columns:
    """How often a file changed together with the likeliest ones."""
    history = context.corpus.history
    assert history is not None
    scores = np.zeros(context.size, np.float32)
    for number in np.argsort(-context.guess, kind="stable")[:FIRST_GUESSES]:
        path = context.corpus.paths[number]
        total = max(3, history.count(path))
        for other, often in history.cochanged(path).items():
            place = context.corpus.number.get(other)
            if place is not None and place != number:
                scores[place] = max(scores[place], often / total)
    return {"changed_with_likely": scores}


def _past(context: Context) -> Columns:
    """Earlier reports (SimiScore of BugLocator: Zhou et al., ICSE 2012, Section 3.3)."""
    past = context.corpus.past
    similar, fixed = np.zeros(context.size, np.float32), np.zeros(context.size, np.float32)
    if past:
        bags = [_message(f"{p.report.title}\n{p.report.text}") for p in past]
        lengths = np.array([bag.total for bag in bags], np.float32)
        scores = bm25(counts_of(bags, context.query), lengths, context.query.weights[:, [ALL]])
        for report, score in zip(past, share(scores[:, 0]), strict=True):
            for path in report.fixed:
                if (place := context.corpus.number.get(path)) is not None:
                    similar[place] += score**2 / len(report.fixed)
                    fixed[place] += 1 / len(report.fixed)
    return {
        "similar_reports": share(similar),
        "fixed_before": fixed,
        "past_reports": np.full(context.size, math.log1p(len(past)), np.float32),
    }


_NAMES = (
    *_COUNTED,
    "changes_share",
    "fixes_share",
    "fix_cache_share",
    "activity_share",
    "recency_rank",
    *(f"said_{part}" for part in PARTS if part not in ("traceback", "error")),
    "similar_commits",
    "similar_commit",
    "changed_with_likely",
)
