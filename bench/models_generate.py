"""How different generated networks are, and which of those that were broken on purpose `check` finds.

Distance: the mean Jaccard distance between two networks of a set, of sets that the search made and of random ones of
the same size and seed; the difference with its interval of 95 % by draws of whole seeds. Uniformity: Pearson's chi-square
over all products of one cell, and how many have a convolution first. Broken ones: a network of
a generated set with one feature changed, so that its program must fail at a line that is known before
(`generate.break_one`); a check is right when it tells an error there. It reads the program, and runs it dry where
reading finds nothing. Beside them whole networks, checked for an
A100: errors there are false, and each is to have an estimate of its GPU memory.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import SEED, mean, rate, save
from scipy import stats

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.target import read_target
from epochzero_models.generate import break_one, generate, program
from epochzero_models.generate.counting import Solutions
from epochzero_models.generate.faulty_networks import BREAKS
from epochzero_models.generate.feature_model import feature_model
from epochzero_models.generate.plan import NetworkPlan
from epochzero_models.generate.sampling import diverse_products, mean_distance, random_products

SIZES = (5, 10, 20, 50)
SEEDS = 8
EXPECTED = 5
"""Draws of each product, the least for which Pearson's statistic is usually taken to have its distribution."""
BROKEN = 60
WHOLE = 4
BLOCKS, CELLS = 3, 3
SHAPE, CLASSES = (3, 16, 16), 10
MOST_PARAMETERS = 2_000_000
"""Of networks that are checked, since each is run."""
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


def uniformity(expected: int) -> dict[str, object]:
    """Chi-square of the draws over all products of one cell, so many draws of each expected."""
    model = feature_model(1, 1)
    solutions = Solutions(model.clauses, len(model.features), model.numbers(model.cells))
    products = solutions.count(1)
    draws = random.Random(SEED)
    drawn = Counter(tuple(solutions.draw(1, draws)) for _ in range(expected * products))
    missed = products - len(drawn)
    square = sum((times - expected) ** 2 for times in drawn.values()) / expected + missed * expected
    (convolution,) = model.numbers(["Block1_Element1_Cell_Input1_Convolution"])
    convolved = sum(times for numbers, times in drawn.items() if convolution in numbers)
    return {
        "products": products,
        "draws": expected * products,
        "chi_square": round(square),
        "degrees_of_freedom": products - 1,
        "p": round(float(stats.chi2.sf(square, products - 1)), 3),
        "with_a_convolution_first": rate(convolved, expected * products),
        "with_a_convolution_first_if_uniform": rate(27, 28),
    }


def plans() -> Iterator[NetworkPlan]:
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


def _right(checked: CheckResult, line: str) -> set[str]:
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


def _checked(source: str, target: Target, *, dry: bool) -> CheckResult:
    with tempfile.TemporaryDirectory(prefix="models-generate-") as folder:
        Path(folder, "train.py").write_text(source, encoding="utf-8")
        return check(
            [sys.executable, "train.py", "--batch-size", "16"],
            target,
            folder=Path(folder),
            environment=dict(os.environ),
            dry=Limits(seconds=120.0) if dry else None,
        )


def main() -> None:
    """Measures all and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--broken", type=int, default=BROKEN, help="networks with a mistake")
    parser.add_argument("--whole", type=int, default=WHOLE, help="networks without one")
    told = parser.parse_args()
    numbers = {
        "seeds": told.seeds,
        "distance": distances(told.seeds),
        "uniformity": uniformity(EXPECTED),
        "broken": broken(told.broken),
        "whole": whole(told.whole),
    }
    data = [{"name": "feature model", "blocks": BLOCKS, "cells": CELLS}]
    versions = {name: importlib.metadata.version(name) for name in ("torch",)}
    save("models_generate", numbers, data=data, rivals=versions)


if __name__ == "__main__":
    main()
