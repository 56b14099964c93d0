"""How well a score tells right predictions from wrong ones, and where to cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.errors import InputError
from epochzero.reports.statistics import Estimate
from epochzero_models.bootstrap import Counts, Floats, estimate

Flags = NDArray[np.bool_]


class _Ranked:
    """Scores as ranks, so that a draw of the bootstrap costs no sorting."""

    def __init__(self, scores: NDArray[Any], right: Flags) -> None:
        values, self.rank = np.unique(scores, return_inverse=True)
        self.ranks = len(values)
        self.right = right

    def auc(self, counts: Counts) -> float | None:
        """The area, by the share of pairs in order, ties as one half (Mann and Whitney 1947)."""
        positive = np.bincount(self.rank, counts * self.right, self.ranks)
        negative = np.bincount(self.rank, counts * ~self.right, self.ranks)
        pairs = positive.sum() * negative.sum()
        if not pairs:
            return None
        below = np.cumsum(negative) - negative / 2
        return float(positive @ below / pairs)


def auc(scores: NDArray[Any], right: Flags, seed: int) -> Estimate:
    """The area under the ROC curve; right predictions are to score higher.

    Args:
        scores: shape (n,).
        right: whether the model's prediction is its label, shape (n,).
        seed: of the bootstrap.
    """
    return estimate(_Ranked(scores, right).auc, len(scores), seed)


def area_of(accepted: NDArray[Any], rejected: NDArray[Any]) -> float:
    """The area under the ROC curve of scores to accept and scores to reject; neither may be empty."""
    scores = np.concatenate((accepted, rejected))
    is_accepted = np.arange(len(scores)) < len(accepted)
    area = _Ranked(scores, is_accepted).auc(np.ones(len(scores), np.int64))
    assert area is not None
    return area


def auc_gain(scores: NDArray[Any], other: NDArray[Any], right: Flags, seed: int) -> Estimate:
    """By how much the area of one score exceeds that of another, by the same draws."""
    first, second = _Ranked(scores, right), _Ranked(other, right)

    def gain(counts: Counts) -> float | None:
        own, its = first.auc(counts), second.auc(counts)
        return None if own is None or its is None else own - its

    return estimate(gain, len(scores), seed)


def roc(scores: NDArray[Any], right: Flags) -> tuple[Floats, Floats]:
    """The curve: shares of wrong and of right predictions that score at least a threshold, falling."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    true_positives = np.cumsum(right[order])[ends]
    passed = np.cumsum(~right[order])[ends]
    start = np.zeros(1)
    return (
        np.concatenate((start, passed / max(1, passed[-1]))),
        np.concatenate((start, true_positives / max(1, true_positives[-1]))),
    )


def choose_threshold(scores: NDArray[Any], right: Flags, false_rejections: float | None) -> float:
    """The score from which a prediction is accepted.

    Args:
        scores: of examples that are not reported on, shape (n,).
        right: whether the model's prediction is its label, shape (n,).
        false_rejections: share of right predictions that may be rejected, below 1; by default the threshold
            with the largest Youden's J (1950), the share of right ones accepted less that of wrong ones.

    Raises:
        InputError: there is no wrong prediction, or no right one, to choose by.
    """
    if not right.any() or (false_rejections is None and right.all()):
        which = "right" if not right.any() else "wrong"
        raise InputError(
            f"none of the {len(right):,} examples used to choose the threshold is predicted {which}: pass more data"
            + ("" if which == "right" else ", or --false-rejections")
        )
    values = np.unique(scores)
    if false_rejections is not None:
        lowest = np.sort(scores[right])
        return float(lowest[int(false_rejections * len(lowest))])
    rejected_right = np.searchsorted(np.sort(scores[right]), values)
    rejected_wrong = np.searchsorted(np.sort(scores[~right]), values)
    # J in whole numbers, so that of equal ones the lowest threshold is taken.
    gained = rejected_wrong * right.sum() - rejected_right * (~right).sum()
    return float(values[np.argmax(gained)])


@dataclass(frozen=True, slots=True)
class Cut:
    """What a threshold does.

    Attributes:
        threshold: a prediction of a smaller score is rejected.
        false_rejections: share of right predictions that are rejected.
        caught: share of wrong predictions that are rejected; None where there is none.
        accepted: share of all that are accepted.
        accuracy: of the accepted ones; None where there is none.
    """

    threshold: float
    false_rejections: float | None
    caught: float | None
    accepted: float
    accuracy: float | None


def cut_at(scores: NDArray[Any], right: Flags, threshold: float) -> Cut:
    """What a threshold does to predictions with these scores."""
    accepted = scores >= threshold
    return Cut(
        threshold=threshold,
        false_rejections=_share(~accepted[right]),
        caught=_share(~accepted[~right]),
        accepted=float(accepted.mean()),
        accuracy=_share(right[accepted]),
    )


def _share(flags: Flags) -> float | None:
    return float(flags.mean()) if flags.size else None
