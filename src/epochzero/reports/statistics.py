"""The statistics of a report: intervals of shares, and how far two raters agree.

Each has its textbook form and is tested against scikit-learn. Where a value is not defined, such as
kappa when both raters always say the same, it is None and never a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
_Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval of 95 %; None where it is not defined."""

    value: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far what was said agrees with what is true, or one rater with another.

    Attributes:
        classes: the words, sorted, that came on either side.
        matrix: cases by true class (rows) and said class (columns), shape (classes, classes).
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
    """Of one class: precision and recall (None without a case to divide by), F1, cases of either side."""

    name: str
    precision: float | None
    recall: float | None
    f1: float
    true: int
    said: int


def wilson(part: int, whole: int) -> tuple[float, float] | None:
    """The interval of 95 % of a share (Wilson 1927, the score interval); None of no cases.

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
    true: Sequence[str], said: Sequence[str], classes: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Counts]:
    """Cases by true class (rows) and said class (columns).

    Args:
        true, said: a class for each case.
        classes: all classes, in the order wanted; those that come, sorted, when None.

    Raises:
        ValueError: the two are not equally long.
    """
    words = tuple(sorted({*true, *said}) if classes is None else classes)
    number = {word: at for at, word in enumerate(words)}
    matrix = np.zeros((len(words), len(words)), np.int64)
    for a, b in zip(true, said, strict=True):
        matrix[number[a], number[b]] += 1
    return words, matrix


def accuracy(matrix: Counts) -> float | None:
    """The share of cases on the diagonal; None of no cases."""
    total = matrix.sum()
    return float(np.trace(matrix) / total) if total else None


def macro_f1(matrix: Counts) -> float | None:
    """The mean F1 of all classes that come on either side; None of no cases."""
    both = matrix.sum(axis=0) + matrix.sum(axis=1)
    present = both > 0
    if not present.any():
        return None
    return float((2 * np.diag(matrix)[present] / both[present]).mean())


def kappa(matrix: Counts) -> float | None:
    """Cohen's kappa (Cohen 1960); None where agreement by chance is certain, or of no cases."""
    total = matrix.sum()
    if not total:
        return None
    chance = float((matrix.sum(axis=0) * matrix.sum(axis=1)).sum()) / float(total) ** 2
    if chance >= 1.0:
        return None
    return float((np.trace(matrix) / total - chance) / (1 - chance))


def fleiss_kappa(counts: Counts) -> float | None:
    """Agreement of three raters or more (Fleiss 1971); None where chance agreement is certain.

    Args:
        counts: how many raters gave each class, shape (cases, classes); the same number of raters for
            every case, two at least.
    """
    raters = counts.sum(axis=1)
    if not raters.size or raters.min() != raters.max() or raters[0] < 2:
        return None
    n = int(raters[0])
    agreed = float(((counts * counts).sum(axis=1) - n).mean()) / (n * (n - 1))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return None if chance >= 1.0 else (agreed - chance) / (1 - chance)


def class_scores(classes: Sequence[str], matrix: Counts) -> list[ClassScores]:
    """Precision, recall and F1 of each class, in the order of the classes."""
    scores = []
    for at, name in enumerate(classes):
        right = int(matrix[at, at])
        true, said = int(matrix[at].sum()), int(matrix[:, at].sum())
        scores.append(
            ClassScores(
                name=name,
                precision=right / said if said else None,
                recall=right / true if true else None,
                f1=2 * right / (true + said) if true + said else 0.0,
                true=true,
                said=said,
            )
        )
    return scores


def agreement(
    true: Sequence[str],
    said: Sequence[str],
    groups: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> Agreement:
    """How far two raters agree, with intervals of 95 % by the bootstrap.

    Args:
        true, said: a class for each case.
        groups: what cases have in common, such as their project: whole groups are drawn then
            (cluster bootstrap; Davison and Hinkley 1997, section 3.8). Cases by themselves when None.
        seed: of the draws.

    Raises:
        ValueError: the sequences are not equally long.
    """
    classes, matrix = confusion(true, said)
    number = {word: at for at, word in enumerate(classes)}
    cells = np.fromiter(
        (number[a] * len(classes) + number[b] for a, b in zip(true, said, strict=True)),
        np.int64,
        len(true),
    )
    resampled = _resampled(cells, groups, len(classes), seed)

    def estimate(statistic: Callable[[Counts], float | None]) -> Estimate:
        values = [value for one in resampled if (value := statistic(one)) is not None]
        if not values:
            return Estimate(statistic(matrix))
        low, high = np.quantile(values, (0.025, 0.975))
        return Estimate(statistic(matrix), (float(low), float(high)))

    return Agreement(classes, matrix, estimate(accuracy), estimate(macro_f1), estimate(kappa))


def _resampled(
    cells: Counts, groups: Sequence[str] | None, classes: int, seed: int
) -> list[Counts]:
    """The confusion matrices of `RESAMPLES` draws with replacement, of cases or of whole groups."""
    if not cells.size:
        return []
    draw = np.random.default_rng(seed)
    size, shape = classes * classes, (classes, classes)
    if groups is None:
        # To draw cases one by one is to draw their numbers by cell at once.
        counts = np.bincount(cells, minlength=size)
        drawn = draw.multinomial(cells.size, counts / cells.size, RESAMPLES)
        return [one.reshape(shape) for one in drawn]
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
