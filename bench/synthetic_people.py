"""Tables with known discrimination, to measure how much of it a search finds.

People are drawn uniformly from a domain. A score of the attributes that are not protected decides who is accepted; in a
region, a group's score is lowered by a shift. The truth discriminates against an input exactly if its score is between 0
and the shift of a region that contains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from epochzero_models.fairness import PeopleTable
from epochzero_models.fairness.domain import Attribute, Domain

ROWS = 8000
PROTECTED = {"sex": 2, "origin": 4}
WEIGHTS = {
    "age": 0.4,
    "schooling": 1.0,
    "job": -0.6,
    "hours": 0.8,
    "savings": 1.0,
    "debts": -0.9,
    "region": 0.0,
}
LEVELS = {
    "age": 50,
    "schooling": 16,
    "job": 12,
    "hours": 40,
    "savings": 30,
    "debts": 20,
    "region": 10,
}
# Tables with so few inputs that all can be enumerated.
COUNTABLE: Mapping[str, Mapping[str, int]] = {
    "medium": {"sex": 2, "schooling": 12, "job": 8, "hours": 20, "savings": 20, "debts": 16},
    "small": {"sex": 2, "schooling": 12, "job": 8, "hours": 10, "savings": 12},
}


@dataclass(frozen=True, slots=True)
class Region:
    """A region in which a group is discriminated against.

    Attributes:
        name: of the region.
        group: level of each protected attribute of the group.
        shift: by which its score is lowered, in standard deviations of the score.
        within: lowest and highest level of attributes; empty for the whole domain.
    """

    name: str
    group: Mapping[str, int]
    shift: float
    within: Mapping[str, tuple[int, int]] = field(default_factory=dict)


KINDS: Mapping[str, tuple[Region, ...]] = {
    "everywhere": (Region("everywhere", {"sex": 1}, 0.3),),
    "region": (Region("night work", {"sex": 1}, 1.5, {"job": (3, 5), "hours": (20, 39)}),),
    "intersection": (Region("women of an origin", {"sex": 1, "origin": 2}, 0.8),),
    "several": (
        Region("rich", {"sex": 1}, 1.0, {"savings": (20, 29)}),
        Region("young", {"origin": 1}, 1.0, {"age": (0, 14)}),
        Region("a job", {"origin": 3}, 1.5, {"job": (8, 9), "schooling": (8, 15)}),
    ),
    "rare": (Region("a job in few regions", {"sex": 1}, 3.0, {"job": (4, 4), "region": (0, 1)}),),
    "medium": (Region("late", {"sex": 1}, 1.0, {"hours": (10, 19)}),),
    "small": (Region("late", {"sex": 1}, 1.0, {"hours": (5, 9)}),),
}
"""By name."""


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A table with its truth.

    Attributes:
        kind: one of `KINDS`.
        domain: possible inputs.
        regions: in which it discriminates.
        levels: the rows, shape (n, attributes).
        labels: 1 if accepted, shape (n,).
    """

    kind: str
    domain: Domain
    regions: tuple[Region, ...]
    levels: Tensor
    labels: Tensor

    def discriminates(self, levels: Tensor, region: Region) -> Tensor:
        """Whether the truth discriminates against an input by a region, for any group; shape (n,)."""
        score = _score(self.domain, levels)
        return (score > 0) & (score <= region.shift) & _inside(self.domain, levels, region)

    @property
    def people(self) -> PeopleTable:
        """The table without its truth."""
        return PeopleTable(f"synthetic:{self.kind}", self.domain, self.levels, self.labels)


def synthesize_discrimination(kind: str, rows: int = ROWS, seed: int = 0) -> Synthetic:
    """Return a table with known discrimination.

    Args:
        kind: one of `KINDS`.
        rows: number of rows.
        seed: of the draw.
    """
    counts = COUNTABLE.get(kind, {**PROTECTED, **LEVELS})
    attributes = tuple(
        Attribute(name, tuple(float(level) for level in range(count)))
        for name, count in counts.items()
    )
    domain = Domain(attributes, tuple(at for at, name in enumerate(counts) if name in PROTECTED))
    levels = domain.drawn(rows, torch.Generator().manual_seed(seed))
    score = _score(domain, levels)
    for region in KINDS[kind]:
        lowered = _inside(domain, levels, region)
        for name, level in region.group.items():
            lowered = lowered & (levels[:, _at(domain, name)] == level)
        score = score - region.shift * lowered
    return Synthetic(kind, domain, KINDS[kind], levels, (score > 0).long())


def _score(domain: Domain, levels: Tensor) -> Tensor:
    """Return a score with mean 0 and standard deviation 1 over the domain."""
    weights = torch.tensor([WEIGHTS.get(one.name, 0.0) for one in domain.attributes])
    # Standard deviation of integers drawn uniformly from 0 to count - 1.
    spread = ((domain.counts**2 - 1) / 12).sqrt()
    return torch.mv(
        (levels - (domain.counts - 1) / 2) / spread, weights / torch.linalg.norm(weights)
    )


def _inside(domain: Domain, levels: Tensor, region: Region) -> Tensor:
    inside = torch.ones(len(levels), dtype=torch.bool)
    for name, (low, high) in region.within.items():
        column = levels[:, _at(domain, name)]
        inside &= (column >= low) & (column <= high)
    return inside


def _at(domain: Domain, name: str) -> int:
    return next(at for at, one in enumerate(domain.attributes) if one.name == name)
