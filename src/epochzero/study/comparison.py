"""Comparison of two groups of numbers: tests, effect sizes, and bootstrap intervals.

Tests and resampling are SciPy's; this module chooses among them as the study of Jahan et al. (EMSE 2025) does:
Shapiro-Wilk on both groups, then Student's t-test if both are consistent with a normal distribution, otherwise
Mann-Whitney's U. Undefined values are None.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.errors import InputError
from epochzero.reports.statistics import RESAMPLES, Estimate

ALPHA = 0.05
FEWEST = 3
"""Smallest sample for Shapiro-Wilk."""
MOST_NORMAL = 5000
"""Largest sample for which its p-value is accurate."""
COHENS_D, CLIFFS_DELTA, RANK_BISERIAL = "Cohen's d", "Cliff's delta", "rank-biserial correlation"
_WORDS = ("negligible", "small", "medium", "large")
_BOUNDS = {
    COHENS_D: (0.2, 0.5, 0.8),  # J. Cohen: "Statistical Power Analysis", 2nd ed., 1988, section 2.2
    CLIFFS_DELTA: (0.147, 0.33, 0.474),  # Romano et al., annual meeting of the FAIR, 2006
    RANK_BISERIAL: (0.147, 0.33, 0.474),  # equals Cliff's delta for independent groups
}
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of the means of two groups.

    Attributes:
        n: number of values in each group.
        mean: difference of the means, first minus second, with its 95 % interval.
        test: ``t-test`` or ``Mann-Whitney U``; empty if a group has fewer than 3 values or all values are
            equal.
        p: two-sided p-value of the test.
        effect: ``Cohen's d`` with a t-test, otherwise ``Cliff's delta``.
        size: effect size; positive if the first group is larger.
        word: negligible, small, medium or large.
    """

    n: tuple[int, int]
    mean: Estimate
    test: str = ""
    p: float | None = None
    effect: str = ""
    size: float | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Difference of two measurements of the same cases.

    Attributes:
        n: number of cases.
        mean: mean difference, first minus second, with its 95 % interval.
        p: two-sided p-value of Wilcoxon's signed-rank test; None if all differences are 0.
        size: matched-pairs rank-biserial correlation (Kerby 2014), positive if the first is larger; None likewise.
        word: negligible, small, medium or large; empty likewise.
    """

    n: int
    mean: Estimate
    p: float | None = None
    size: float | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Pearson's test of independence, with Yates's correction for two-by-two tables."""

    statistic: float
    p: float


def require_scipy() -> None:
    """Check that SciPy is installed, before any work is done.

    Raises:
        InputError: SciPy is not installed.
    """
    _scipy()


def _scipy() -> Any:
    try:
        return import_module("scipy.stats")
    except ImportError as error:
        raise InputError(
            "These statistics require SciPy: pip install 'epochzero[study]'"
        ) from error


def mean(
    values: Sequence[float], groups: Sequence[str] | None = None, *, seed: int = 0
) -> Estimate:
    """Return the mean with its 95 % interval (percentile bootstrap).

    Args:
        values: of the cases.
        groups: group of each case, such as its project; then whole groups are drawn (cluster bootstrap; Davison and
            Hinkley 1997, section 3.8). None to draw cases.
        seed: of the bootstrap.
    """
    if not len(values):
        return Estimate(None)
    return Estimate(float(np.mean(values)), _interval(_drawn_means(values, groups, seed)))


def compare(
    first: Sequence[float],
    second: Sequence[float],
    groups: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    seed: int = 0,
) -> Difference:
    """Test whether two groups differ, and by how much.

    The test assumes independent cases; the interval draws whole ``groups``, separately for each side.

    Args:
        first, second: values of the cases of each side.
        groups: groups of the cases of each side, as for `mean`.
        seed: of the bootstrap.
    """
    n = (len(first), len(second))
    if not all(n):
        return Difference(n, Estimate(None))
    ours = _drawn_means(first, groups[0] if groups else None, seed)
    theirs = _drawn_means(second, groups[1] if groups else None, seed + 1)
    drawn = None if ours is None or theirs is None else ours - theirs
    value = Estimate(float(np.mean(first) - np.mean(second)), _interval(drawn))
    if min(n) < FEWEST or len({*first, *second}) == 1:
        return Difference(n, value)
    if _is_normal(first) and _is_normal(second):
        p = float(_scipy().ttest_ind(first, second).pvalue)
        return _difference(n, value, "t-test", p, COHENS_D, cohens_d(first, second))
    p = float(_scipy().mannwhitneyu(first, second).pvalue)
    return _difference(n, value, "Mann-Whitney U", p, CLIFFS_DELTA, cliffs_delta(first, second))


def _difference(
    n: tuple[int, int], value: Estimate, test: str, p: float, effect: str, size: float | None
) -> Difference:
    word = "" if size is None else word_of_size(effect, size)
    return Difference(n, value, test, p, effect, size, word)


