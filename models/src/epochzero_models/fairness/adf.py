"""ADF: discriminatory instances along gradients.

Zhang, Wang, Sun, Dong, Wang, Wang, Dong and Dai (ICSE 2020, White-box Fairness Testing through Adversarial Sampling),
sections 3.2 (global) and 3.3 (local). All seeds of a round are moved together. Different from the paper, half of the
seeds are drawn from the domain, and the local phase learns which steps lead to new instances: walks that all begin at
rows meet on known instances.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.fairness.domain import Domain
from epochzero_models.fairness.search import SEEDS, Archive, InputCheck, Instances, gathered, walk

STEPS = 10
"""Maximum number of steps of the global phase."""
REFRESH = 10
"""Trials of the local search between two computations of gradients: a ReLU network is locally linear."""
KEEP = 0.98
"""Fraction of the counted steps that a trial of the local search retains."""
PRIOR = 0.01
SMALLEST_GRADIENT = 1e-12
SMALLEST_SHARE = 1e-3
"""Fraction of the largest gradient: smaller influences all count as this much."""


def adf(archive: Archive, data: Tensor, draw: torch.Generator) -> None:
    """Alternate global and local phases until the budget is exhausted.

    Args:
        archive: checks inputs and stores instances; its model has gradients.
        data: rows, from which half of the seeds are drawn, shape (n, attributes).
        draw: random number generator.

    Raises:
        InputError: the model has no gradients.
    """
    local, domain = Local(archive, draw), archive.subject.domain

    def rounds() -> Iterator[Instances]:
        while not archive.over:
            rows = data[torch.randint(len(data), (SEEDS // 2,), generator=draw)]
            seeds = torch.cat((rows, domain.drawn(SEEDS - len(rows), draw)))
            yield global_phase(archive, seeds, draw)

    for levels, partners in gathered(rounds()):
        walk(archive, levels, partners, local, local.learn)


def global_phase(archive: Archive, levels: Tensor, draw: torch.Generator) -> Instances:
    """Move seeds, by at most 10 steps, to inputs that are newly found to be discriminated against.

    An attribute moves in the direction of its gradient if that of the seed and of its most different variant agree; if
    none agrees, one attribute moves at random.

    Returns:
        The instances found and their partners.
    """
    domain = archive.subject.domain
    found: list[Instances] = []
    for step in range(STEPS + 1):
        checked = archive.check(levels)
        found.append((levels[checked.new], checked.partner[checked.new]))
        levels, partner = levels[~checked.new], checked.partner[~checked.new]
        if step == STEPS or not len(levels) or archive.over:
            break
        signs = _gradients(archive, levels, partner).sign()
        direction = torch.where(signs[0] == signs[1], signs[0], 0.0).long() * domain.free
        still = (direction == 0).all(dim=1)
        direction[still] = _random_steps(domain, int(still.sum()), draw)
        levels = (levels + direction).clamp_min(0).minimum(domain.counts - 1)
    instances, partners = zip(*found, strict=True)
    return torch.cat(instances), torch.cat(partners)


class Local:
    """A step of the local phase, preferably along an attribute that hardly affects the output.

    If it learns, steps that have recently led to new instances are preferred, too.
    """

    def __init__(self, archive: Archive, draw: torch.Generator) -> None:
        self.archive, self.draw = archive, draw
        self.weights = torch.empty(0)
        # Recent steps down and up along each attribute, and those of them that led to new instances.
        self.taken = torch.ones(2, len(archive.subject.domain.attributes))
        self.found = self.taken / 2

    def __call__(self, levels: Tensor, partners: Tensor, trial: int) -> Tensor:
        domain = self.archive.subject.domain
        if trial % REFRESH == 0:
            sizes = _gradients(self.archive, levels, partners).abs().sum(dim=0)
            floor = SMALLEST_GRADIENT + sizes.amax(dim=1, keepdim=True) * SMALLEST_SHARE
            gentle = domain.free / sizes.maximum(floor)
            self.weights = (gentle[:, None] * (self.found / self.taken) ** 2).flatten(1)
        chosen = torch.multinomial(self.weights, 1, generator=self.draw)
        attributes = levels.shape[1]
        return domain.moved(levels, chosen % attributes, 2 * (chosen // attributes) - 1)

    def learn(self, steps: Tensor, checked: InputCheck) -> None:
        """Count what the steps led to; what is no longer tried returns to one in two."""
        taken = torch.stack((steps < 0, steps > 0))
        self.taken = KEEP * self.taken + taken.sum(dim=1) + PRIOR
        self.found = KEEP * self.found + (taken & checked.new[:, None]).sum(dim=1) + PRIOR / 2


def _gradients(archive: Archive, levels: Tensor, partners: Tensor) -> Tensor:
    """Return gradients of inputs and of their partners, shape (2, n, attributes).

    Raises:
        InputError: they are not finite.
    """
    found = archive.subject.gradients(torch.cat((levels, partners)))
    if not found.isfinite().all():
        raise InputError(
            f"{archive.subject.classifier.name} has gradients that are NaN or infinite"
        )
    return found.view(2, *levels.shape)


def _random_steps(domain: Domain, count: int, draw: torch.Generator) -> Tensor:
    steps = torch.zeros(count, len(domain.attributes), dtype=torch.int64)
    if count:
        chosen = torch.multinomial(domain.free.float().expand(count, -1), 1, generator=draw)
        signs = torch.randint(2, chosen.shape, generator=draw) * 2 - 1
        steps.scatter_(1, chosen, signs)
    return steps
