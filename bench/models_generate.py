"""How different generated networks are, and which of those that were broken on purpose `check` finds.

Distance: the mean Jaccard distance between two networks of a set, of sets that the search made and of random ones of
the same size and seed; the difference with its interval of 95 % by draws of whole seeds. Broken ones: a network of
a generated set with one feature changed, so that its program must fail at a line that is known before
(`generate.break_one`); a check is right when it tells an error there. It reads the program, and runs it dry where
reading finds nothing. Beside them whole networks, checked for an
A100: errors there are false, and each is to have an estimate of its GPU memory. Search: both evolutions beside as many
networks drawn at random, on scikit-learn's digits (1,797 images of 8 by 8); each takes the network that is best on
held-back images, and its accuracy on others is compared, with intervals by draws of whole seeds.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from common import SEED, mean, rate, save
from sklearn.datasets import load_digits

from epochzero.check import Checked, Limits, Target, check
from epochzero.check.target import read_target
from epochzero.models import Examples
from epochzero.models.generate import Generation, break_one, evolve, generate, program
from epochzero.models.generate.breaking import BREAKS
from epochzero.models.generate.evolution import full_survivors, pledge_survivors
from epochzero.models.generate.feature_model import feature_model
from epochzero.models.generate.plan import Plan
from epochzero.models.generate.sampling import diverse_products, mean_distance, random_products

SIZES = (5, 10, 20, 50)
SEEDS = 8
BROKEN = 60
WHOLE = 4
BLOCKS, CELLS = 3, 3
SHAPE, CLASSES = (3, 16, 16), 10
MOST_PARAMETERS = 2_000_000
"""Of networks that are checked, since each is run."""
SEARCH_SEEDS = 8
WAYS = ("random", "pledge", "full")
TRAININGS = 21
"""Of each search, for each seed."""
POPULATION = 6
SURVIVORS = {"pledge": pledge_survivors(POPULATION), "full": full_survivors(POPULATION)}
TRAINED_ON = 800
SEARCH_EPOCHS = 8
HERE = Target(name="here", here=True, gpus=())


def distances(seeds: int) -> dict[str, object]:
    """Mean distances by size of the set, over the seeds."""
    model = feature_model(BLOCKS, CELLS)
    found: dict[str, object] = {"features": len(model.features), "clauses": len(model.clauses)}
    for size in SIZES:
        began = time.process_time()
        sets = [
            (
                mean_distance(diverse_products(model, size, seed=SEED + number)),
                mean_distance(random_products(model, size, seed=SEED + number)),
            )
            for number in range(seeds)
        ]
        diverse, drawn = ([pair[side] for pair in sets] for side in (0, 1))
        found[str(size)] = {
            "diverse": mean(diverse),
            "random": mean(drawn),
            "difference": mean([one - other for one, other in sets]),
            "seeds_won": sum(one > other for one, other in sets),
            "processor_s_per_set": round((time.process_time() - began) / seeds, 1),
        }
        print(f"{size} networks: {np.mean(diverse):.3f} beside {np.mean(drawn):.3f}", flush=True)
    return found


def plans() -> Iterator[Plan]:
    """Networks of diverse sets, one after the other, without end."""
    seed = SEED
    while True:
        for one in generate(10, SHAPE, CLASSES, steps=100, seed=seed).networks:
            if one.plan.parameters <= MOST_PARAMETERS:
                yield one.plan
        seed += 1


def broken(count: int) -> dict[str, object]:
    """What `check` says of networks with one mistake, as many of each kind."""
    source = plans()
    tried: Counter[str] = Counter()
    found: dict[str, Counter[str]] = {"by_reading": Counter(), "by_running": Counter()}
    rules: Counter[str] = Counter()
    for number in range(count):
        mistake = list(BREAKS)[number % len(BREAKS)]
        plan = next(plan for plan in source if any(True for _ in BREAKS[mistake](plan)))
        changed = break_one(plan, number, mistake)
        text = program(changed.plan)
        tried[mistake] += 1
        how, right = "by_reading", _right(_checked(text, HERE, dry=False), changed.line)
        if not right:
            how, right = "by_running", _right(_checked(text, HERE, dry=True), changed.line)
        found[how][mistake] += bool(right)
        rules.update(right)
        print(f"{number + 1} of {count}: {mistake}: {', '.join(right) or 'missed'}", flush=True)
    return {
        "networks": count,
        "found": rate(sum(each.total() for each in found.values()), count),
        "rules": dict(rules),
        "by_mistake": {
            mistake: {"networks": tried[mistake]} | {how: found[how][mistake] for how in found}
            for mistake in tried
        },
    }


def _right(checked: Checked, line: str) -> set[str]:
    """The rules that found an error in that line."""
    return {
        one.rule
        for one in checked.findings
        if one.severity == "error" and one.place.code.strip() == line
    }


def whole(count: int) -> dict[str, object]:
    """What `check` says of networks without a mistake on an A100."""
    source, target = plans(), read_target("A100")
    wrong, estimated = 0, 0
    for number in range(count):
        checked = _checked(program(next(source)), target, dry=True)
        wrong += any(one.severity == "error" for one in checked.findings)
        estimated += any(run.memory is not None for run in checked.dry)
        print(f"{number + 1} of {count} whole ones: {estimated} with their memory", flush=True)
    return {"networks": count, "with_false_errors": wrong, "with_memory_estimate": estimated}


def _checked(source: str, target: Target, *, dry: bool) -> Checked:
    with tempfile.TemporaryDirectory(prefix="models-generate-") as folder:
        Path(folder, "train.py").write_text(source, encoding="utf-8")
        return check(
            [sys.executable, "train.py", "--batch-size", "16"],
            target,
            folder=Path(folder),
            environment=dict(os.environ),
            dry=Limits(seconds=120.0) if dry else None,
        )


def digits(seed: int) -> tuple[Examples, Examples]:
    """Images to train on and others, drawn by the seed."""
    data = load_digits()
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(data.target)))
    inputs = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    every = Examples("digits", inputs, torch.tensor(data.target))
    return every.take(order[:TRAINED_ON]), every.take(order[TRAINED_ON:])


def searched(way: str, seed: int) -> Generation:
    """The networks of a search with `TRAININGS` trainings."""
    train, test = digits(seed)
    shape, classes = (1, 8, 8), 10
    if way == "random":
        drawn = generate(TRAININGS, shape, classes, blocks=2, elements=2, diverse=False, seed=seed)
        return evolve(drawn, train, test, epochs=SEARCH_EPOCHS)
    made = generate(POPULATION, shape, classes, blocks=2, elements=2, seed=seed)
    generations = (TRAININGS - POPULATION) // (POPULATION - SURVIVORS[way])
    return evolve(made, train, test, evolution=way, generations=generations, epochs=SEARCH_EPOCHS)


def search(seeds: int) -> dict[str, object]:
    """Accuracy of what each search finds, beside random search, over the seeds."""
    found: dict[str, list[Generation]] = {way: [] for way in WAYS}
    for number in range(seeds):
        for way, each in found.items():
            each.append(searched(way, SEED + number))
            best = each[-1].networks[0].accuracy
            told = (
                f"{100 * (best.value or 0 if best else 0):.1f} % after {each[-1].trained} trainings"
            )
            print(f"seed {number + 1} of {seeds}, {way}: {told}", flush=True)
    accuracy = {way: [_accuracy(one) for one in each] for way, each in found.items()}
    return {
        "trained_on": TRAINED_ON,
        "epochs": SEARCH_EPOCHS,
        **{
            way: {
                "trainings": [one.trained for one in found[way]],
                "validation": mean([max(one.best) for one in found[way]]),
                "accuracy": mean(values),
                "over_random": mean(
                    [a - b for a, b in zip(values, accuracy["random"], strict=True)]
                ),
                "seeds_won": sum(a > b for a, b in zip(values, accuracy["random"], strict=True)),
            }
            for way, values in accuracy.items()
        },
    }


def _accuracy(found: Generation) -> float:
    """Of the network that is best on held-back images."""
    best = found.networks[0].accuracy
    assert best is not None
    assert best.value is not None
    return best.value


def main() -> None:
    """Measures all and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--broken", type=int, default=BROKEN, help="networks with a mistake")
    parser.add_argument("--search", type=int, default=SEARCH_SEEDS, help="seeds of the searches")
    parser.add_argument("--whole", type=int, default=WHOLE, help="networks without one")
    told = parser.parse_args()
    numbers = {
        "seeds": told.seeds,
        "distance": distances(told.seeds),
        "broken": broken(told.broken),
        "whole": whole(told.whole),
        "search": search(told.search),
    }
    data = [
        {"name": "feature model", "blocks": BLOCKS, "cells": CELLS},
        {"name": "scikit-learn's digits", "images": 1797},
    ]
    versions = {name: importlib.metadata.version(name) for name in ("torch", "python-sat")}
    save("models_generate", numbers, data=data, rivals=versions)


if __name__ == "__main__":
    main()