def compare_pairs(
    first: Sequence[float],
    second: Sequence[float],
    groups: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> PairedDifference:
    """Test whether two measurements of the same cases differ, and by how much.

    Args:
        first, second: values of the same cases, in the same order.
        groups: group of each case, as for `mean`.
        seed: of the bootstrap.
    """
    differences = [a - b for a, b in zip(first, second, strict=True)]
    value = mean(differences, groups, seed=seed)
    if not any(differences):
        return PairedDifference(len(differences), value)
    p = float(_scipy().wilcoxon(differences).pvalue)
    size = rank_biserial(differences)
    return PairedDifference(len(differences), value, p, size, word_of_size(RANK_BISERIAL, size))


def rank_biserial(differences: Sequence[float]) -> float:
    """Share of rank sums of positive differences, minus that of negative ones, -1 to 1; zeros do not count.

    D. S. Kerby: "The Simple Difference Formula", Comprehensive Psychology 3, 2014.

    >>> rank_biserial([1, 2, -3])
    0.0
    """
    signed = np.asarray([difference for difference in differences if difference], np.float64)
    ranks = _scipy().rankdata(np.abs(signed))
    return float((ranks * np.sign(signed)).sum() / ranks.sum())


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for their number (Holm 1979); None stays None and does not count.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    known = sorted((p, at) for at, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    largest = 0.0
    for number, (p, at) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - number)))
        adjusted[at] = largest
    return adjusted


_NO_RANGE = 1e-19
"""The algorithm of the test (AS R94, Royston 1995) treats smaller ranges around the median as none."""


def _is_normal(values: Sequence[float]) -> bool:
    """Whether Shapiro-Wilk does not reject a normal distribution."""
    median = sorted(values)[len(values) // 2]
    around = [value - median for value in values]
    if max(around) - min(around) < _NO_RANGE or len(values) > MOST_NORMAL:
        return False
    return bool(_scipy().shapiro(values).pvalue >= ALPHA)


def cohens_d(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The difference of the means in pooled standard deviations (Cohen 1988); None without spread.

    >>> round(cohens_d([2, 4, 6], [1, 3, 5]), 3)
    0.5
    """
    n, m = len(first), len(second)
    if n + m <= 2:
        return None
    squares = (n - 1) * _variance(first) + (m - 1) * _variance(second)
    spread = math.sqrt(squares / (n + m - 2))
    return float(np.mean(first) - np.mean(second)) / spread if spread else None


def _variance(values: Sequence[float]) -> float:
    return float(np.var(values, ddof=1)) if len(values) > 1 else 0.0


def cliffs_delta(first: Sequence[float], second: Sequence[float]) -> float:
    """Probability that a value of the first group is above one of the second, minus that of the opposite, -1 to 1.

    N. Cliff: "Dominance Statistics: Ordinal Analyses to Answer Ordinal Questions", Psychological
    Bulletin 114(3), 1993. It is 2 U / (n m) - 1.

    >>> cliffs_delta([2, 3], [1, 2])
    0.75
    """
    u = _scipy().mannwhitneyu(first, second, method="asymptotic").statistic
    return float(2 * u / (len(first) * len(second)) - 1)


def word_of_size(effect: str, size: float) -> str:
    """Return the conventional word for an effect size.

    >>> word_of_size("Cliff's delta", -0.4)
    'medium'
    """
    return _WORDS[sum(abs(size) >= bound for bound in _BOUNDS[effect])]


def chi_square(counts: Sequence[Sequence[int]]) -> ChiSquare | None:
    """Test whether rows and columns are independent; None if a row or a column is empty.

    Args:
        counts: cases by row and column, two of each at least.
    """
    table = np.asarray(counts, np.int64)
    if min(table.shape) < 2 or not (table.sum(axis=0).all() and table.sum(axis=1).all()):
        return None
    found = _scipy().chi2_contingency(table)
    return ChiSquare(float(found.statistic), float(found.pvalue))


# Resampling


def _drawn_means(
    values: Sequence[float], groups: Sequence[str] | None, seed: int
) -> Doubles | None:
    """Return means of samples with replacement; None for fewer than two groups."""
    sums: Doubles = np.asarray(values, np.float64)
    counts: Doubles = np.ones(len(sums))
    if groups is not None:
        _, of = np.unique(np.asarray(groups), return_inverse=True)
        sums = np.asarray(np.bincount(of, sums), np.float64)
        counts = np.asarray(np.bincount(of), np.float64)
    if len(sums) < 2:
        return None
    with warnings.catch_warnings(action="ignore"):  # an interval of no width is one
        found = _scipy().bootstrap(
            (sums, counts),
            lambda s, c, axis: s.sum(axis=axis) / c.sum(axis=axis),
            paired=True,
            vectorized=True,
            n_resamples=RESAMPLES,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    return np.asarray(found.bootstrap_distribution)


def _interval(drawn: Doubles | None) -> tuple[float, float] | None:
    if drawn is None:
        return None
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)
