"""Selects the searches: an exhaustive one if the budget suffices, otherwise the guided and random search."""

from __future__ import annotations

from collections.abc import Callable

import torch

from epochzero_models.classifier import ProgressCallback
from epochzero_models.fairness.guided import GuidedSearch
from epochzero_models.fairness.search import (
    Archive,
    SearchBudget,
    SearchOutcome,
    exhaustive,
    random_search,
)
from epochzero_models.fairness.subject import Subject
from epochzero_models.fairness.table import PeopleTable

EXHAUSTIVE = "exhaustive"
MOST = 5_000_000
"""Maximum number of inputs of an exhaustive search, whose results are held in memory."""


def why_not_all(size: int, budget: SearchBudget, seconds: float) -> str:
    """Return why the budget does not suffice to check all inputs; empty if it does.

    Args:
        size: number of inputs.
        budget: of the search.
        seconds: per input.
    """
    if size > MOST:
        return f"there are {size:,} inputs"
    if budget.instances is not None:
        return "it would not end at some number of instances"
    if budget.inputs is not None and size > budget.inputs:
        return f"there are {size:,} inputs, more than the budget"
    if budget.seconds is not None and size * seconds > budget.seconds:
        return f"all {size:,} inputs would take about {size * seconds:.0f} s, more than the budget"
    return ""


def searched(
    subject: Subject,
    people: PeopleTable,
    budget: SearchBudget,
    seconds: float,
    seed: int,
    on_progress: ProgressCallback | None = None,
) -> tuple[list[SearchOutcome], dict[str, str]]:
    """Return all instances if the budget suffices for all inputs, otherwise the results of the searches.

    Args:
        subject: the model and its domain.
        people: rows, from which half of the guided search starts.
        budget: of each search.
        seconds: per input.
        seed: of all random numbers.
        on_progress: called with the progress.

    Returns:
        The results, and what was omitted with the reasons.
    """
    reason = why_not_all(subject.domain.size, budget, seconds)
    if not reason:
        return [search_all(subject, budget, on_progress)], {}
    reasons = {"exhaustive search": reason, "gradients": subject.no_gradients(people.levels[:1])}
    left_out = {what: why for what, why in reasons.items() if why}
    return compare_searches(subject, people, budget, seed, on_progress), left_out


def search_all(
    subject: Subject, budget: SearchBudget, on_progress: ProgressCallback | None = None
) -> SearchOutcome:
    """Return all instances, however long it takes."""
    every = SearchBudget(inputs=subject.domain.size, clock=budget.clock)
    archive = Archive(EXHAUSTIVE, subject, every, on_progress)
    exhaustive(archive)
    return archive.found()


def compare_searches(
    subject: Subject,
    people: PeopleTable,
    budget: SearchBudget,
    seed: int,
    on_progress: ProgressCallback | None = None,
) -> list[SearchOutcome]:
    """Run the guided and random search with the same budget each."""
    searches: dict[str, Callable[[Archive, torch.Generator], None]] = {
        "guided": lambda archive, draw: GuidedSearch(archive, people.levels, draw).run(),
        "random": random_search,
    }
    found: list[SearchOutcome] = []
    for name, search in searches.items():
        archive = Archive(name, subject, budget, on_progress)
        search(archive, torch.Generator().manual_seed(seed))
        found.append(archive.found())
    return found
