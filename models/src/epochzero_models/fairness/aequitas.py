"""AEQUITAS: random inputs, then a walk around those that discriminate which learns where to go.

Udeshi, Arora and Chattopadhyay (ASE 2018, Automated Directed Fairness Testing), the fully directed strategy. It needs no
gradients. All instances of a round walk together and learn from one another after each step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from epochzero_models.fairness.search import SEEDS, Archive, chance, gathered, walk

CHANGE = 0.001
"""By how much a probability changes with an outcome."""


def aequitas(archive: Archive, draw: torch.Generator, seeds: int = SEEDS) -> None:
    """Global and local phase in turns, until the budget is spent.

    Args:
        archive: checks and keeps.
        draw: of all that is random.
        seeds: of a round.
    """
    directed = Directed(archive, draw)
    rounds = (
        (levels[checked.new], checked.partner[checked.new])
        for levels, checked in chance(archive, draw, seeds)
    )
    for levels, partners in gathered(rounds):
        walk(archive, levels, partners, directed, directed.learn)


class Directed:
    """Chooses an attribute and a direction by how often they have led to discrimination."""

    def __init__(self, archive: Archive, draw: torch.Generator) -> None:
        self.domain, self.draw = archive.subject.domain, draw
        self.attributes = self.domain.free / self.domain.free.sum()
        self.down = torch.full(self.attributes.shape, 0.5)

    def __call__(self, levels: Tensor, partners: Tensor, trial: int) -> Tensor:
        probabilities = self.attributes.expand(len(levels), -1)
        chosen = torch.multinomial(probabilities, 1, generator=self.draw)
        random = torch.rand(chosen.shape, generator=self.draw)
        signs = torch.where(random < self.down[chosen], -1, 1)
        return self.domain.moved(levels, chosen, signs)

    def learn(self, steps: Tensor, discriminates: Tensor) -> None:
        """What led to discrimination becomes likelier, what did not less likely."""
        outcome = torch.where(discriminates, CHANGE, -CHANGE)[:, None]
        moved = steps != 0
        self.attributes = (self.attributes + (moved * outcome).sum(dim=0)).clamp_min(0.0)
        # None may be left without a chance for good, since all learn at once.
        self.attributes = self.attributes.clamp_min(CHANGE) * self.domain.free
        self.attributes = self.attributes / self.attributes.sum()
        self.down = (self.down - (steps * outcome).sum(dim=0)).clamp(0.0, 1.0)
