"""The history of a file: how often, how lately and why it changed, and what else changed with it.

Recency and frequency of fixes: Kim et al., "Predicting Faults from Cached History", ICSE 2007, as
weighted by Lewis et al., "Does Bug Prediction Support Human Developers?", ICSE 2013.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.locate.corpus import Bags, bag_of
from epochzero.locate.features.context import ALL, SUMMARY, Context, ranks, share
from epochzero.locate.index import Columns, Floats, bm25
from epochzero.locate.query import PARTS

DAY = 86_400.0
NEVER_DAYS = 4000.0
LATELY_DAYS, MONTH_DAYS = 90.0, 30.0
MOST_SIMILAR = 150
LARGEST_SIMILAR = 10
"""Commits of more files are weak evidence for each of them."""
FIRST_GUESSES = 3


def changes(context: Context) -> Columns:
    """All of it; zeros for what needs a history where that is not known."""
    if context.corpus.history is None:
        unknown: Columns = {name: np.zeros(context.size, np.float32) for name in _NAMES}
        return unknown | _past(context)
    return (
        _counts(context)
        | _messages(context)
        | _similar(context)
        | _together(context)
        | _past(context)
    )


def _counts(context: Context) -> Columns:
    """How often, how lately and why each file changed."""
    n = context.size
    file, time, fix = context.corpus.changed
    age = np.maximum(0.0, (context.opened - time) / DAY)
    span = max(1.0, float(age.max(initial=0.0)))

    def summed(values: NDArray[np.floating[Any]], of: NDArray[np.bool_] | None = None) -> Floats:
        chosen = file if of is None else file[of]
        return np.bincount(chosen, values, minlength=n).astype(np.float32)

    def extreme(of: NDArray[np.bool_], start: float, pick: np.ufunc) -> Floats:
        found = np.full(n, start)
        pick.at(found, file[of], age[of])
        return np.asarray(np.log1p(found), np.float32)

    every = np.ones(len(file), np.bool_)
    ones = np.ones(len(file))
    activity = summed(np.exp(-age / MONTH_DAYS))
    fix_cache = summed(1 / (1 + np.exp(12 * np.minimum(1.0, age[fix] / span))), fix)
    changes, fixes = np.log1p(summed(ones)), np.log1p(summed(ones[fix], fix))
    last_change = extreme(every, NEVER_DAYS, np.minimum)
    return {
        "changes": changes,
        "fixes": fixes,
        "last_change": last_change,
        "last_fix": extreme(fix, NEVER_DAYS, np.minimum),
        "age": extreme(every, 0.0, np.maximum),
        "changed_lately": np.log1p(summed((age < LATELY_DAYS).astype(np.float64))),
        "activity": activity,
        "fix_cache": fix_cache,
        "changes_share": share(changes),
        "fixes_share": share(fixes),
        "fix_cache_share": share(fix_cache),
        "activity_share": share(activity),
        "recency_rank": ranks(-last_change) / np.float32(max(1, n)),
    }


def _messages(context: Context) -> Columns:
    """BM25 against the messages of a file's latest changes."""
    messages, query = context.corpus.change_messages, context.query
    scores = bm25(messages.counts(query), messages.lengths, query.weights)
    return {
        f"said_{part}": share(scores[:, number])
        for number, part in enumerate(PARTS)
        if part not in ("traceback", "error")
    }


def _similar(context: Context) -> Columns:
    """Files that commits changed whose messages are like the report."""
    recent, bags = context.corpus.commits
    scores = bm25(bags.counts(context.query), bags.lengths, context.query.weights)
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
    """Earlier reports (SimiScore of BugLocator: Zhou et al., ICSE 2012)."""
    past = context.corpus.past
    similar, fixed = np.zeros(context.size, np.float32), np.zeros(context.size, np.float32)
    if past:
        bags = Bags([bag_of(f"{r.report.title}\n{r.report.text}") for r in past])
        weights = context.query.weights[:, [ALL]]
        scores = bm25(bags.counts(context.query), bags.lengths, weights)
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
    "changes",
    "fixes",
    "last_change",
    "last_fix",
    "age",
    "changed_lately",
    "activity",
    "fix_cache",
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
