"""Intervals of any statistic that can be computed with weights, by the bootstrap over examples.

Efron and Tibshirani (1993), chapter 13: the percentile interval. A draw with replacement gives each
example a count, so that a statistic takes counts and never the examples again. Two statistics of the same
draws are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.reports.statistics import RESAMPLES, Estimate

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def estimate(statistic: Callable[[Counts], float | None], count: int, seed: int) -> Estimate:
    """A statistic with its interval of 95 %.

    Args:
        statistic: takes how often each example counts, shape (n,); None where it is not defined.
        count: n, of examples.
        seed: of the draws; the same one gives the same draws.
    """
    value = statistic(np.ones(count, np.int64))
    if value is None:
        return Estimate(None)
    draw = np.random.default_rng(seed)
    drawn = (
        statistic(np.bincount(draw.integers(count, size=count), minlength=count))
        for _ in range(RESAMPLES)
    )
    values = [one for one in drawn if one is not None]
    low, high = np.quantile(values, (0.025, 0.975))
    return Estimate(value, (float(low), float(high)))


def mean(values: NDArray[Any], seed: int) -> Estimate:
    """The mean of a value of each example, shape (n,)."""
    floats = values.astype(np.float64)
    return estimate(lambda counts: float(counts @ floats / counts.sum()), len(floats), seed)
