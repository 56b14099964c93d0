"""Whether two summaries differ by more than chance, and by enough to matter.

With millions of records a test alone calls any difference significant, so each comparison also asks
for an effect that counts as medium (Cohen, Statistical Power Analysis, 2nd ed., 1988): w = 0.3 for
shares; for distributions d = 0.5, at which Kolmogorov and Smirnov's D of two normal ones is 0.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochzero.data.model import LEVELS, Numbers
from epochzero.data.summary import SAMPLE, Floats

SIGNIFICANT = 0.001
MEDIUM_W = 0.3
MEDIUM_D = 0.2
MEDIUM_Q = 0.3
# An event that is less likely does not happen by chance.
IMPROBABLE = 1e-6


@dataclass(frozen=True, slots=True)
class ShareShift:
    """Classes whose shares differ.

    Attributes:
        worst: the class whose share differs most.
        before, now: its shares.
        probability: of a difference as large, were both drawn from the same source.
        effect: Cohen's w.
    """

    worst: str
    before: float
    now: float
    probability: float
    effect: float


def distribution_distance(known: Numbers, found: Numbers, *, tests: int = 1) -> float | None:
    """Kolmogorov and Smirnov's D of two samples, if it is significant and at least medium.

    Args:
        known, found: their summaries; D is computed from the quantiles.
        tests: how many such tests are made together (Bonferroni's correction).
    """
    sizes = min(known.count, SAMPLE), min(found.count, SAMPLE)
    if not all(sizes):
        return None
    points = np.union1d(known.quantiles, found.quantiles)
    points = np.union1d(points, np.nextafter(points, -math.inf))
    distance = float(np.abs(_share_below(known, points) - _share_below(found, points)).max())
    # The asymptotic critical value (Smirnov, Ann. Math. Stat. 19, 1948).
    critical = math.sqrt(math.log(2 * tests / SIGNIFICANT) / 2 * sum(sizes) / math.prod(sizes))
    return distance if distance >= max(MEDIUM_D, critical) else None


def share_at(numbers: Numbers, value: float) -> float:
    """The share of the numbers that are equal to a value, from the quantiles."""
    below, at = _share_below(numbers, np.array([math.nextafter(value, -math.inf), value]))
    return float(at - below)


def relation_shift(
    pairs: Sequence[tuple[float, float]], count: int, count_now: int, alike: float
) -> float:
    """How far the correlations of a column with others, known and found, are from each other; 0 if that is not much.

    The root of the summed squares of the differences of Fisher's z, less what chance adds (Spearman's z has the
    variance 1.06 / (n - 3): Fieller, Hartley and Pearson, Biometrika 44, 1957). It must be medium (Cohen's q = 0.3),
    a quarter of the squares that are known, and improbable by the chi-square test, with fewer degrees of freedom where
    the columns depend on one another (Satterthwaite, Biometrics Bulletin 2, 1946).

    Args:
        pairs: correlations, known and found.
        count, count_now: records of both.
        alike: mean square of the correlations of all columns.
    """
    before, now = np.arctanh(np.clip(np.array(pairs).T, -0.999, 0.999))
    variance = 1.06 / (count - 3) + 1.06 / (count_now - 3)
    squares = float(np.square(now - before).sum())
    excess = squares - len(before) * variance
    strength = float(np.square(before).sum()) - len(before) * 1.06 / (count - 3)
    if excess < max(MEDIUM_Q**2, strength / 4):
        return 0.0
    share = 1 / (1 + (len(before) - 1) * alike)
    probability = _chi_square_tail(squares / variance * share, len(before) * share)
    return math.sqrt(excess) if probability < IMPROBABLE else 0.0


def _share_below(numbers: Numbers, points: Floats) -> Floats:
    """The distribution function at some points; a value that fills several quantiles is a step."""
    levels = np.array(LEVELS)
    values, first = np.unique(numbers.quantiles, return_index=True)
    last = np.append(first[1:], len(levels)) - 1
    steps = np.stack((np.nextafter(values, -math.inf), values), axis=1).ravel()
    heights = np.stack((levels[first], levels[last]), axis=1).ravel()
    heights[0] = 0.0
    shares: Floats = np.interp(points, steps, heights, left=0.0, right=1.0)
    return shares


def share_shift(known: Mapping[str, int], found: Mapping[str, int]) -> ShareShift | None:
    """Classes of other shares: chi-square test of homogeneity, and Cohen's w as its effect.

    Args:
        known, found: counts by class; only classes of both are compared.
    """
    names = sorted(known.keys() & found.keys())
    if len(names) < 2:
        return None
    before, now = (np.array([counts[name] for name in names], float) for counts in (known, found))
    ratio = math.sqrt(now.sum() / before.sum())
    statistic = float((np.square(ratio * before - now / ratio) / (before + now)).sum())
    shares, shares_now = before / before.sum(), now / now.sum()
    effect = math.sqrt(float((np.square(shares_now - shares) / shares).sum()))
    probability = _chi_square_tail(statistic, len(names) - 1)
    if probability >= SIGNIFICANT or effect < MEDIUM_W:
        return None
    worst = int(np.argmax(np.abs(shares_now - shares)))
    return ShareShift(names[worst], shares[worst], shares_now[worst], probability, effect)


def _chi_square_tail(statistic: float, freedom: float) -> float:
    """Probability that chi-square exceeds a value (Wilson and Hilferty, PNAS 17, 1931)."""
    spread = 2 / (9 * freedom)
    normal = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return math.erfc(normal / math.sqrt(2)) / 2


def share_grew(before: int, total_before: int, now: int, total_now: int) -> bool:
    """Whether a share grew by more than chance: the z-test of two shares."""
    share = (before + now) / (total_before + total_now)
    deviation = math.sqrt(share * (1 - share) * (1 / total_before + 1 / total_now))
    apart = now / total_now - before / total_before
    return deviation > 0 and math.erfc(apart / deviation / math.sqrt(2)) < 2 * SIGNIFICANT


def never_by_chance(share: float, records: int) -> bool:
    """Whether it is improbable that none of so many records is of a class with this share."""
    return (1 - share) ** records < IMPROBABLE


def alphabet_distance(
    known: tuple[tuple[str, float], ...], found: tuple[tuple[str, float], ...]
) -> float:
    """Total variation distance of the shares of characters: 0 alike, 1 nothing in common."""
    before, now = dict(known), dict(found)
    return sum(abs(before.get(c, 0) - now.get(c, 0)) for c in before | now) / 2


def order_ratio(changes: int, counts: Mapping[str, int]) -> float | None:
    """How often the class changes from record to record, relative to a random order.

    Near 1 for a random order, near 0 for sorted records; None if too few changes are expected
    (Wald and Wolfowitz, Ann. Math. Stat. 11, 1940, have the expected number of runs).

    Args:
        changes: how many records are of another class than the one before.
        counts: records by class.
    """
    total = sum(counts.values())
    if not total:
        return None
    expected = total * (1 - sum((count / total) ** 2 for count in counts.values()))
    return changes / expected if expected >= 20 else None
