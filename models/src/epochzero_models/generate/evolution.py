"""Both evolutions of FeatureNET: how the next networks come from those that were trained.

`pledge_children` draws anew, with some of the leaf features of a good network forced, the more the later it is.
FeatureNET's script writes these constraints negated, so that the features are forbidden; here it is done as its
comments say. `mutant` breeds and mutates. FeatureNET's removal of a block returns at once while there are
blocks, and so never removes; here one is removed, unless it is the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from epochzero_models.generate.architecture import Architecture, Block, Cell, Convolution
from epochzero_models.generate.feature_model import FeatureModel, Product, choices
from epochzero_models.generate.sampling import Accepts, random_products

PLEDGE_SURVIVORS = 0.05
FULL_SURVIVORS = 0.1
LEAST_SURVIVORS = 3
FIRST_SHARE, SHARE_GROWTH = 0.2, 0.75
"""Of leaf features that are forced: at first, and what comes to it until the end."""
MUTATION_TRIALS, MUTATION_RATE = 100, 0.1
"""A child has a binomial number of mutations."""
SELECTIONS = ("elitist", "hybrid", "pareto")
_CELL = "Block[k]_Element[i]_Cell"


@dataclass(frozen=True, slots=True)
class Fitness:
    """What a network is selected by: shares of right answers, as they are and under attack."""

    accuracy: float
    robustness: float = 0.0


def pledge_survivors(count: int) -> int:
    """How many of a population stay: five in a hundred."""
    return math.ceil(PLEDGE_SURVIVORS * count)


def full_survivors(count: int) -> int:
    """How many of a population stay: one in ten, three at least."""
    return min(count, max(LEAST_SURVIVORS, math.ceil(FULL_SURVIVORS * count)))


def forced_share(generation: int, generations: int) -> float:
    """The share of a parent's leaf features that its children have, in a generation from 0."""
    return FIRST_SHARE + SHARE_GROWTH * generation / generations


def pledge_children(
    parent: Product, model: FeatureModel, count: int, share: float, accepts: Accepts, seed: int
) -> tuple[Product, ...]:
    """Random products that have some of a parent's leaf features.

    Args:
        parent: a good product.
        model: which products there are.
        count: of children.
        share: of the leaf features that they have to have; each is drawn by itself.
        accepts: says whether a product can be used.
        seed: of all draws.
    """
    draw = np.random.default_rng(seed)
    leaves = sorted(
        name for name in parent if not any(other.startswith(f"{name}_") for other in parent)
    )
    forced = [leaf for leaf in leaves if draw.random() < share]
    return random_products(model, count, forced=forced, accepts=accepts, seed=seed)


def select(
    fitness: Sequence[Fitness], survivors: int, selection: str, draw: Generator
) -> list[int]:
    """Which of a population stay, by their places, the best first.

    ``elitist`` takes the most accurate. ``hybrid`` takes a quarter so, and draws the others by the softmax of
    their accuracy. ``pareto`` does the same among those that no other exceeds in accuracy and robustness, by the
    product of both.
    """
    scores = np.array([one.accuracy for one in fitness])
    places = np.arange(len(fitness))
    if selection == "pareto":
        places = np.array(_front(fitness))
        scores = np.array([one.accuracy * one.robustness for one in fitness])
    ranked = places[np.argsort(-scores[places], kind="stable")]
    survivors = min(survivors, len(ranked))
    best = survivors if selection == "elitist" else math.ceil(survivors / 4)
    rest = ranked[best:]
    if survivors == best:
        return [int(place) for place in ranked[:best]]
    weights = np.exp(scores[rest] - scores[rest].max())
    drawn = draw.choice(rest, survivors - best, replace=False, p=weights / weights.sum())
    return [int(place) for place in (*ranked[:best], *drawn)]


def _front(fitness: Sequence[Fitness]) -> list[int]:
    def exceeded(one: Fitness) -> bool:
        return any(
            other != one and other.accuracy >= one.accuracy and other.robustness >= one.robustness
            for other in fitness
        )

    return [place for place, one in enumerate(fitness) if not exceeded(one)]


