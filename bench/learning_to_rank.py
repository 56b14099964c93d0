"""Training and cross-validating the learned ranking; shared by the benchmark and the trainer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
from common import SEED

from epochzero.locate.ranker import Trees, ranked

__all__ = ["ROUNDS", "SETTINGS", "Example", "cross_validated", "fit", "folds", "trees_of"]

Floats = npt.NDArray[np.float32]

SETTINGS = {
    "objective": "lambdarank",
    "learning_rate": 0.03,
    "num_leaves": 7,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.15,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "lambdarank_truncation_level": 10,
    "max_bin": 127,
    "label_gain": [0, 1],
    "metric": "none",
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
}
ROUNDS = 500
"""Settings and rounds were chosen among eight on the development half of the projects
(``split.py``), so that the tables of the held-out half are free of that choice."""
LIKELY, OTHERS = 60, 20
"""Of each bug so many of the likeliest files and so many others are learned from."""
FOLDS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A bug's features.

    Attributes:
        bug: its id.
        project: ``owner+name``.
        names: of the columns.
        table: (files, columns).
        wanted: the files that the fix changed.
    """

    bug: str
    project: str
    names: tuple[str, ...]
    table: Floats
    wanted: tuple[int, ...]


def folds(projects: Sequence[str], count: int = FOLDS) -> Mapping[str, int]:
    """A fold for each project, the folds of about the same number of bugs.

    Args:
        projects: of each bug.
        count: how many folds.
    """
    sizes = [0] * count
    found = {}
    for project, bugs in sorted(Counter(projects).items(), key=lambda item: (-item[1], item[0])):
        fold = sizes.index(min(sizes))
        found[project] = fold
        sizes[fold] += bugs
    return found


def cross_validated(
    examples: Sequence[Example], asked: Sequence[Example], columns: Sequence[str] | None = None
) -> Iterator[tuple[Example, Floats]]:
    """Scores by models that never saw a bug of the same project.

    Args:
        examples: to learn from.
        asked: to score.
        columns: features to use; all when not given.
    """
    of = folds([example.project for example in asked])
    for fold in sorted(set(of.values())):
        model = fit([e for e in examples if of.get(e.project) != fold], columns)
        for example in asked:
            if of[example.project] == fold:
                yield example, ranked(model, example.names, example.table)


def fit(examples: Sequence[Example], columns: Sequence[str] | None = None) -> Trees:
    """The trees learned from bugs."""
    names = tuple(columns or examples[0].names)
    draw = np.random.default_rng(SEED)
    tables, labels = [], []
    for example in examples:
        rows = _rows(example, draw)
        place = [example.names.index(name) for name in names]
        tables.append(example.table[rows][:, place])
        labels.append(np.isin(rows, example.wanted).astype(np.int8))
    sizes = [len(rows) for rows in labels]
    data = lightgbm.Dataset(np.concatenate(tables), np.concatenate(labels), group=sizes)
    return trees_of(names, lightgbm.train(SETTINGS | {"seed": SEED}, data, ROUNDS))


def _rows(example: Example, draw: np.random.Generator) -> npt.NDArray[np.int64]:
    """The files of a bug that are learned from."""
    guess = example.table[:, example.names.index("guess")]
    order = np.argsort(-guess, kind="stable")
    chosen = {*order[:LIKELY].tolist(), *example.wanted}
    others = [n for n in order[LIKELY:].tolist() if n not in chosen]
    if others:
        chosen |= set(draw.choice(others, min(OTHERS, len(others)), replace=False).tolist())
    return np.array(sorted(chosen))


def trees_of(names: Sequence[str], model: lightgbm.Booster) -> Trees:
    """LightGBM's model as the package evaluates it."""
    return Trees.of(names, [_nodes(t["tree_structure"]) for t in model.dump_model()["tree_info"]])


def _nodes(root: Mapping[str, Any]) -> list[list[float]]:
    """LightGBM's tree as a list of nodes, as `Trees.of` takes it."""
    nodes: list[list[float]] = []

    def add(node: Mapping[str, Any]) -> int:
        place = len(nodes)
        nodes.append([])
        if "split_feature" in node:
            left, right = add(node["left_child"]), add(node["right_child"])
            nodes[place] = [node["split_feature"], node["threshold"], left, right]
        else:
            nodes[place] = [node["leaf_value"]]
        return place

    add(root)
    return nodes
