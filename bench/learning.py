"""Trains the small models that a diagnosis uses, and judges them by leaving projects out."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from epochzero.diagnose.linear import LinearModel

__all__ = ["FOLDS", "Example", "fit", "fold", "write"]

FOLDS = 5
RATE = 0.05
STEPS = 300
FEWEST = 3
"""A feature of fewer examples is left out."""

Example = tuple[Collection[str], str, float]
"""The features of a case, its class, and its weight."""
Array = npt.NDArray[np.float32]


def fold(project: str) -> int:
    """In which of the `FOLDS` parts a project is left out."""
    return hashlib.sha256(f"fold {project}".encode()).digest()[0] % FOLDS


def fit(examples: Sequence[Example], penalty: float) -> LinearModel:
    """Softmax regression with an L2 penalty, by Adam on all examples at once.

    Adam: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.
    """
    seen = Counter(feature for features, _, _ in examples for feature in features)
    vocabulary = {word: n for n, word in enumerate(sorted(w for w in seen if seen[w] >= FEWEST))}
    names = sorted({name for _, name, _ in examples})
    x = np.zeros((len(examples), len(vocabulary) + 1), np.float32)
    x[:, -1] = 1.0
    y = np.zeros((len(examples), len(names)), np.float32)
    for row, (features, name, _) in enumerate(examples):
        y[row, names.index(name)] = 1.0
        for feature in vocabulary.keys() & set(features):
            x[row, vocabulary[feature]] = 1.0
    weight = np.array([[weight] for _, _, weight in examples], np.float32)
    theta = _minimize(x, y, weight, penalty)
    table = {word: theta[n].tolist() for word, n in vocabulary.items()}
    return LinearModel(dict(zip(names, theta[-1].tolist(), strict=True)), table)


def _minimize(x: Array, y: Array, weight: Array, penalty: float) -> Array:
    theta = np.zeros((x.shape[1], y.shape[1]), np.float32)
    mean, spread = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, STEPS + 1):
        logits = x @ theta
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = x.T @ (weight * (p - y)) + penalty * theta
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        unbiased = mean / (1 - 0.9**step), spread / (1 - 0.999**step)
        theta -= RATE * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return theta


def write(path: Path, model: LinearModel, **described: Mapping[str, object]) -> None:
    """Stores a model with what it was trained on and how it measured."""
    body = {
        **described,
        "bias": {name: round(b, 3) for name, b in model.bias.items()},
        "weights": {
            word: rounded
            for word, values in model.weights.items()
            if any(rounded := [round(w, 2) for w in values])
        },
    }
    if model.steps:
        body["steps"] = model.steps
    path.write_text(json.dumps(body, separators=(",", ":")) + "\n", encoding="utf-8")
