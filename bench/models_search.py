"""Whether both evolutions of `generate` find better networks than as many networks drawn at random.

Each search has the same number of trainings on the same images of scikit-learn's handwritten digits (1,797 of 8 by
8), with the same weights' seed, and names the network that is best on held-back images. What counts is its accuracy on
images that no search has seen. Differences are over the same split, with intervals of 95 % by draws of whole seeds.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import time
from dataclasses import dataclass

import numpy as np
import torch
from common import SEED, mean, save
from sklearn.datasets import load_digits

from epochzero_models import Examples
from epochzero_models.generate import Generation, evolve, generate
from epochzero_models.generate.evolution import full_survivors, pledge_survivors

SEEDS = 8
WAYS = ("random", "pledge", "full")
TRAININGS = 21
"""Of each search, for each seed."""
POPULATION = 6
SURVIVORS = {"pledge": pledge_survivors(POPULATION), "full": full_survivors(POPULATION)}
TRAINED_ON = 400
"""Of which a fifth is held back."""
EPOCHS = 6
SHAPE, CLASSES = (1, 8, 8), 10
BLOCKS, CELLS = 2, 2


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        trainings: how many networks were trained.
        first, validation: the best accuracy on held-back images, of the first population and at the end.
        accuracy: of that network on other images.
        processor_s: that it took.
    """

    trainings: int
    first: float
    validation: float
    accuracy: float
    processor_s: float


def digits(seed: int) -> tuple[Examples, Examples]:
    """Images to train on and others, drawn by the seed."""
    data = load_digits()
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(data.target)))
    inputs = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    every = Examples("digits", inputs, torch.tensor(data.target))
    return every.take(order[:TRAINED_ON]), every.take(order[TRAINED_ON:])


def searched(way: str, seed: int) -> Found:
    """A search with `TRAININGS` trainings."""
    train, test = digits(seed)
    began = time.process_time()
    if way == "random":
        found = evolve(_generated(TRAININGS, seed, diverse=False), train, test, epochs=EPOCHS)
    else:
        generations = (TRAININGS - POPULATION) // (POPULATION - SURVIVORS[way])
        found = evolve(
            _generated(POPULATION, seed, diverse=True), train, test,
            evolution=way, generations=generations, epochs=EPOCHS,
        )  # fmt: skip
    accuracy = found.networks[0].accuracy
    assert accuracy is not None
    assert accuracy.value is not None
    return Found(
        found.trained, found.best[0], found.best[-1], accuracy.value, time.process_time() - began
    )


def _generated(count: int, seed: int, *, diverse: bool) -> Generation:
    return generate(
        count, SHAPE, CLASSES, blocks=BLOCKS, elements=CELLS, diverse=diverse, seed=seed
    )


def summed(found: list[Found], drawn: list[Found]) -> dict[str, object]:
    """Means over the seeds, and differences from random search."""
    gains = [one.accuracy - other.accuracy for one, other in zip(found, drawn, strict=True)]
    return {
        "trainings": sorted({one.trainings for one in found}),
        "first_validation": mean([one.first for one in found]),
        "validation": mean([one.validation for one in found]),
        "accuracy": mean([one.accuracy for one in found]),
        "over_random": mean(gains),
        "seeds_won": sum(gain > 0 for gain in gains),
        "processor_s": round(statistics.fmean(one.processor_s for one in found), 1),
    }


def main() -> None:
    """Measures all and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    told = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[Found]] = {way: [] for way in WAYS}
    for number in range(told.seeds):
        for way, each in found.items():
            each.append(searched(way, SEED + number))
            one = each[-1]
            print(
                f"seed {number + 1} of {told.seeds}, {way}: {100 * one.accuracy:.1f} % after "
                f"{one.trainings} trainings, {one.processor_s:.0f} s of the processor",
                flush=True,
            )
        keep(found)


def keep(found: dict[str, list[Found]]) -> None:
    """Writes the result of the seeds that are done, so that what breaks off is not lost."""
    numbers = {
        "seeds": len(found["random"]),
        "trained_on": TRAINED_ON,
        "epochs": EPOCHS,
        "blocks": BLOCKS,
        "cells": CELLS,
        **{way: summed(each, found["random"]) for way, each in found.items()},
    }
    versions = {name: importlib.metadata.version(name) for name in ("torch", "scikit-learn")}
    data = [{"name": "scikit-learn's digits", "images": 1797}]
    save("models_search", numbers, data=data, rivals=versions)


if __name__ == "__main__":
    main()
