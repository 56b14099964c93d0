"""`generate` creates a set of networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochzero_models.generate.architecture import architecture_of
from epochzero_models.generate.feature_model import FeatureModel, Product, feature_model
from epochzero_models.generate.plan import MOST_PARAMETERS, NetworkPlan, Shape, plan_of
from epochzero_models.generate.sampling import (
    STEPS,
    Accepts,
    diverse_products,
    mean_distance,
    random_products,
)

if TYPE_CHECKING:
    from epochzero_models.classifier import ProgressCallback

SCHEMA = "epochzero.model-generation/3"
Range = tuple[int, int]
"""Smallest and largest value."""
ANY_DEPTH: Range = (1, 1000)
ANY_SIZE: Range = (0, MOST_PARAMETERS)


@dataclass(frozen=True, slots=True)
class Generated:
    """A network.

    Attributes:
        name: unique; a number in the order of generation.
        product: its features.
        plan: its layers.
    """

    name: str
    product: Product
    plan: NetworkPlan


@dataclass(frozen=True, slots=True)
class Generation:
    """A set of networks.

    Attributes:
        model: the feature model from which they were drawn.
        shape: of their inputs.
        classes: of their outputs.
        seed: of all random numbers.
        networks: in the order of generation.
        distance: mean Jaccard distance of two networks; None for a single one.
        random_distance: the same for a random set of the same size and seed.
    """

    model: FeatureModel
    shape: Shape
    classes: int
    seed: int
    networks: tuple[Generated, ...]
    distance: float | None
    random_distance: float | None

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
            "networks": [
                {
                    "name": network.name,
                    "parameters": network.plan.parameters,
                    "depth": network.plan.depth,
                    "features": sorted(network.product),
                }
                for network in self.networks
            ],
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
    depth: Range = ANY_DEPTH,
    parameters: Range = ANY_SIZE,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
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
        depth: smallest and largest number of convolutions in sequence.
        parameters: smallest and largest number of parameters.
        seed: of all random numbers.
        on_progress: called with the progress.

    Raises:
        InputError: an argument is invalid, or no network meets the limits.
    """
    model = feature_model(blocks, elements)
    accepts = _within(shape, classes, depth, parameters)
    drawn = random_products(model, count, accepts=accepts, seed=seed)
    products = (
        diverse_products(
            model, count, accepts=accepts, steps=steps, seed=seed, on_progress=on_progress
        )
        if diverse
        else drawn
    )
    pair = count > 1
    return Generation(
        model, shape, classes, seed, tuple(_named(products, shape, classes)),
        mean_distance(products) if pair else None, mean_distance(drawn) if pair else None,
    )  # fmt: skip


def _within(shape: Shape, classes: int, depth: Range, parameters: Range) -> Accepts:
    """Return whether a product's network has that depth and that many parameters."""

    def accepts(product: Product) -> bool:
        plan = plan_of(architecture_of(product), shape, classes)
        return (
            parameters[0] <= plan.parameters <= parameters[1] and depth[0] <= plan.depth <= depth[1]
        )

    return accepts


def _named(products: Sequence[Product], shape: Shape, classes: int) -> Iterator[Generated]:
    for number, product in enumerate(products, 1):
        plan = plan_of(architecture_of(product), shape, classes)
        yield Generated(f"model{number:03}", product, plan)
