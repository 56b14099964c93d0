"""The last resort: a small learned classifier for exceptions that nothing else knows.

Multinomial logistic regression (Hastie, Tibshirani, Friedman, "The Elements of Statistical
Learning", Section 4.4) over the words of the exception's class and message. ``classifier.json`` was
made by ``bench/train_classifier.py`` and says on what it was trained.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_WORD = re.compile(r"[A-Za-z_]{3,30}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")
MESSAGE_CHARS = 600
MOST_WORDS = 60


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of a trained classifier.

    Attributes:
        bias: of each category.
        weights: of each word for each category, in the order of ``bias``.
    """

    bias: Mapping[str, float]
    weights: Mapping[str, Sequence[float]]

    def classify(self, kind: str, message: str) -> tuple[str, float]:
        """The most likely category and its probability; ("", 0) when no word is known."""
        known = [self.weights[word] for word in words(kind, message) if word in self.weights]
        if not known:
            return "", 0.0
        scores = [b + sum(word[n] for word in known) for n, b in enumerate(self.bias.values())]
        best = max(scores)
        total = sum(math.exp(score - best) for score in scores)
        return list(self.bias)[scores.index(best)], 1.0 / total


def words(kind: str, message: str) -> frozenset[str]:
    """The words that the classifier looks at, those of the class marked as such."""
    short = kind.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    parts = {f"class:{part.lower()}" for part in _PART.findall(short)}
    said = _WORD.findall(message[:MESSAGE_CHARS])[:MOST_WORDS]
    return frozenset(parts | {word.lower() for word in said})


def classify(kind: str, message: str) -> tuple[str, float]:
    """The category that the shipped model gives, and how sure it is.

    Args:
        kind: class of the exception as printed.
        message: its message.
    """
    return _shipped().classify(kind, message)


@cache
def _shipped() -> Model:
    raw = json.loads(files(__package__).joinpath("classifier.json").read_text(encoding="utf-8"))
    return Model(raw["bias"], raw["weights"])
