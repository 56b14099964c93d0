"""Retraining with the instances found, as in the ADF paper, section 4: fairer at the same accuracy.

Training of a copy of the model continues with its data and some of the instances. The correct labels of instances are
unknown: several classifiers of other types, trained on the same data, vote. Here they vote on both variants of an
instance together, and both get the label, since a vote on one variant may repeat the discrimination.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from epochzero_models.classifier import ProgressCallback
from epochzero_models.examples import Examples
from epochzero_models.fairness.groups import reweighing
from epochzero_models.fairness.network import fit
from epochzero_models.fairness.search import SearchOutcome
from epochzero_models.fairness.subject import Subject
from epochzero_models.fairness.table import PeopleTable

SHARE = 0.05
"""Share of the instances, as in the paper; at most as many as training rows, at least a quarter of that number."""
LEAST = 0.25
# Class in scikit-learn -> its arguments.
VOTERS: Mapping[str, Mapping[str, Any]] = {
    "ensemble.RandomForestClassifier": {"n_estimators": 50, "random_state": 0},
    "ensemble.ExtraTreesClassifier": {"n_estimators": 50, "random_state": 0},
    "naive_bayes.GaussianNB": {},
    "linear_model.LogisticRegression": {"max_iter": 500},
    "tree.DecisionTreeClassifier": {"min_samples_leaf": 20, "random_state": 0},
}


def retrained_with(
    subject: Subject,
    people: PeopleTable,
    found: SearchOutcome,
    seed: int,
    on_progress: ProgressCallback | None = None,
) -> tuple[nn.Module, int, Tensor]:
    """Continue training a copy of the model with instances.

    Args:
        subject: the model, which has gradients.
        people: rows; some are held out.
        found: at least one instance.
        seed: of the random numbers.
        on_progress: called with the progress.

    Returns:
        The module, the number of instances used, and the indices of the held-out rows.
    """
    draw = torch.Generator().manual_seed(seed)
    train, rest = people.parts(seed)
    count = _count(len(found), len(train))
    chosen = torch.randperm(len(found), generator=draw)[:count]
    levels, partners = found.levels[chosen], found.partners[chosen]
    labels = _voted(people, train, levels, partners, on_progress)
    every = torch.cat((people.levels[train], levels, partners))
    examples = Examples(
        people.name, people.domain.inputs(every), torch.cat((people.labels[train], labels, labels))
    )
    module = fit(deepcopy(subject.classifier.differentiable()), examples, seed, on_progress)
    return module, count, rest


def retrained_reweighed(
    subject: Subject, people: PeopleTable, seed: int, on_progress: ProgressCallback | None = None
) -> tuple[nn.Module, Tensor]:
    """Continue training a copy of the model with weights that make labels independent of protected attributes.

    Returns:
        The module, and the indices of the held-out rows.
    """
    train, rest = people.parts(seed)
    module = deepcopy(subject.classifier.differentiable())
    weights = torch.from_numpy(reweighing(people.take(train)))
    return fit(module, people.examples.take(train), seed, on_progress, weights), rest


def _count(found: int, rows: int) -> int:
    return min(found, rows, max(round(SHARE * found), round(LEAST * rows)))


def _voted(
    people: PeopleTable,
    train: Tensor,
    levels: Tensor,
    partners: Tensor,
    on_progress: ProgressCallback | None,
) -> Tensor:
    """Return the class with most votes, the lower one of a tie; shape (n,)."""
    inputs, labels = people.levels[train].numpy(), people.labels[train].numpy()
    center, scale = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    classes = int(labels.max()) + 1
    votes = np.zeros((len(levels), classes), np.int64)
    for number, (name, options) in enumerate(VOTERS.items()):
        if on_progress:
            on_progress("classifiers that vote on the instances", number, len(VOTERS))
        module, _, kind = name.rpartition(".")
        voter = getattr(import_module(f"sklearn.{module}"), kind)(**options)
        voter.fit((inputs - center) / scale, labels)
        for variant in (levels, partners):
            predicted = voter.predict((variant.numpy() - center) / scale)
            votes[np.arange(len(votes)), predicted] += 1
    return torch.from_numpy(votes.argmax(axis=1))
