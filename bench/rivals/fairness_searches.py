"""Two newer searches for discriminatory instances, after their papers, on the same checks and walks as ADF.

EIDIG (Zhang, Zhang and Zhang, ISSTA 2021) differs from ADF by gradients of the output instead of the loss and by
computing them rarely in the local phase, which EpochZero's ADF does too, and by momentum in the global phase.
ExpGA (Fan, Wei, Jin, Li, Wang, Du and Xie, ICSE 2022) needs no gradients: rows whose protected attributes explain
the output start a genetic search. Here the change of the probabilities over all variants, which LIME estimates there,
explains it.
"""

from __future__ import annotations

from itertools import takewhile

import torch
from fairness_paper import clustered
from torch import Tensor

from epochzero_models.fairness.adf import STEPS, Local, _gradients, _random_steps
from epochzero_models.fairness.search import SEEDS, Archive, Instances, gathered, walk

DECAY = 0.5
"""Of the momentum, as in EIDIG's experiments."""
POPULATION = 1000
GENERATIONS = 10
CROSSOVER, MUTATION = 0.9, 0.05
"""Probabilities of a pair and of an attribute, as in ExpGA's experiments."""


def eidig(archive: Archive, data: Tensor, draw: torch.Generator) -> None:
    """ADF with momentum in the global phase, until the budget is exhausted."""
    seeds = clustered(data, archive.subject.domain, SEEDS, draw)
    rounds = takewhile(lambda _: not archive.over, seeds)
    for levels, partners in gathered(_with_momentum(archive, each, draw) for each in rounds):
        walk(archive, levels, partners, Local(archive, draw))


def _with_momentum(archive: Archive, levels: Tensor, draw: torch.Generator) -> Instances:
    domain = archive.subject.domain
    found: list[Instances] = []
    momentum = torch.zeros(2, *levels.shape)
    for step in range(STEPS + 1):
        checked = archive.check(levels)
        found.append((levels[checked.new], checked.partner[checked.new]))
        levels, partner = levels[~checked.new], checked.partner[~checked.new]
        if step == STEPS or not len(levels) or archive.over:
            break
        momentum = DECAY * momentum[:, ~checked.new] + _gradients(archive, levels, partner)
        signs = momentum.sign()
        direction = torch.where(signs[0] == signs[1], signs[0], 0.0).long() * domain.free
        still = (direction == 0).all(dim=1)
        direction[still] = _random_steps(domain, int(still.sum()), draw)
        levels = (levels + direction).clamp_min(0).minimum(domain.counts - 1)
    instances, partners = zip(*found, strict=True)
    return torch.cat(instances), torch.cat(partners)


def expga(archive: Archive, data: Tensor, draw: torch.Generator) -> None:
    """A genetic search from the rows whose protected attributes matter most, until the budget is exhausted."""
    domain = archive.subject.domain
    rows = data[torch.randperm(len(data), generator=draw)[: 10 * POPULATION]]
    order = _fitness(archive, rows, archive.check(rows).partner).argsort(descending=True)
    start = 0
    while not archive.over:
        chosen = order[start : start + POPULATION]
        start = start + POPULATION if start + POPULATION < len(order) else 0
        levels = rows[chosen]
        levels = levels[torch.arange(POPULATION) % len(levels)]
        for _ in range(GENERATIONS):
            checked = archive.check(levels)
            if archive.over:
                return
            fitness = _fitness(archive, levels, checked.partner) + checked.discriminates
            parents = levels[torch.multinomial(fitness + 1e-6, POPULATION, True, generator=draw)]
            crossed = torch.rand(POPULATION, 1, generator=draw) < CROSSOVER
            point = torch.randint(levels.shape[1], (POPULATION, 1), generator=draw)
            other = parents[torch.randperm(POPULATION, generator=draw)]
            levels = torch.where(crossed & (torch.arange(levels.shape[1]) >= point), other, parents)
            mutated = torch.rand(levels.shape, generator=draw) < MUTATION
            levels = torch.where(mutated, domain.drawn(POPULATION, draw), levels)


def _fitness(archive: Archive, levels: Tensor, partners: Tensor) -> Tensor:
    """The largest change of a probability between an input and its partner."""
    subject = archive.subject
    of = [subject.probabilities(subject.domain.inputs(each)) for each in (levels, partners)]
    return (of[0] - of[1]).abs().amax(dim=1)
