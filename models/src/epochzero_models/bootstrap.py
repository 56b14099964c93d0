"""Bootstrap intervals of statistics that can be computed from weighted examples.

Efron and Tibshirani (1993), chapter 13: the percentile interval. A sample with replacement is a vector of counts, so
that a statistic is computed from counts without accessing the examples again. Two statistics of the same samples
are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.reports.statistics import RESAMPLES, Estimate

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def estimate(statistic: Callable[[Counts], float | None], count: int, seed: int) -> Estimate:
    """Return a statistic with its 95 % interval.

    Args:
        statistic: computed from the count of each example, shape (n,); None if undefined.
        count: n, number of examples.
        seed: of the bootstrap; the same seed gives the same samples.
    """
    draw = np.random.default_rng(seed)
    drawn = (
        np.bincount(draw.integers(count, size=count), minlength=count) for _ in range(RESAMPLES)
    )
    return _with_interval(statistic, np.ones(count, np.int64), drawn)


def estimate_of_kinds(
    statistic: Callable[[Counts], float | None], counts: Counts, seed: int
) -> Estimate:
    """Like `estimate`, for examples of few kinds with counts of shape (kinds,): takes as long for any number of examples."""
    total = int(counts.sum())
    if not total:
        return Estimate(None)
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, RESAMPLES)
    return _with_interval(statistic, counts, drawn)


def _with_interval(
    statistic: Callable[[Counts], float | None], counts: Counts, drawn: Iterable[Counts]
) -> Estimate:
    value = statistic(counts)
    if value is None:
        return Estimate(None)
    values = [number for each in drawn if (number := statistic(each)) is not None]
    low, high = np.quantile(values, (0.025, 0.975))
    return Estimate(value, (float(low), float(high)))


def mean(values: NDArray[Any], seed: int) -> Estimate:
    """Return the mean of one value per example, shape (n,)."""
    floats = values.astype(np.float64)
    return estimate(lambda counts: float(counts @ floats / counts.sum()), len(floats), seed)
