"""Products of a feature model, drawn at random or selected for diversity.

`random_products` draws a number of cells, then one of the products with so many cells, each with the same probability.
Without the first draw, nearly all products would be of the largest size, which has the most of them.
`diverse_products` is the search of PLEDGE (Henard et al., "Bypassing the Combinatorial Explosion", IEEE TSE 40(7), 2014):
a (1+1) evolutionary algorithm that replaces the product most similar to the others by a random one if this does not
reduce the distances.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epochzero.errors import InputError
from epochzero_models.generate.counting import Solutions
from epochzero_models.generate.feature_model import FeatureModel, Product

if TYPE_CHECKING:
    from epochzero_models.classifier import ProgressCallback

STEPS = 1000
"""Steps of the search."""
REFUSED = 1000
"""Number of unusable products after which sampling is given up."""
Accepts = Callable[[Product], bool]


def distance(one: Product, other: Product) -> float:
    """Return Jaccard's distance: the share of features that the products do not have in common; 0 to 1."""
    either = len(one | other)
    return 1 - len(one & other) / either if either else 0.0


def mean_distance(products: Sequence[Product]) -> float:
    """Return the mean distance over all pairs.

    Raises:
        InputError: there are fewer than two products.
    """
    if len(products) < 2:
        raise InputError("a distance requires two products")
    pairs = [distance(a, b) for at, a in enumerate(products) for b in products[at + 1 :]]
    return float(np.mean(pairs))


class Sampler:
    """Draws products of a feature model.

    Args:
        model: the feature model.
        accepts: whether a product is usable; unusable ones are redrawn.
        seed: of the draws.
    """

    def __init__(self, model: FeatureModel, accepts: Accepts, seed: int) -> None:
        self._model, self._accepts = model, accepts
        self._draws = random.Random(seed)
        self._solutions = _solutions(model)
        self._sizes = [
            size for size in range(1, len(model.cells) + 1) if self._solutions.count(size)
        ]

    def product(self) -> Product:
        """Return an accepted product.

        Raises:
            InputError: none of many was accepted.
        """
        for _ in range(REFUSED):
            numbers = self._solutions.draw(self._draws.choice(self._sizes), self._draws)
            product = frozenset(self._model.features[number - 1] for number in numbers)
            if self._accepts(product):
                return product
        raise InputError(
            f"none of {REFUSED} architectures is usable; request other depths, numbers of parameters, blocks or cells"
        )


@cache
def _solutions(model: FeatureModel) -> Solutions:
    return Solutions(model.clauses, len(model.features), model.numbers(model.cells))


def random_products(
    model: FeatureModel,
    count: int,
    *,
    accepts: Accepts = lambda _: True,
    seed: int = 0,
) -> tuple[Product, ...]:
    """Return products drawn at random, all with cells; the same one may occur twice.

    Args:
        model: the feature model.
        count: number of products.
        accepts: whether a product is usable; unusable ones are redrawn.
        seed: of the draws.

    Raises:
        InputError: no product is accepted.
    """
    sampler = Sampler(model, accepts, seed)
    return tuple(sampler.product() for _ in range(count))


def diverse_products(
    model: FeatureModel,
    count: int,
    *,
    accepts: Accepts = lambda _: True,
    steps: int = STEPS,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> tuple[Product, ...]:
    """Return products that are as different from each other as the search finds within its steps.

    Args:
        model: the feature model.
        count: number of products.
        accepts: whether a product is usable; unusable ones are redrawn.
        steps: number of replacements to try.
        seed: of the draws; the search starts with `random_products` of the same seed.
        on_progress: called with the progress.

    Raises:
        InputError: no product is accepted.
    """
    sampler = Sampler(model, accepts, seed)
    population = _Population(model, [sampler.product() for _ in range(count)])
    if count > 1:
        for step in range(steps):
            population.improve(sampler.product())
            if on_progress and not step % 50:
                on_progress("steps", step, steps)
    return tuple(population.products)


class _Population:
    """Products with all their distances, so that a step computes only one row."""

    def __init__(self, model: FeatureModel, products: list[Product]) -> None:
        self.model = model
        self.products = products
        self._rows = np.stack([self._row(product) for product in products])
        self._distances = np.stack([self._from(row) for row in self._rows])

    def improve(self, candidate: Product) -> None:
        """Replace the product nearest to the others by the candidate, unless the candidate is nearer."""
        row = self._row(candidate)
        distances = self._from(row)
        worst = int(self._distances.sum(axis=1).argmin())
        distances[worst] = 0
        if distances.sum() < self._distances[worst].sum():
            return
        self.products[worst] = candidate
        self._rows[worst] = row
        self._distances[worst] = self._distances[:, worst] = distances

    def mean(self) -> float:
        """Return the mean distance over all pairs."""
        count = len(self.products)
        return float(self._distances.sum() / (count * (count - 1)))

    def _row(self, product: Product) -> NDArray[np.float32]:
        row = np.zeros(len(self.model.features), np.float32)
        row[np.array(self.model.numbers(product)) - 1] = 1
        return row

    def _from(self, row: NDArray[np.float32]) -> NDArray[np.float64]:
        both = (self._rows @ row).astype(np.float64)
        either = self._rows.sum(axis=1) + row.sum() - both
        return np.asarray(1 - both / either)
