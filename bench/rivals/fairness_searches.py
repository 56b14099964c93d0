"""The searches of the papers for discriminatory instances, on the same checks as EpochZero's guided search.

ADF (Zhang, Wang, Sun, Dong, Wang, Wang, Dong and Dai, ICSE 2020) moves rows along gradients to instances (section 3.2)
and walks from them (3.3). AEQUITAS (Udeshi, Arora and Chattopadhyay, ASE 2018, fully directed) draws random inputs and
learns in which direction to walk. EIDIG (Zhang, Zhang and Zhang, ISSTA 2021) differs from ADF in three ways: it uses
gradients of the output instead of the loss, it computes them rarely in the local phase, and it uses momentum in the global
phase. Here, ADF has the first two properties too. ExpGA (Fan, Wei, Jin, Li, Wang, Du and Xie, ICSE 2022) needs no gradients: rows whose protected attributes explain
the output start a genetic search. The paper estimates with LIME how much they explain; here, the change of the
probabilities over all variants is computed. NeuronFair (Zheng, Chen, Du, Zhang, Cheng, Ji, Wang, Yu and Chen, ICSE 2022) is ADF along the gradients of the
neurons whose activations differ most between variants. Here, one layer is used, whose activations differ
most relative to their size, and of its neurons the half that differs more. This set of neurons does not change during the search. All instances of a round are moved
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero_models.fairness.domain import Domain
from epochzero_models.fairness.search import Archive, InputCheck, chance

SEEDS = 1000
"""Inputs per round of a search, as in the papers."""
TRIALS = 1000
"""Steps of the local search from each instance, as in the papers."""
WALKERS = 1000
"""Number of instances that are collected before a walk, unless `ROUNDS` rounds yield fewer."""
ROUNDS = 10
CLUSTERS = 4
CLUSTERED = 50_000
"""Maximum number of rows that are clustered; seeds come from them."""
STEPS = 10
"""Maximum number of steps of the global phase."""
NEURON_STEPS = 40
"""Maximum number of steps of the global phase of NeuronFair."""
REFRESH = 10
"""Trials of the local search between two computations of gradients: a ReLU network is locally linear."""
SMALLEST_GRADIENT = 1e-12
SMALLEST_SHARE = 1e-3
"""Fraction of the largest gradient: smaller influences all count as this much."""
CHANGE = 0.001
"""Change of a probability of AEQUITAS per outcome."""
DECAY = 0.5
"""Of the momentum, as in EIDIG's experiments."""
POPULATION = 1000
GENERATIONS = 10
CROSSOVER, MUTATION = 0.9, 0.05
"""Probabilities of a pair and of an attribute, as in ExpGA's experiments."""
Instances = tuple[Tensor, Tensor]
"""Levels of inputs and of their partners, shape (n, attributes) each."""
Propose = Callable[[Tensor, Tensor, int], Tensor]
"""Inputs, their partners and the number of the trial -> the inputs after one step."""
Learn = Callable[[Tensor, InputCheck], None]
"""Called with the proposed steps, shape (n, attributes), and what they led to."""


def adf(archive: Archive, data: Tensor, draw: torch.Generator) -> None:
    """Alternate global and local phases until the budget is exhausted; seeds come from clusters of the rows."""
    seeds = clustered(data, archive.subject.domain, SEEDS, draw)
    rounds = takewhile(lambda _: not archive.over, seeds)
    for levels, partners in gathered(global_phase(archive, each, draw) for each in rounds):
        walk(archive, levels, partners, Local(archive, draw))


def global_phase(
    archive: Archive, levels: Tensor, draw: torch.Generator, neurons: BiasedNeurons | None = None
) -> Instances:
    """Move seeds, by at most 10 steps, to inputs that are newly found to be discriminated against.

    An attribute moves in the direction of its gradient if that of the seed and of its most different variant agree; if
    none agrees, one attribute moves at random. Along gradients of neurons, there are 40 steps, and the seed's gradient decides.

    Returns:
        The instances found and their partners.
    """
    domain = archive.subject.domain
    found: list[Instances] = []
    gradients_of, most = (neurons.gradients, NEURON_STEPS) if neurons else (_gradients, STEPS)
    for step in range(most + 1):
        checked = archive.check(levels)
        found.append((levels[checked.new], checked.partner[checked.new]))
        levels, partner = levels[~checked.new], checked.partner[~checked.new]
        if step == most or not len(levels) or archive.over:
            break
        signs = gradients_of(archive, levels, partner).sign()
        agree = (signs[0] == signs[1]) | (neurons is not None)
        direction = torch.where(agree, signs[0], 0.0).long() * domain.free
        still = (direction == 0).all(dim=1)
        direction[still] = _random_steps(domain, int(still.sum()), draw)
        levels = (levels + direction).clamp_min(0).minimum(domain.counts - 1)
    instances, partners = zip(*found, strict=True)
    return torch.cat(instances), torch.cat(partners)