def mutant(
    parent: Architecture, other: Architecture, model: FeatureModel, draw: Generator
) -> Architecture:
    """A child of two architectures with some mutations, one at least."""
    child = bred(parent, other, draw)
    for _ in range(max(1, int(draw.binomial(MUTATION_TRIALS, MUTATION_RATE)))):
        child = mutated(child, model, draw)
    return child


def bred(one: Architecture, other: Architecture, draw: Generator) -> Architecture:
    """As many blocks as the first has, each of either parent."""
    blocks = tuple(
        other.blocks[at] if at < len(other.blocks) and draw.random() < 0.5 else block
        for at, block in enumerate(one.blocks)
    )
    return Architecture(blocks)


def mutated(architecture: Architecture, model: FeatureModel, draw: Generator) -> Architecture:
    """With one mutation: a block more (0.3), a block changed (0.5) or a block less (0.2).

    What cannot be done is not drawn: there are no more blocks than in the feature model, and one at least.
    """
    blocks = list(architecture.blocks)
    possible = [
        (0.3 if len(blocks) < model.blocks else 0.0),
        (0.5 if blocks else 0.0),
        (0.2 if len(blocks) > 1 else 0.0),
    ]
    at = int(draw.integers(len(blocks))) if blocks else 0
    match _drawn(possible, draw):
        case 0:
            blocks.append(Block("1x1", 100, (BASE_CELL,)))
        case 1:
            blocks[at] = _mutated_block(blocks[at], model, draw)
        case _:
            del blocks[at]
    return Architecture(tuple(blocks))


def _mutated_block(block: Block, model: FeatureModel, draw: Generator) -> Block:
    """A cell more (0.3), changed (0.3) or less (0.1), or another stride or width (0.3)."""
    cells = list(block.cells)
    possible = [
        (0.3 if len(cells) < model.elements else 0.0),
        0.3,
        (0.1 if len(cells) > 1 else 0.0),
        0.3,
    ]
    at = int(draw.integers(len(cells)))
    match _drawn(possible, draw):
        case 0:
            cells.append(BASE_CELL)
        case 1:
            cells[at] = _mutated_cell(cells[at], draw)
        case 2:
            del cells[at]
        case _:
            if draw.random() < 0.5:
                return replace(block, stride=_choice("Block[k]_stride", draw))
            return replace(block, features=int(_choice("Block[k]_features", draw)))
    # What the last cell gives is the block's.
    cells[-1] = replace(cells[-1], passes_over=0)
    return replace(block, cells=tuple(cells))


def _mutated_cell(cell: Cell, draw: Generator) -> Cell:
    """One of its parts drawn anew."""
    parts: list[Callable[[], Cell]] = [
        lambda: replace(cell, input1=_input("Input1", draw)),
        lambda: replace(cell, input2=_input("Input2", draw)),
        lambda: replace(cell, operation1=_operation("Operation1", draw)),
        lambda: replace(cell, operation2=_operation("Operation2", draw)),
        lambda: replace(cell, combination=_choice(f"{_CELL}_Combination", draw)),
        lambda: replace(
            cell, passes_over=int(_choice(f"{_CELL}_Output_Cell_relativeCellIndex", draw))
        ),
    ]
    return parts[int(draw.integers(len(parts)))]()


def _input(place: str, draw: Generator) -> Convolution | str:
    kind = _choice(f"{_CELL}_{place}", draw)
    if kind == "Zeros" and place == "Input1":
        return "Identity"  # constraint C7
    if kind != "Convolution":
        return kind
    group = f"{_CELL}_{place}_Convolution"
    return Convolution(_choice(f"{group}_kernel", draw), _choice(f"{group}_type", draw))


def _operation(place: str, draw: Generator) -> str:
    kind = _choice(f"{_CELL}_{place}", draw)
    return kind + (_choice(f"{_CELL}_{place}_Dropout_value", draw) if kind == "Dropout" else "")


def _choice(group: str, draw: Generator) -> str:
    return str(draw.choice(choices(group)))


def _drawn(weights: Sequence[float], draw: Generator) -> int:
    shares = np.array(weights) / sum(weights)
    return int(draw.choice(len(shares), p=shares))


BASE_CELL = Cell(Convolution("3x3", "normal"), "Zeros", "Void", "Void", "Sum")
"""What a new cell is."""
