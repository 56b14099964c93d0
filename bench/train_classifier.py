"""Trains the classifier of last resort and writes ``src/epochzero/diagnose/classifier.json``.

It learns from the development half only (``bench/split.py``): the labelled failures and notebooks,
our labels, and, with less weight, unlabelled failures whose category a signature or the general
reading knows. It never sees a held-out project. Before it writes, it measures itself by leaving
projects out, on the failures that nothing else knows and on all.

    python bench/train_classifier.py
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import data_file, jsonl
from split import held, project_of

from epochzero.diagnose import Diagnoser
from epochzero.diagnose.classifier import Model, words
from epochzero.logs.source import Log

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/diagnose/classifier.json"
LABELS = Path(__file__).resolve().parent / "labels" / "development.jsonl"
KNOWN_WEIGHT = 0.3
PENALTY = 0.3
RATE = 0.05
STEPS = 300
FEWEST = 3
FOLDS = 5

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """One exception to learn from."""

    project: str
    kind: str
    message: str
    category: str
    weight: float
    known: bool


def main() -> None:
    cases = list(_cases())
    report = _measure(cases)
    print(json.dumps(report, indent=2))
    model = train(cases)
    TARGET.write_text(
        json.dumps(
            {
                "trained_on": {
                    "labelled": sum(1 for case in cases if case.weight == 1.0),
                    "known_by_rule": sum(1 for case in cases if case.weight < 1.0),
                    "projects": len({case.project for case in cases}),
                    "never": "projects for which bench/split.py says held",
                },
                "measured": report,
                "bias": {name: round(b, 3) for name, b in model.bias.items()},
                "weights": {
                    word: [round(w, 2) for w in values] for word, values in model.weights.items()
                },
            },
            separators=(",", ":"),
        )
        + "\n",
        encoding="utf-8",
    )


def train(cases: Sequence[Case]) -> Model:
    """Softmax regression with an L2 penalty, by Adam on all cases at once; rare words are left out.

    Adam: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.
    """
    seen = Counter(word for case in cases for word in words(case.kind, case.message))
    vocabulary = {word: n for n, word in enumerate(sorted(w for w in seen if seen[w] >= FEWEST))}
    names = sorted({case.category for case in cases})
    x = np.zeros((len(cases), len(vocabulary) + 1), np.float32)
    x[:, -1] = 1.0
    y = np.zeros((len(cases), len(names)), np.float32)
    for row, case in enumerate(cases):
        y[row, names.index(case.category)] = 1.0
        for word in words(case.kind, case.message) & vocabulary.keys():
            x[row, vocabulary[word]] = 1.0
    weight = np.array([[case.weight] for case in cases], np.float32)
    theta = _minimize(x, y, weight)
    table = {word: theta[n].tolist() for word, n in vocabulary.items()}
    return Model(dict(zip(names, theta[-1].tolist(), strict=True)), table)


def _minimize(x: Array, y: Array, weight: Array) -> Array:
    theta = np.zeros((x.shape[1], y.shape[1]), np.float32)
    mean, spread = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, STEPS + 1):
        logits = x @ theta
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = x.T @ (weight * (p - y)) + PENALTY * theta
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        unbiased = mean / (1 - 0.9**step), spread / (1 - 0.999**step)
        theta -= RATE * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return theta


def _cases() -> Iterable[Case]:
    diagnoser = Diagnoser(redact=False)
    labels = {row["id"]: row for row in jsonl(LABELS)}
    for name in ("labelled", "notebooks", "unlabelled"):
        for row in data_file(f"failures/{name}.jsonl.gz").records:
            if held(row["id"]):
                continue
            label = row.get("label") or labels.get(row["id"])
            if case := _case(diagnoser, row, label["category"] if label else None):
                yield case


def _case(diagnoser: Diagnoser, row: dict[str, Any], category: str | None) -> Case | None:
    found = diagnoser.diagnose([Log(row["id"], text=row["log"].encode())])
    if found.exception is None or found.outcome != "failed" or category == "not_a_failure":
        return None
    known = found.basis in ("signature", "reading")
    if category is None and not known:
        return None
    return Case(
        project_of(row["id"]),
        found.exception.type,
        found.exception.message,
        category or found.category,
        1.0 if category else KNOWN_WEIGHT,
        known,
    )


def _measure(cases: Sequence[Case]) -> dict[str, Any]:
    """Accuracy on labelled cases of projects that were left out of the training."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for fold in range(FOLDS):
        model = train([case for case in cases if _fold(case.project) != fold])
        for case in cases:
            if _fold(case.project) == fold and case.weight == 1.0:
                kind = "known by rule" if case.known else "unknown to all rules"
                asked[kind] += 1
                right[kind] += model.classify(case.kind, case.message)[0] == case.category
    return {kind: {"cases": asked[kind], "right": right[kind]} for kind in sorted(asked)}


def _fold(name: str) -> int:
    return hashlib.sha256(f"fold {name}".encode()).digest()[0] % FOLDS


if __name__ == "__main__":
    main()