class Local:
    """A step of the local phase, preferably along an attribute that hardly affects the output."""

    def __init__(
        self, archive: Archive, draw: torch.Generator, neurons: BiasedNeurons | None = None
    ) -> None:
        self.archive, self.draw = archive, draw
        self.gradients_of = neurons.gradients if neurons else _gradients
        self.weights = torch.empty(0)

    def __call__(self, levels: Tensor, partners: Tensor, trial: int) -> Tensor:
        domain = self.archive.subject.domain
        if trial % REFRESH == 0:
            sizes = self.gradients_of(self.archive, levels, partners).abs().sum(dim=0)
            floor = SMALLEST_GRADIENT + sizes.amax(dim=1, keepdim=True) * SMALLEST_SHARE
            self.weights = domain.free / sizes.maximum(floor)
        chosen = torch.multinomial(self.weights, 1, generator=self.draw)
        signs = torch.randint(2, chosen.shape, generator=self.draw) * 2 - 1
        return domain.moved(levels, chosen, signs)


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


def neuronfair(archive: Archive, data: Tensor, draw: torch.Generator) -> None:
    """ADF along the gradients of biased neurons, until the budget is exhausted."""
    neurons = BiasedNeurons(archive, data, draw)
    seeds = clustered(data, archive.subject.domain, SEEDS, draw)
    rounds = takewhile(lambda _: not archive.over, seeds)
    for levels, partners in gathered(global_phase(archive, each, draw, neurons) for each in rounds):
        walk(archive, levels, partners, Local(archive, draw, neurons))


class BiasedNeurons:
    """The neurons of a sequential network whose activations differ most between rows and their variants."""

    def __init__(self, archive: Archive, data: Tensor, draw: torch.Generator) -> None:
        module, domain = archive.subject.classifier.differentiable(), archive.subject.domain
        if not isinstance(module, nn.Sequential):
            raise InputError("NeuronFair requires a sequential network")
        rows = data[torch.randint(len(data), (SEEDS,), generator=draw)]
        others = domain.with_variant(
            rows, torch.randint(len(domain.variants), (SEEDS,), generator=draw)
        )
        relative, self.chosen = -1.0, torch.empty(0)
        self.part: nn.Module = module
        for end, layer in enumerate(module, 1):
            if not isinstance(layer, nn.ReLU):
                continue
            with torch.no_grad():
                first, second = (module[:end](domain.inputs(each)) for each in (rows, others))
            difference = (first - second).abs().mean(dim=0)
            share = float(difference.sum() / first.abs().mean(dim=0).sum().clamp_min(1e-9))
            if share > relative:
                relative, self.part = share, module[:end]
                self.chosen = (difference >= difference.median()).float()

    def gradients(self, archive: Archive, levels: Tensor, partners: Tensor) -> Tensor:
        """Return gradients of the cross-entropy of activations against those of the other variant, shape (2, n, attributes)."""
        domain = archive.subject.domain
        inputs = domain.inputs(torch.stack((levels, partners))).requires_grad_()
        with torch.enable_grad():
            active = self.part(inputs) * self.chosen
            loss = -(active.detach().flip(0) * active.log_softmax(dim=2)).sum()
            (gradient,) = torch.autograd.grad(loss, inputs)
        return gradient * domain.step_sizes


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


def gathered(rounds: Iterable[Instances]) -> Iterator[Instances]:
    """Collect instances of several rounds: a walk from few instances takes almost as long as a walk from many."""
    waiting: list[Instances] = []
    for instances in rounds:
        waiting.append(instances)
        if len(waiting) == ROUNDS or sum(len(levels) for levels, _ in waiting) >= WALKERS:
            levels, partners = zip(*waiting, strict=True)
            yield torch.cat(levels), torch.cat(partners)
            waiting = []


def walk(
    archive: Archive, levels: Tensor, partners: Tensor, propose: Propose, learn: Learn | None = None
) -> None:
    """Run the local search from each instance; undo a step after which the input is no longer discriminatory.

    Args:
        archive: checks inputs and stores instances.
        levels, partners: instances and their variants with another class, shape (n, attributes).
        propose: returns the next step.
        learn: called with the outcome.
    """
    domain = archive.subject.domain
    for trial in range(TRIALS if len(levels) else 0):
        if archive.over:
            return
        moved = propose(levels, partners, trial)
        checked = archive.follow(moved, domain.with_variant(moved, domain.variant_of(partners)))
        if learn:
            learn(moved - levels, checked)
        stays = checked.discriminates[:, None]
        levels = torch.where(stays, moved, levels)
        partners = torch.where(stays, checked.partner, partners)


def clustered(data: Tensor, domain: Domain, seeds: int, draw: torch.Generator) -> Iterator[Tensor]:
    """Yield the seeds of each round, one from each cluster in turn; the data are shuffled between passes."""
    if len(data) > CLUSTERED:
        data = data[torch.randperm(len(data), generator=draw)[:CLUSTERED]]
    inputs = data / (domain.counts - 1).clamp_min(1)
    number = min(CLUSTERS, len(np.unique(data.numpy(), axis=0)))
    found = KMeans(number, n_init=1, random_state=draw.initial_seed() % 2**32)
    labels = torch.from_numpy(found.fit_predict(inputs.numpy())).long()
    waiting = torch.empty(0, dtype=torch.int64)
    while True:
        while len(waiting) < seeds:
            order = torch.randperm(len(data), generator=draw)
            waiting = torch.cat((waiting, order[_round_robin(labels[order])]))
        yield data[waiting[:seeds]]
        waiting = waiting[seeds:]


def _round_robin(labels: Tensor) -> Tensor:
    """Return the indices of the first example of each cluster, then of the second of each, and so on."""
    place = torch.empty_like(labels)
    for index in range(CLUSTERS):
        at = (labels == index).nonzero()[:, 0]
        place[at] = torch.arange(len(at))
    return torch.argsort(place, stable=True)


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
