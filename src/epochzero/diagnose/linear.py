"""Small learned models: multinomial logistic regression over named features, as JSON.

Hastie, Tibshirani, Friedman, "The Elements of Statistical Learning", Section 4.4. The models are
made by scripts in ``bench`` and hold a few thousand weights, so plain Python evaluates them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Weights of a trained model.

    Attributes:
        bias: of each class.
        weights: of each feature for each class, in the order of ``bias``.
        steps: upper bounds of probabilities, and how often the first class was right up to there; empty if
            the probabilities need no correction.
    """

    bias: Mapping[str, float]
    weights: Mapping[str, Sequence[float]]
    steps: Sequence[tuple[float, float]] = ()

    def calibrated(self, probability: float) -> float:
        """The share that was right among cases of such a probability."""
        shares = (share for bound, share in self.steps if probability <= bound)
        return next(shares, self.steps[-1][1] if self.steps else probability)

    def classify(self, features: Iterable[str]) -> tuple[str, float]:
        """The most likely class and its probability; ("", 0) when no feature is known."""
        known = [self.weights[feature] for feature in features if feature in self.weights]
        if not known:
            return "", 0.0
        scores = [b + sum(each[n] for each in known) for n, b in enumerate(self.bias.values())]
        best = max(scores)
        total = sum(math.exp(score - best) for score in scores)
        return list(self.bias)[scores.index(best)], 1.0 / total


@cache
def shipped(name: str) -> LinearModel:
    """The model of the package that is stored as ``name`` (a JSON file of this folder)."""
    raw = json.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return LinearModel(raw["bias"], raw["weights"], raw.get("steps", ()))
