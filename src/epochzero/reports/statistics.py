"""Statistics of a report: intervals of shares, and agreement of two raters.

Each has its textbook definition and is tested against scikit-learn. Undefined values, such as kappa if both raters
always give the same class, are None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
_Z = 1.959963984540054
"""Quantile of the normal distribution for 95 %."""
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95 % interval; None if it is undefined."""

    value: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class ClassAgreement:
    """Agreement of predicted with true classes, or of two raters.

    Attributes:
        classes: sorted classes that occur on either side.
        matrix: cases by true class (rows) and predicted class (columns), shape (classes, classes).
    """

    classes: tuple[str, ...]
    matrix: Counts
    accuracy: Estimate
    macro_f1: Estimate
    kappa: Estimate

    @property
    def n(self) -> int:
        return int(self.matrix.sum())


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Precision and recall (None if undefined), F1, and the numbers of true and predicted cases of a class."""

    name: str
    precision: float | None
    recall: float | None
    f1: float
    true: int
    predicted: int


def wilson(part: int, whole: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a share (Wilson 1927, score interval); None without cases.

    >>> low, high = wilson(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    """
    if whole <= 0:
        return None
    share, square = part / whole, _Z * _Z
    middle = (share + square / (2 * whole)) / (1 + square / whole)
    half = _Z * math.sqrt(share * (1 - share) / whole + square / (4 * whole * whole))
    half /= 1 + square / whole
    low = 0.0 if part == 0 else middle - half
    return low, 1.0 if part == whole else middle + half


def confusion(
    true: Sequence[str], predicted: Sequence[str], classes: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Counts]:
    """Count cases by true class (rows) and predicted class (columns).

    Args:
        true, predicted: a class for each case.
        classes: all classes, in order; if None, those that occur, sorted.

    Raises:
        ValueError: the two have different lengths.
    """
    words = tuple(sorted({*true, *predicted}) if classes is None else classes)
    number = {word: at for at, word in enumerate(words)}
    matrix = np.zeros((len(words), len(words)), np.int64)
    for a, b in zip(true, predicted, strict=True):
        matrix[number[a], number[b]] += 1
    return words, matrix


def accuracy(matrix: Counts) -> float | None:
    """Return the share of cases on the diagonal; None without cases."""
    total = matrix.sum()
    return float(np.trace(matrix) / total) if total else None


def macro_f1(matrix: Counts) -> float | None:
    """Return the mean F1 of all classes that occur on either side; None without cases."""
    both = matrix.sum(axis=0) + matrix.sum(axis=1)
    present = both > 0
    if not present.any():
        return None
    return float((2 * np.diag(matrix)[present] / both[present]).mean())


def kappa(matrix: Counts) -> float | None:
    """Return Cohen's kappa (Cohen 1960); None if chance agreement is certain, or without cases."""
    total = matrix.sum()
    if not total:
        return None
    chance = float((matrix.sum(axis=0) * matrix.sum(axis=1)).sum()) / float(total) ** 2
    if chance >= 1.0:
        return None
    return float((np.trace(matrix) / total - chance) / (1 - chance))


def fleiss_kappa(counts: Counts) -> float | None:
    """Return the agreement of two or more raters (Fleiss 1971); None if chance agreement is certain.

    Args:
        counts: number of raters that gave each class, shape (cases, classes); the same number of raters, at
            least two, for every case.
    """
    raters = counts.sum(axis=1)
    if not raters.size or raters.min() != raters.max() or raters[0] < 2:
        return None
    n = int(raters[0])
    agreed = float(((counts * counts).sum(axis=1) - n).mean()) / (n * (n - 1))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return None if chance >= 1.0 else (agreed - chance) / (1 - chance)


def class_scores(classes: Sequence[str], matrix: Counts) -> list[ClassScores]:
    """Return precision, recall and F1 of each class, in the order of the classes."""
    scores = []
    for at, name in enumerate(classes):
        right = int(matrix[at, at])
        true, predicted = int(matrix[at].sum()), int(matrix[:, at].sum())
        scores.append(
            ClassScores(
                name=name,
                precision=right / predicted if predicted else None,
                recall=right / true if true else None,
                f1=2 * right / (true + predicted) if true + predicted else 0.0,
                true=true,
                predicted=predicted,
            )
        )
    return scores


def agreement(
    true: Sequence[str],
    predicted: Sequence[str],
    groups: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> ClassAgreement:
    """Return the agreement of two raters with 95 % bootstrap intervals.

    Args:
        true, predicted: a class for each case.
        groups: group of each case, such as its project; then whole groups are drawn (cluster bootstrap; Davison and
            Hinkley 1997, section 3.8). None to draw cases.
        seed: of the bootstrap.

    Raises:
        ValueError: the sequences have different lengths.
    """
    classes, matrix = confusion(true, predicted)
    number = {word: at for at, word in enumerate(classes)}
    cells = np.fromiter(
        (number[a] * len(classes) + number[b] for a, b in zip(true, predicted, strict=True)),
        np.int64,
        len(true),
    )
    resampled = _resampled(cells, groups, len(classes), seed)

    def estimate(statistic: Callable[[Counts], float | None]) -> Estimate:
        values = [value for array in resampled if (value := statistic(array)) is not None]
        if not values:
            return Estimate(statistic(matrix))
        low, high = np.quantile(values, (0.025, 0.975))
        return Estimate(statistic(matrix), (float(low), float(high)))

    return ClassAgreement(classes, matrix, estimate(accuracy), estimate(macro_f1), estimate(kappa))


def _resampled(
    cells: Counts, groups: Sequence[str] | None, classes: int, seed: int
) -> list[Counts]:
    """Return the confusion matrices of `RESAMPLES` samples with replacement, of cases or of whole groups."""
    if not cells.size:
        return []
    draw = np.random.default_rng(seed)
    size, shape = classes * classes, (classes, classes)
    if groups is None:
        # Drawing cases is equivalent to drawing the counts of all cells at once.
        counts = np.bincount(cells, minlength=size)
        drawn = draw.multinomial(cells.size, counts / cells.size, RESAMPLES)
        return [value.reshape(shape) for value in drawn]
    if len(groups) != cells.size:
        raise ValueError("one group per case is required")
    _, of_case = np.unique(np.asarray(groups), return_inverse=True)
    count = int(of_case.max()) + 1
    found = []
    for _ in range(RESAMPLES):
        weights = np.bincount(draw.integers(count, size=count), minlength=count)
        sums = np.bincount(cells, weights=weights[of_case], minlength=size)
        found.append(sums.astype(np.int64).reshape(shape))
    return found
