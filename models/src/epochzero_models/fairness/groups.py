"""Group fairness: do errors and decisions differ between the groups of a protected attribute?

Demographic parity compares how often groups get the positive class, equalized odds their true and false positive
rates (Hardt, Price and Srebro, NeurIPS 2016), predictive parity their precision (Chouldechova 2017), and calibration the
predicted probability with what happened. Not all can hold at once if base rates differ (Kleinberg et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochzero.reports.statistics import Estimate, wilson
from epochzero_models.bootstrap import Counts, estimate_of_kinds
from epochzero_models.fairness.table import PeopleTable

MOST_GROUPS = 10
"""Of more values than these, a numeric attribute has its quarters as groups."""
LEAST_ROWS = 10
"""Groups with fewer rows have no part in differences."""
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Rate = Callable[[Flags, Flags], tuple[Flags, Flags]]
"""Predicted positive, labelled positive -> the rows that count, and those among which they count, each of shape (n,)."""

RATES: Mapping[str, Rate] = {
    "selected": lambda predicted, labels: (predicted, np.ones_like(predicted)),
    "true positive": lambda predicted, labels: (predicted & labels, labels),
    "false positive": lambda predicted, labels: (predicted & ~labels, ~labels),
    "precision": lambda predicted, labels: (predicted & labels, predicted),
}
CRITERIA: Mapping[str, tuple[str, ...]] = {
    "demographic parity": ("selected",),
    "equalized odds": ("true positive", "false positive"),
    "predictive parity": ("precision",),
}
"""The rates that each requires to be equal."""


@dataclass(frozen=True, slots=True)
class Group:
    """What happens to the people of a group.

    Attributes:
        attribute, value: which group.
        rows: number of people.
        rates: of `RATES`, by name.
        overconfidence: mean predicted probability of the positive class less its share among the labels.
    """

    attribute: str
    value: str
    rows: int
    rates: Mapping[str, Estimate]
    overconfidence: float


@dataclass(frozen=True, slots=True)
class Disparity:
    """How much the groups of an attribute differ.

    Attributes:
        attribute: which groups.
        criterion: of `CRITERIA`.
        difference: the largest difference of a rate between two groups; of several rates, the largest. The interval is
            that of the difference of these groups, and may begin below 0.
    """

    attribute: str
    criterion: str
    difference: Estimate


@dataclass(frozen=True, slots=True)
class Mitigation:
    """What would make groups selected equally often, measured on rows that had no part in it.

    Attributes:
        attribute: which groups.
        method: ``thresholds``, one for each group, or ``reweighing`` of the training rows.
        thresholds: probability of the positive class from which a group is selected; empty for reweighing.
        difference_before, difference: the largest difference in how often groups are selected.
        accuracy_before, accuracy: of the decisions.
    """

    attribute: str
    method: str
    thresholds: Mapping[str, float]
    difference_before: Estimate
    difference: Estimate
    accuracy_before: Estimate
    accuracy: Estimate

    @property
    def reduces(self) -> bool:
        """Whether the groups differ less than before; thresholds of small groups often do not hold on other rows."""
        before, after = self.difference_before.value, self.difference.value
        return before is not None and after is not None and after < before


@dataclass(frozen=True, slots=True)
class GroupFairness:
    """Group fairness of a model with two classes.

    Attributes:
        positive: name of the class that counts as selected.
        groups: by attribute.
        disparities: by attribute and criterion.
        mitigations: how far they would reduce the disparity of selection.
    """

    positive: str
    groups: tuple[Group, ...]
    disparities: tuple[Disparity, ...]
    mitigations: tuple[Mitigation, ...]


def measure_groups(people: PeopleTable, probabilities: Numbers, seed: int) -> GroupFairness:
    """Compares the groups of each protected attribute.

    Args:
        people: the rows with their labels.
        probabilities: of the second class, shape (n,).
        seed: of the bootstrap.
    """
    predicted, labels = probabilities > 0.5, people.labels.numpy() == 1
    counted = {name: rate(predicted, labels) for name, rate in RATES.items()}
    groups: list[Group] = []
    disparities: list[Disparity] = []
    mitigations: list[Mitigation] = []
    for at in people.domain.protected:
        name = people.domain.attributes[at].name
        members = _members(people, at)
        for value, rows in members.items():
            rates = {
                key: _share(int((hits & rows).sum()), int((of & rows).sum()))
                for key, (hits, of) in counted.items()
            }
            excess = float(probabilities[rows].mean() - labels[rows].mean())
            groups.append(Group(name, value, int(rows.sum()), rates, excess))
        compared = [rows for rows in members.values() if rows.sum() >= LEAST_ROWS]
        for criterion, wanted in CRITERIA.items():
            gap = _gap(compared, predicted, labels, wanted, seed)
            disparities.append(Disparity(name, criterion, gap))
        mitigations.append(_thresholds(name, members, probabilities, labels, seed))
    return GroupFairness(people.called(1), tuple(groups), tuple(disparities), tuple(mitigations))


def _thresholds(
    attribute: str, members: Mapping[str, Flags], probabilities: Numbers, labels: Flags, seed: int
) -> Mitigation:
    """Thresholds that one half of the rows chooses, at the share of rows that is selected now; the other half measures them."""
    choosing = np.random.default_rng(seed).random(len(labels)) < 0.5
    rest = 1 - (probabilities[choosing] > 0.5).mean()
    chosen: dict[str, float] = {}
    each = np.full(len(labels), 0.5)
    for value, rows in members.items():
        if (rows & choosing).sum() >= LEAST_ROWS:
            chosen[value] = float(np.quantile(probabilities[rows & choosing], rest))
            each[rows] = chosen[value]
    decisions = probabilities > 0.5, probabilities > each
    measured = _compared(members, decisions, labels, ~choosing, seed)
    return Mitigation(attribute, "thresholds", chosen, *measured)


def measure_reweighing(
    people: PeopleTable, before: Flags, after: Flags, rest: Flags, seed: int
) -> tuple[Mitigation, ...]:
    """Return what reweighing changes for each protected attribute.

    Args:
        people: all rows.
        before, after: predictions of the positive class without and with reweighing, shape (n,).
        rest: the rows without a part in the training, shape (n,).
        seed: of the bootstrap.
    """
    labels = people.labels.numpy() == 1
    return tuple(
        Mitigation(
            people.domain.attributes[at].name, "reweighing", {},
            *_compared(_members(people, at), (before, after), labels, rest, seed),
        )
        for at in people.domain.protected
    )  # fmt: skip


def reweighing(people: PeopleTable) -> Numbers:
    """Return a weight for each row, with which labels do not depend on protected attributes (Kamiran and Calders 2012).

    It is the share of the row's group times that of its label, over the share of both together; a group is a combination
    of the groups of all protected attributes.
    """
    group = np.zeros(len(people.labels), np.int64)
    for at in people.domain.protected:
        members = _members(people, at)
        group = group * len(members) + np.argmax(list(members.values()), axis=0)
    _, both = np.unique(np.stack((group, people.labels.numpy())), axis=1, return_inverse=True)
    sizes = [np.bincount(key)[key] for key in (group, people.labels.numpy(), both.reshape(-1))]
    weights: Numbers = sizes[0] * sizes[1] / (len(group) * sizes[2])
    return weights


def _compared(
    members: Mapping[str, Flags],
    decisions: tuple[Flags, Flags],
    labels: Flags,
    rows: Flags,
    seed: int,
) -> tuple[Estimate, Estimate, Estimate, Estimate]:
    """Differences of selection before and after, and accuracies before and after, on some rows."""
    groups = [flags[rows] for flags in members.values() if (flags & rows).sum() >= LEAST_ROWS]
    right = labels[rows]
    wanted = CRITERIA["demographic parity"]
    gaps = [_gap(groups, decided[rows], right, wanted, seed) for decided in decisions]
    hits = [_share(int((decided[rows] == right).sum()), len(right)) for decided in decisions]
    return gaps[0], gaps[1], hits[0], hits[1]


def _members(people: PeopleTable, at: int) -> dict[str, Flags]:
    """The rows of each group of an attribute, by its value or range of values."""
    attribute, levels = people.domain.attributes[at], people.levels[:, at].numpy()
    seen = np.unique(levels)
    if attribute.texts or len(seen) <= MOST_GROUPS:
        return {attribute.shown(int(level)): levels == level for level in seen}
    edges = np.unique(np.quantile(levels, (0, 0.25, 0.5, 0.75, 1), method="lower"))
    found: dict[str, Flags] = {}
    for low, high in pairwise(edges):
        rows = (levels >= low) & ((levels < high) | (high == edges[-1]))
        inside = levels[rows]
        ends = (attribute.shown(int(inside.min())), attribute.shown(int(inside.max())))
        found[" to ".join(ends)] = rows
    return found


def _gap(
    members: Sequence[Flags], predicted: Flags, labels: Flags, wanted: Sequence[str], seed: int
) -> Estimate:
    """Return the largest difference between two groups, with the interval of the difference of these two.

    The largest difference of a sample is too large on average, so that its interval would lie above it.
    """
    group = np.full(len(labels), -1)
    for number, rows in enumerate(members):
        group[rows] = number
    kinds, counts = np.unique(np.stack((group, predicted, labels)), axis=1, return_counts=True)
    rates = [RATES[name](kinds[1] == 1, kinds[2] == 1) for name in wanted]

    def shares(counts: Counts, rate: int) -> Numbers:
        hits, of = (_by_group(kinds[0], counts * part, len(members)) for part in rates[rate])
        found: Numbers = np.divide(hits, of, out=np.full(len(members), np.nan), where=of > 0)
        return found

    pairs = [
        (values[high] - values[low], rate, high, low)
        for rate, values in enumerate(shares(counts, rate) for rate in range(len(rates)))
        for high, low in permutations(np.flatnonzero(~np.isnan(values)), 2)
    ]
    if not pairs:
        return Estimate(None)
    _, rate, high, low = max(pairs)

    def gap(counts: Counts) -> float | None:
        values = shares(counts, rate)
        difference = float(values[high] - values[low])
        return None if np.isnan(difference) else difference

    return estimate_of_kinds(gap, counts, seed)


def _by_group(group: NDArray[Any], weights: NDArray[Any], number: int) -> Numbers:
    sums = np.bincount(group + 1, weights, number + 1)[1:]
    return sums.astype(np.float64)


def _share(part: int, whole: int) -> Estimate:
    return Estimate(part / whole, wilson(part, whole)) if whole else Estimate(None)
