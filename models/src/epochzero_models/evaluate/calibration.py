"""Calibration of predicted probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.reports.statistics import Estimate
from epochzero_models.bootstrap import Counts, Floats, estimate

BINS = 15


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions of similar confidence.

    Attributes:
        count: number of predictions.
        confidence: mean of their largest probabilities.
        accuracy: share of correct ones.
    """

    count: int
    confidence: float
    accuracy: float


def log_losses(probabilities: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the negative log probability of the label, shape (n,)."""
    own = probabilities[np.arange(len(labels)), labels]
    return -np.log(np.maximum(own, np.finfo(np.float64).tiny))


def brier_scores(probabilities: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the squared distance to the one-hot label, 0 to 2, shape (n,). Brier (1950)."""
    truth = np.eye(probabilities.shape[1])[labels]
    squared: Floats = np.square(probabilities - truth).sum(axis=1)
    return squared


def expected_calibration_error(confidence: Floats, right: NDArray[Any], seed: int) -> Estimate:
    """Return the mean difference of confidence and accuracy over 15 bins of equal width.

    Guo, Pleiss, Sun and Weinberger (ICML 2017), section 2. Resampling adds noise to each bin, so resampled errors are too large.
    The interval therefore extends by how far the bins of a sample move, which bounds the change of the error.

    Args:
        confidence: largest probability, shape (n,).
        right: whether that class is the label, shape (n,).
        seed: of the bootstrap.
    """
    bins = _bins(confidence)

    def gaps(counts: Counts) -> Floats:
        moved: Floats = np.bincount(bins, counts * (confidence - right), BINS) / counts.sum()
        return moved

    own = gaps(np.ones(len(bins), np.int64))
    error = float(np.abs(own).sum())
    _, most = estimate(
        lambda counts: float(np.abs(gaps(counts) - own).sum()), len(bins), seed
    ).interval or (0, 0)
    return Estimate(error, (max(0.0, error - most), error + most))


def reliability(confidence: Floats, right: NDArray[Any]) -> tuple[Bin, ...]:
    """Return the nonempty bins in order of confidence."""
    bins = _bins(confidence)
    counts = np.bincount(bins, minlength=BINS)
    means = [
        np.bincount(bins, values, BINS) / np.maximum(counts, 1) for values in (confidence, right)
    ]
    return tuple(
        Bin(int(counts[at]), float(means[0][at]), float(means[1][at]))
        for at in np.flatnonzero(counts)
    )


def _bins(confidence: Floats) -> NDArray[np.intp]:
    """Bins are open below and closed above, as in the paper."""
    return np.clip(np.ceil(confidence * BINS).astype(np.intp) - 1, 0, BINS - 1)
