"""ADF: discriminatory instances along gradients.

Zhang, Wang, Sun, Dong, Wang, Wang, Dong and Dai (ICSE 2020, White-box Fairness Testing through Adversarial Sampling),
sections 3.2 (global) and 3.3 (local). All seeds of a round are moved together.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.fairness.domain import Domain
from epochzero_models.fairness.search import SEEDS, Archive, Instances, gathered, walk

CLUSTERS = 4
CLUSTERED = 50_000
"""Maximum number of rows that are clustered; seeds come from them."""
STEPS = 10
"""Maximum number of steps of the global phase."""
REFRESH = 10
"""Trials of the local search between two computations of gradients: a ReLU network is locally linear."""
SMALLEST_GRADIENT = 1e-12
SMALLEST_SHARE = 1e-3
"""Fraction of the largest gradient: smaller influences all count as this much."""


def require_sklearn() -> None:
    """Check that scikit-learn is installed, before any work is done, and import it before any search is timed.

    Raises:
        InputError: scikit-learn is not installed.
    """
    try:
        import_module("sklearn.cluster")
    except ImportError as error:
        raise InputError(
            "Fairness requires scikit-learn: pip install 'epochzero[models]'"
        ) from error


def adf(archive: Archive, data: Tensor, draw: torch.Generator, seeds: int = SEEDS) -> None:
    """Alternate global and local phases until the budget is exhausted.

    Args:
        archive: checks inputs and stores instances; its model has gradients.
        data: inputs for the first seeds, shape (n, attributes).
        draw: random number generator.
        seeds: per round.

    Raises:
        InputError: the model has no gradients.
    """
    rounds = takewhile(
        lambda _: not archive.over, clustered(data, archive.subject.domain, seeds, draw)
    )
    found = (global_phase(archive, seeds_of_round, draw) for seeds_of_round in rounds)
    for levels, partners in gathered(found):
        walk(archive, levels, partners, Local(archive, draw))


def clustered(data: Tensor, domain: Domain, seeds: int, draw: torch.Generator) -> Iterator[Tensor]:
    """Yield the seeds of each round, one from each cluster in turn; the data are shuffled between passes."""
    cluster = import_module("sklearn.cluster")
    if len(data) > CLUSTERED:
        data = data[torch.randperm(len(data), generator=draw)[:CLUSTERED]]
    inputs = data / (domain.counts - 1).clamp_min(1)
    number = min(CLUSTERS, len(np.unique(data.numpy(), axis=0)))
    found = cluster.KMeans(number, n_init=1, random_state=draw.initial_seed() % 2**32)
    labels = torch.from_numpy(found.fit_predict(inputs.numpy())).long()
    waiting = torch.empty(0, dtype=torch.int64)
    while True:
        while len(waiting) < seeds:
            order = torch.randperm(len(data), generator=draw)
            waiting = torch.cat((waiting, order[_round_robin(labels[order])]))
        yield data[waiting[:seeds]]
        waiting = waiting[seeds:]


def _round_robin(labels: Tensor) -> Tensor:
    """Return the first of each cluster, the second of each, and so on."""
    place = torch.empty_like(labels)
    for index in range(CLUSTERS):
        at = (labels == index).nonzero()[:, 0]
        place[at] = torch.arange(len(at))
    return torch.argsort(place, stable=True)


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
    """A step of the local phase, preferably along an attribute that hardly affects the output."""

    def __init__(self, archive: Archive, draw: torch.Generator) -> None:
        self.archive, self.draw = archive, draw
        self.probabilities = torch.empty(0)

    def __call__(self, levels: Tensor, partners: Tensor, trial: int) -> Tensor:
        domain = self.archive.subject.domain
        if trial % REFRESH == 0:
            sizes = _gradients(self.archive, levels, partners).abs().sum(dim=0)
            floor = SMALLEST_GRADIENT + sizes.amax(dim=1, keepdim=True) * SMALLEST_SHARE
            self.probabilities = domain.free / sizes.maximum(floor)
        chosen = torch.multinomial(self.probabilities, 1, generator=self.draw)
        signs = torch.randint(2, chosen.shape, generator=self.draw) * 2 - 1
        return domain.moved(levels, chosen, signs)


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
