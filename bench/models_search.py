"""Whether diverse networks contain a better one than as many networks drawn at random.

Both sets have the same number of networks, trained on the same images of scikit-learn's handwritten digits (1,797 of
8 by 8) with the same seed of the weights. The network that is best on held-back images counts, with its accuracy on
images that no training has seen. Differences are over the same split, with 95 % intervals by draws of whole seeds.

FeatureNET's two evolutions, `pledge` and `full`, were removed because they were no better than random networks with
as many trainings; `--before FILE` adds the result file of that measurement, on the same images and seeds.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import SEED, mean, save
from sklearn.datasets import load_digits

from epochzero_models import Examples
from epochzero_models.generate import generate, train_networks

SEEDS = 8
WAYS = ("random", "diverse")
TRAININGS = 21
"""Of each search, for each seed."""
TRAINED_ON = 400
"""Of which a fifth is held back."""
EPOCHS = 6
SHAPE, CLASSES = (1, 8, 8), 10
BLOCKS, CELLS = 2, 2


@dataclass(frozen=True, slots=True)
class Found:
    """The best network of a set.

    Attributes:
        validation: its accuracy on held-back images.
        accuracy: on other images.
        processor_s: of all trainings.
    """

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
    """The best of `TRAININGS` networks."""
    train, test = digits(seed)
    began = time.process_time()
    networks = generate(
        TRAININGS,
        SHAPE,
        CLASSES,
        blocks=BLOCKS,
        elements=CELLS,
        diverse=way == "diverse",
        seed=seed,
    )
    best = train_networks(networks, train, test, epochs=EPOCHS).networks[0]
    assert best.score is not None
    assert best.accuracy is not None
    assert best.accuracy.value is not None
    return Found(best.score.validation, best.accuracy.value, time.process_time() - began)


def summed(found: list[Found], drawn: list[Found]) -> dict[str, object]:
    """Means over the seeds, and differences from random search."""
    gains = [one.accuracy - other.accuracy for one, other in zip(found, drawn, strict=True)]
    return {
        "trainings": TRAININGS,
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
    parser.add_argument("--before", type=Path, help="result file with the removed evolutions")
    told = parser.parse_args()
    before = json.loads(told.before.read_text(encoding="utf-8")) if told.before else None
    torch.set_num_threads(1)
    found: dict[str, list[Found]] = {way: [] for way in WAYS}
    for number in range(told.seeds):
        for way, each in found.items():
            each.append(searched(way, SEED + number))
            one = each[-1]
            print(
                f"seed {number + 1} of {told.seeds}, {way}: {100 * one.accuracy:.1f} % after "
                f"{TRAININGS} trainings, {one.processor_s:.0f} s of the processor",
                flush=True,
            )
        keep(found, before)


def keep(found: dict[str, list[Found]], before: dict[str, Any] | None) -> None:
    """Writes the result of the seeds that are done, so that what breaks off is not lost."""
    numbers: dict[str, Any] = {
        "seeds": len(found["random"]),
        "trained_on": TRAINED_ON,
        "epochs": EPOCHS,
        "blocks": BLOCKS,
        "cells": CELLS,
        **{way: summed(each, found["random"]) for way, each in found.items()},
    }
    if before:
        numbers["before"] = {
            "commit": before["versions"]["epochzero_commit"],
            **{way: before["numbers"][way] for way in ("random", "pledge", "full")},
        }
    versions = {name: importlib.metadata.version(name) for name in ("torch", "scikit-learn")}
    data = [{"name": "scikit-learn's digits", "images": 1797}]
    save("models_search", numbers, data=data, rivals=versions)


if __name__ == "__main__":
    main()
