"""What the localization benchmarks count: ranks, measures, tables, tests and effect sizes."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from common import SEED
from localization_data import Measured
from split import held

from epochzero.study.localization.ranks import TOPS, Ranked

__all__ = [
    "against",
    "cliffs_delta",
    "drawn_means",
    "parts",
    "show",
    "table",
    "wilcoxon",
]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ranks = Mapping[str, Sequence[Ranked]]

DRAWS = 2000
FEW_FILES = range(2, 6)


def table(ranks: Sequence[Ranked]) -> Mapping[str, float]:
    """MAP, MRR, Top@k (any file of the fix among the first k) and ``all_10`` (all of them)."""
    if not ranks:
        return {"bugs": 0}
    first = np.array([rank.first for rank in ranks])
    return {
        "bugs": len(ranks),
        "map": round(statistics.fmean(rank.precision for rank in ranks), 4),
        "mrr": round(float(np.mean(1 / first)), 4),
        **{f"top_{top}": round(float(np.mean(first <= top)), 4) for top in TOPS},
        "all_10": round(float(np.mean([rank.last <= 10 for rank in ranks])), 4),
    }


def parts(asked: Sequence[Measured]) -> Mapping[str, list[int]]:
    """The bugs of each table."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, measured in enumerate(asked):
        for part in _parts(measured):
            found[part].append(number)
    return dict(sorted(found.items()))


def _parts(measured: Measured) -> Iterator[str]:
    """The tables in which a bug counts."""
    yield "all"
    yield "held-out half" if held(measured.example.bug) else "development half"
    yield "localized" if measured.localized else "not localized"
    if measured.knows_fix:
        yield "reporter knows a fix"
    if len(measured.example.wanted) in FEW_FILES:
        yield f"{FEW_FILES[0]} to {FEW_FILES[-1]} files"
    if measured.extrinsic is not None:
        yield "extrinsic" if measured.extrinsic else "intrinsic"
    if measured.kind:
        yield f"type {measured.kind}"
    yield from (f"class {name}" for name in measured.classes)
    yield f"project {measured.example.project}"


def show(part: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Prints a table."""
    for name, numbers in rows.items():
        told = "  ".join(f"{key} {value}" for key, value in numbers.items())
        print(f"{part:16s} {name:14s} {told}")


# -- Tests ---------------------------------------------------------------------------------------


def against(name: str, ranks: Ranks, projects: Sequence[str]) -> Mapping[str, object]:
    """The average precision of one ranking against each other's, bug by bug.

    Args:
        name: of the one.
        ranks: of each ranking, on the same bugs.
        projects: of each bug.

    Returns:
        For each other: the mean difference; its 95 % interval by a bootstrap that draws whole
        projects, as the bugs of one are alike; how many bugs are better, equal and worse; p of
        Wilcoxon's signed-rank test; Cohen's d of the paired differences; Cliff's delta.
    """
    own = _precision(ranks[name])
    return {
        other: _compared(own, _precision(found), projects)
        for other, found in ranks.items()
        if other != name
    }


def _precision(ranks: Sequence[Ranked]) -> Doubles:
    return np.array([rank.precision for rank in ranks])


def _compared(own: Doubles, other: Doubles, projects: Sequence[str]) -> Mapping[str, object]:
    difference = own - other
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    return {
        "mean": round(float(difference.mean()), 4),
        "interval": _interval(difference, projects),
        "better_equal_worse": [int((np.sign(difference) == sign).sum()) for sign in (1, 0, -1)],
        "wilcoxon_p": float(f"{wilcoxon(difference):.2g}"),
        "cohens_d": round(float(difference.mean()) / spread, 3) if spread else 0.0,
        "cliffs_delta": round(cliffs_delta(own, other), 3),
    }


def _interval(difference: Doubles, projects: Sequence[str]) -> list[float]:
    means = drawn_means(difference, projects)
    return [round(float(edge), 4) for edge in np.quantile(means, (0.025, 0.975))]


def drawn_means(values: Doubles, projects: Sequence[str]) -> Doubles:
    """The means of values over projects drawn with replacement, one number a draw.

    Args:
        values: one a bug.
        projects: of each bug.
    """
    names, of = np.unique(np.array(projects), return_inverse=True)
    sums, counts = np.bincount(of, values), np.bincount(of)
    drawn = np.random.default_rng(SEED).integers(0, len(names), (DRAWS, len(names)))
    return np.asarray(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))


def wilcoxon(difference: Doubles) -> float:
    """Two-sided p of the signed-rank test, by the normal approximation with ties counted.

    Equal pairs are left out. F. Wilcoxon: "Individual Comparisons by Ranking Methods", Biometrics
    Bulletin 1(6), 1945.
    """
    kept = difference[difference != 0]
    n = len(kept)
    if not n:
        return 1.0
    _, of, ties = np.unique(np.abs(kept), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[of]
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties.astype(float) ** 3 - ties).sum()) / 48
    z = (float(ranks[kept > 0].sum()) - n * (n + 1) / 4) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


def cliffs_delta(own: Doubles, other: Doubles) -> float:
    """How much likelier a value of ``own`` is above one of ``other`` than below, -1 to 1.

    N. Cliff: "Dominance Statistics: Ordinal Analyses to Answer Ordinal Questions", Psychological
    Bulletin 114(3), 1993.
    """
    ordered = np.sort(other)
    below = np.searchsorted(ordered, own, "left").sum()
    above = (len(other) - np.searchsorted(ordered, own, "right")).sum()
    return float((below - above) / (len(own) * len(other)))
