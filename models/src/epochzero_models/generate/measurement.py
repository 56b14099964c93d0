"""`generate` makes a set of networks, `evolve` trains them and lets better ones come from the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from epochzero.errors import InputError
from epochzero.reports.statistics import Estimate, wilson
from epochzero_models.classifier import Tell, check_labels
from epochzero_models.examples import Examples
from epochzero_models.generate.architecture import architecture_of, product_of
from epochzero_models.generate.evolution import (
    SELECTIONS,
    Fitness,
    forced_share,
    full_survivors,
    mutant,
    pledge_children,
    pledge_survivors,
    select,
)
from epochzero_models.generate.feature_model import FeatureModel, Product, feature_model
from epochzero_models.generate.network import Network
from epochzero_models.generate.plan import MOST_PARAMETERS, NetworkPlan, Shape, plan_of
from epochzero_models.generate.sampling import (
    STEPS,
    Accepts,
    diverse_products,
    mean_distance,
    random_products,
)
from epochzero_models.generate.training import Score, Trainer

SCHEMA = "epochzero.model-generation/1"
EVOLUTIONS = ("none", "pledge", "full")
EPOCHS = 12
GENERATIONS = 5
CHILDREN_TRIED = 100
"""Children that are too large before their parent stays in their place."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A network.

    Attributes:
        name: by which it is told apart; a number in the order in which they were made.
        generation: in which it was made, from 0.
        product: its features.
        plan: its layers.
        score: of its training; None before.
        accuracy: on test examples; None without them.
    """

    name: str
    generation: int
    product: Product
    plan: NetworkPlan
    score: Score | None = None
    accuracy: Estimate | None = None

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """State dict after the training; empty before."""
        return self.score.weights if self.score else {}


@dataclass(frozen=True, slots=True)
class Generation:
    """A set of networks.

    Attributes:
        model: the feature model that they come from.
        shape: of their inputs.
        classes: of their outputs.
        seed: of all that was drawn.
        networks: the best first, where they were trained.
        distance: mean Jaccard distance between two of the first ones; None for a single one.
        random_distance: the same for a random set of the same size and seed.
        evolution: one of `EVOLUTIONS`.
        best: the best validation accuracy so far, after each generation.
        trained: how many networks were trained.
        tested_on: how many test examples there were.
    """

    model: FeatureModel
    shape: Shape
    classes: int
    seed: int
    networks: tuple[Generated, ...]
    distance: float | None
    random_distance: float | None
    evolution: str = "none"
    best: tuple[float, ...] = ()
    trained: int = 0
    tested_on: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "schema": SCHEMA,
            "shape": list(self.shape),
            "classes": self.classes,
            "blocks": self.model.blocks,
            "elements": self.model.elements,
            "seed": self.seed,
            "mean_distance": self.distance,
            "mean_distance_of_random_ones": self.random_distance,
            "evolution": self.evolution,
            "trained": self.trained,
            "tested_on": self.tested_on,
            "best_validation_accuracy": list(self.best),
            "networks": [_told(one) for one in self.networks],
        }


def generate(
    count: int,
    shape: Shape,
    classes: int,
    *,
    blocks: int = 3,
    elements: int = 3,
    diverse: bool = True,
    steps: int = STEPS,
    seed: int = 0,
    tell: Tell | None = None,
) -> Generation:
    """Networks of the feature model, not yet trained.

    Args:
        count: how many.
        shape: of an image: channels, height and width.
        classes: how many scores a network gives.
        blocks: at most in a network.
        elements: at most in a block.
        diverse: far from each other, or drawn at random.
        steps: of the search for diverse ones.
        seed: of all draws.
        tell: hears how far it is.

    Raises:
        InputError: python-sat is not installed, or a number cannot be used.
    """
    model = feature_model(blocks, elements)
    accepts = _small_enough(shape, classes)
    drawn = random_products(model, count, accepts=accepts, seed=seed)
    products = (
        diverse_products(model, count, accepts=accepts, steps=steps, seed=seed, tell=tell)
        if diverse
        else drawn
    )
    pair = count > 1
    return Generation(
        model, shape, classes, seed, tuple(_named(products, 0, 0, shape, classes)),
        mean_distance(products) if pair else None, mean_distance(drawn) if pair else None,
    )  # fmt: skip


def evolve(
    generation: Generation,
    examples: Examples,
    test: Examples | None = None,
    *,
    evolution: str = "none",
    generations: int = GENERATIONS,
    selection: str = "elitist",
    epochs: int = EPOCHS,
    augment: bool = False,
    device: str = "cpu",
    tell: Tell | None = None,
) -> Generation:
    """Trains all networks, and those of further generations.

    Args:
        generation: networks of `generate`.
        examples: to train on; a fifth is held back, and says which networks are the best.
        test: to measure the last population on.
        evolution: ``none``, ``pledge`` (some features of the best are kept, the others drawn) or ``full``
            (the best are bred and mutated).
        generations: after the first.
        selection: of the full evolution, one of `SELECTIONS`.
        epochs: of a training, at most.
        augment: whether images are shifted and flipped.
        device: where torch computes.
        tell: hears how far it is.

    Raises:
        InputError: the examples do not fit the networks, there is no such evolution or selection, or there are so few
            networks that all would stay.
    """
    if evolution not in EVOLUTIONS or selection not in SELECTIONS:
        raise InputError(f"there is no evolution {evolution!r} with the selection {selection!r}")
    _check_children(evolution, len(generation.networks))
    for given in (examples, test) if test else (examples,):
        _check_fits(given, generation)
    trainer = Trainer(
        examples, epochs=epochs, augment=augment, device=device, seed=generation.seed,
        robustness=evolution == "full" and selection == "pareto",
    )  # fmt: skip
    search = _Search(generation, trainer, evolution, selection, tell)
    population = search.scored(generation.networks)
    best = [_fitness(population[0]).accuracy]
    for number in range(1, generations + 1 if evolution != "none" else 1):
        survivors, children = search.children(population, number, generations)
        population = sorted([*survivors, *search.scored(children)], key=_rank)
        best.append(_fitness(population[0]).accuracy)
    if test:
        population = [_tested(one, trainer, test) for one in population]
    return replace(
        generation, networks=tuple(population), evolution=evolution, best=tuple(best),
        trained=search.made, tested_on=len(test) if test else 0,
    )  # fmt: skip


def image_shape(examples: Examples) -> Shape:
    """Channels, height and width of images.

    Raises:
        InputError: they are no images.
    """
    shape = tuple(examples.inputs.shape[1:])
    if len(shape) != 3 or not examples.inputs.is_floating_point():
        raise InputError(
            f"{examples.name}: inputs of shape {shape}; networks are generated for images of shape "
            "(channels, height, width), of real numbers"
        )
    return shape


class _Search:
    """Makes children and trains networks, with what all of them share."""

    def __init__(
        self, first: Generation, trainer: Trainer, evolution: str, selection: str, tell: Tell | None
    ) -> None:
        self.first, self.trainer, self.tell = first, trainer, tell
        self.evolution, self.selection = evolution, selection
        self.draw = np.random.default_rng(first.seed)
        self._accepts = _small_enough(first.shape, first.classes)
        self.made = 0

    def scored(self, networks: Sequence[Generated]) -> list[Generated]:
        """The networks after their training, the best first."""
        found: list[Generated] = []
        for number, network in enumerate(networks, 1):
            if self.tell:
                self.tell(f"generation {network.generation}: {number} of {len(networks)} trained")
            found.append(replace(network, score=self.trainer.score(network.plan)))
        self.made += len(networks)
        return sorted(found, key=_rank)

    def children(
        self, population: Sequence[Generated], generation: int, generations: int
    ) -> tuple[list[Generated], list[Generated]]:
        """Who stays of a population, and whom they have."""
        count = len(self.first.networks)
        if self.evolution == "pledge":
            survivors = list(population[: pledge_survivors(count)])
            share = forced_share(generation - 1, generations)
            products = self._drawn_anew(survivors, count, share)
        else:
            fitness = [_fitness(one) for one in population]
            kept = select(fitness, full_survivors(count), self.selection, self.draw)
            survivors = [population[place] for place in kept]
            products = [
                self._mutant(survivors[at % len(survivors)], survivors)
                for at in range(count - len(survivors))
            ]
        shape, classes = self.first.shape, self.first.classes
        return survivors, list(_named(products, self.made, generation, shape, classes))

    def _drawn_anew(self, parents: list[Generated], count: int, share: float) -> list[Product]:
        each = (count - len(parents)) // len(parents)
        return [
            child
            for parent in parents
            for child in pledge_children(
                parent.product, self.first.model, each, share, self._accepts,
                int(self.draw.integers(2**32)),
            )
        ]  # fmt: skip

    def _mutant(self, parent: Generated, others: Sequence[Generated]) -> Product:
        one = architecture_of(parent.product)
        for _ in range(CHILDREN_TRIED):
            other = architecture_of(others[int(self.draw.integers(len(others)))].product)
            child = mutant(one, other, self.first.model, self.draw)
            product = product_of(child, self.first.model)
            if self._accepts(product):
                return product
        return parent.product


def _small_enough(shape: Shape, classes: int) -> Accepts:
    """Tells whether a product's network has no more than `MOST_PARAMETERS`."""

    def accepts(product: Product) -> bool:
        return plan_of(architecture_of(product), shape, classes).parameters <= MOST_PARAMETERS

    return accepts


