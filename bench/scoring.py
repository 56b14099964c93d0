"""Gold labels, answers, and the numbers that compare them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from common import SEED, rate

__all__ = [
    "Gold",
    "Scored",
    "accuracy",
    "calibration",
    "interval",
    "macro_f1",
    "per_category",
    "with_interval",
]

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Gold:
    """A labelled failure.

    Attributes:
        id, project: of the case.
        log: its text.
        category, also, root_cause, phase, retry: the label; empty or "unknown" where it has none.
        evidence: hashes of the lines that name the failure.
    """

    id: str
    project: str
    log: str
    category: str
    also: tuple[str, ...] = ()
    root_cause: str = "unknown"
    phase: str = "unknown"
    retry: str = "unknown"
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scored:
    """What a tool said of one case, beside what is true."""

    gold: Gold
    category: str
    root: str = ""
    root_cause: str = ""
    phase: str = ""
    retry: str = ""
    confidence: float = 0.0

    @property
    def exact(self) -> bool:
        """The category is the label."""
        return self.category == self.gold.category

    @property
    def accepted(self) -> bool:
        """The category is the label or one that the label also allows."""
        return self.exact or self.category in self.gold.also

    @property
    def counted(self) -> str:
        """The category for lenient F1: the label where the answer is accepted."""
        return self.gold.category if self.accepted else self.category

    @property
    def has_root(self) -> bool:
        """Whether there is a root line to be found."""
        return bool(self.gold.evidence) and self.gold.category != "not_a_failure"

    @property
    def root_right(self) -> bool:
        return self.root in self.gold.evidence


def accuracy(hits: Iterable[bool]) -> float | None:
    """Share of the hits."""
    values = list(hits)
    return rate(sum(values), len(values))


def per_category(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each category that occurs in the gold labels.

    Args:
        pairs: the gold category and the answered one of each case.
    """
    counted = Counter(pairs)
    gold: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for (true, said), number in counted.items():
        gold[true] += number
        answered[said] += number
    scores: dict[str, dict[str, float]] = {}
    for category, number in sorted(gold.items()):
        right = counted[category, category]
        precision = right / answered[category] if answered[category] else 0.0
        recall = right / number
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        scores[category] = {
            "n": number,
            "precision": round(precision, 3),
            "recall": round(recall, 3),
            "f1": round(f1, 4),
        }
    return scores


def macro_f1(pairs: Iterable[tuple[str, str]]) -> float | None:
    """Mean F1 over the categories that occur in the gold labels."""
    scores = [score["f1"] for score in per_category(pairs).values()]
    return rate(sum(scores), len(scores))


def interval(
    scored: Sequence[Scored], measure: Callable[[Sequence[Scored]], float | None]
) -> list[float] | None:
    """A 95 % bootstrap interval of a measure; projects are drawn, not cases."""
    projects: dict[str, list[Scored]] = {}
    for each in scored:
        projects.setdefault(each.gold.project, []).append(each)
    groups = list(projects.values())
    draw = random.Random(SEED)
    values: list[float] = []
    for _ in range(RESAMPLES):
        sample = [each for group in draw.choices(groups, k=len(groups)) for each in group]
        if (value := measure(sample)) is not None:
            values.append(value)
    if not values:
        return None
    values.sort()
    return [values[int(0.025 * len(values))], values[int(0.975 * len(values))]]


def with_interval(
    scored: Sequence[Scored], measure: Callable[[Sequence[Scored]], float | None]
) -> Mapping[str, object]:
    """A measure with its interval."""
    return {"value": measure(scored), "interval_95": interval(scored, measure)}


def calibration(scored: Sequence[Scored]) -> Mapping[str, object]:
    """How far the stated confidence is the share of right categories."""
    edges = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)
    bins: list[dict[str, object]] = []
    error = 0.0
    for low, high in pairwise(edges):
        inside = [each for each in scored if low <= each.confidence < high]
        if not inside:
            continue
        stated = sum(each.confidence for each in inside) / len(inside)
        right = sum(each.exact for each in inside) / len(inside)
        error += abs(stated - right) * len(inside)
        bins.append(
            {
                "confidence": f"{low:.1f}-{min(high, 1.0):.1f}",
                "n": len(inside),
                "mean_confidence": round(stated, 3),
                "accuracy": round(right, 3),
            }
        )
    brier = sum((each.confidence - each.exact) ** 2 for each in scored)
    return {
        "bins": bins,
        "expected_error": rate(error, len(scored)),
        "brier": rate(brier, len(scored)),
    }
