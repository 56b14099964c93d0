"""`generate` creates a set of networks, `train_networks` trains and ranks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from epochzero.errors import InputError
from epochzero.reports.statistics import Estimate, wilson
from epochzero_models.classifier import Tell, check_labels
from epochzero_models.examples import Examples
from epochzero_models.generate.architecture import architecture_of
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

SCHEMA = "epochzero.model-generation/2"
EPOCHS = 12


@dataclass(frozen=True, slots=True)
class Generated:
    """A network.

    Attributes:
        name: unique; a number in the order of generation.
        product: its features.
        plan: its layers.
        score: of its training; None before.
        accuracy: on test examples; None without them.
    """

    name: str
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
        model: the feature model from which they were drawn.
        shape: of their inputs.
        classes: of their outputs.
        seed: of all random numbers.
        networks: best first, if they were trained.
        distance: mean Jaccard distance of two networks; None for a single one.
        random_distance: the same for a random set of the same size and seed.
        tested_on: number of test examples.
    """

    model: FeatureModel
    shape: Shape
    classes: int
    seed: int
    networks: tuple[Generated, ...]
    distance: float | None
    random_distance: float | None
    tested_on: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data."""
        return {
            "schema": SCHEMA,
            "shape": list(self.shape),
            "classes": self.classes,
            "blocks": self.model.blocks,
            "elements": self.model.elements,
            "seed": self.seed,
            "mean_distance": self.distance,
            "mean_distance_of_random_ones": self.random_distance,
            "tested_on": self.tested_on,
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
    """Return untrained networks of the feature model.

    Args:
        count: number of networks.
        shape: of an image: channels, height and width.
        classes: number of classes.
        blocks: maximum number of blocks per network.
        elements: maximum number of elements per block.
        diverse: select for diversity instead of drawing at random.
        steps: of the search for diverse networks.
        seed: of all random numbers.
        tell: called with the progress.

    Raises:
        InputError: python-sat is not installed, or an argument is invalid.
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
        model, shape, classes, seed, tuple(_named(products, shape, classes)),
        mean_distance(products) if pair else None, mean_distance(drawn) if pair else None,
    )  # fmt: skip


def train_networks(
    generation: Generation,
    examples: Examples,
    test: Examples | None = None,
    *,
    epochs: int = EPOCHS,
    augment: bool = False,
    device: str = "cpu",
    tell: Tell | None = None,
) -> Generation:
    """Train all networks and rank them by accuracy on held-out examples.

    Args:
        generation: networks of `generate`.
        examples: to train on; a fifth is held out for the ranking.
        test: to measure all networks on.
        epochs: maximum number of epochs per training.
        augment: whether images are shifted and flipped.
        device: torch device.
        tell: called with the progress.

    Raises:
        InputError: the examples do not fit the networks.
    """
    for given in (examples, test) if test else (examples,):
        _check_fits(given, generation)
    trainer = Trainer(examples, epochs=epochs, augment=augment, device=device, seed=generation.seed)
    networks = [
        replace(network, score=trainer.score(network.plan))
        for network in _reported(generation.networks, tell)
    ]
    if test:
        networks = [_tested(network, trainer, test) for network in networks]
    return replace(
        generation,
        networks=tuple(sorted(networks, key=_rank)),
        tested_on=len(test) if test else 0,
    )


def image_shape(examples: Examples) -> Shape:
    """Return channels, height and width of images.

    Raises:
        InputError: the inputs are not images.
    """
    shape = tuple(examples.inputs.shape[1:])
    if len(shape) != 3 or not examples.inputs.is_floating_point():
        raise InputError(
            f"{examples.name}: inputs of shape {shape}; networks are generated for images of shape "
            "(channels, height, width), of real numbers"
        )
    return shape


def _reported(networks: Sequence[Generated], tell: Tell | None) -> Iterator[Generated]:
    for number, network in enumerate(networks, 1):
        if tell:
            tell(f"network {number} of {len(networks)} is trained")
        yield network


def _small_enough(shape: Shape, classes: int) -> Accepts:
    """Return whether a product's network has at most `MOST_PARAMETERS`."""

    def accepts(product: Product) -> bool:
        return plan_of(architecture_of(product), shape, classes).parameters <= MOST_PARAMETERS

    return accepts


def _named(products: Sequence[Product], shape: Shape, classes: int) -> Iterator[Generated]:
    for number, product in enumerate(products, 1):
        plan = plan_of(architecture_of(product), shape, classes)
        yield Generated(f"model{number:03}", product, plan)


def _tested(network: Generated, trainer: Trainer, test: Examples) -> Generated:
    module = Network(network.plan).to(trainer.device)
    module.load_state_dict(dict(network.weights))
    right = int(trainer.right(module, test).sum())
    accuracy = Estimate(right / len(test), wilson(right, len(test)))
    return replace(network, accuracy=accuracy)


def _rank(network: Generated) -> tuple[float, int]:
    """Sort key: more accurate first, then smaller."""
    return -(network.score.validation if network.score else 0.0), network.plan.parameters


def _check_fits(examples: Examples, generation: Generation) -> None:
    shape = image_shape(examples)
    if shape != generation.shape:
        raise InputError(
            f"{examples.name}: images of shape {shape}, but the networks require {generation.shape}"
        )
    check_labels("the networks", generation.classes, examples)


def _told(network: Generated) -> dict[str, Any]:
    score, accuracy = network.score, network.accuracy
    return {
        "name": network.name,
        "parameters": network.plan.parameters,
        "epochs": score.epochs if score else None,
        "validation_accuracy": score.validation if score else None,
        "test_accuracy": accuracy.value if accuracy else None,
        "test_accuracy_interval": accuracy.interval if accuracy else None,
        "features": sorted(network.product),
    }