def _named(
    products: Sequence[Product], made: int, generation: int, shape: Shape, classes: int
) -> Iterator[Generated]:
    for number, product in enumerate(products, made + 1):
        plan = plan_of(architecture_of(product), shape, classes)
        yield Generated(f"model{number:03}", generation, product, plan)


def _tested(network: Generated, trainer: Trainer, test: Examples) -> Generated:
    module = Network(network.plan).to(trainer.device)
    module.load_state_dict(dict(network.weights))
    right = int(trainer.right(module, test).sum())
    accuracy = Estimate(right / len(test), wilson(right, len(test)))
    return replace(network, accuracy=accuracy)


def _fitness(network: Generated) -> Fitness:
    score = network.score
    return Fitness(score.validation, score.robustness or 0.0) if score else Fitness(0.0)


def _rank(network: Generated) -> tuple[float, int]:
    """The more accurate first; of equal ones the smaller."""
    return -_fitness(network).accuracy, network.plan.parameters


def _check_children(evolution: str, count: int) -> None:
    survivors = {"pledge": pledge_survivors, "full": full_survivors}
    kept = survivors[evolution](count) if evolution in survivors else 0
    if kept == count:
        raise InputError(
            f"the {evolution} evolution of {count} networks keeps all of them: generate more than {kept}"
        )


def _check_fits(examples: Examples, generation: Generation) -> None:
    shape = image_shape(examples)
    if shape != generation.shape:
        raise InputError(
            f"{examples.name}: images of shape {shape}, but the networks take {generation.shape}"
        )
    check_labels("the networks", generation.classes, examples)


def _told(network: Generated) -> dict[str, Any]:
    score, accuracy = network.score, network.accuracy
    return {
        "name": network.name,
        "generation": network.generation,
        "parameters": network.plan.parameters,
        "epochs": score.epochs if score else None,
        "validation_accuracy": score.validation if score else None,
        "robustness": score.robustness if score else None,
        "test_accuracy": accuracy.value if accuracy else None,
        "test_accuracy_interval": accuracy.interval if accuracy else None,
        "features": sorted(network.product),
    }
