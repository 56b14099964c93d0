"""AEQUITAS: random inputs, then a walk around discriminatory ones that learns in which direction to go.

Udeshi, Arora and Chattopadhyay (ASE 2018, Automated Directed Fairness Testing), the fully directed strategy. It needs no
gradients. All instances of a round walk together and share what they learn after each step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from epochzero_models.fairness.search import Archive, InputCheck, chance, gathered, walk

CHANGE = 0.001
"""Change of a probability per outcome."""


def aequitas(archive: Archive, draw: torch.Generator) -> None:
    """Alternate global and local phases until the budget is exhausted.

    Args:
        archive: checks inputs and stores instances.
        draw: random number generator.
    """
    directed = Directed(archive, draw)
    rounds = (
        (levels[checked.new], checked.partner[checked.new])
        for levels, checked in chance(archive, draw)
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

    def learn(self, steps: Tensor, checked: InputCheck) -> None:
        """Increase the probability of choices that led to discrimination, and decrease the others."""
        outcome = torch.where(checked.discriminates, CHANGE, -CHANGE)[:, None]
        moved = steps != 0
        self.attributes = (self.attributes + (moved * outcome).sum(dim=0)).clamp_min(0.0)
        # Since all instances learn at once, no probability may reach 0.
        self.attributes = self.attributes.clamp_min(CHANGE) * self.domain.free
        self.attributes = self.attributes / self.attributes.sum()
        self.down = (self.down - (steps * outcome).sum(dim=0)).clamp(0.0, 1.0)
