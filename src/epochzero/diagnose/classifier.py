"""Fallback classifier for exceptions that neither a signature nor a rule recognizes.

It uses the words of the exception's class and message.
``bench/train_classifier.py`` writes ``classifier.json``, which names its training data.
"""

from __future__ import annotations

import re

from epochzero.diagnose.linear import shipped

_WORD = re.compile(r"[A-Za-z_]{3,30}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")
MESSAGE_CHARS = 600
MOST_WORDS = 60


def words(kind: str, message: str) -> frozenset[str]:
    """The words that the classifier uses; words of the class are marked."""
    short = kind.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    parts = {f"class:{part.lower()}" for part in _PART.findall(short)}
    tokens = _WORD.findall(message[:MESSAGE_CHARS])[:MOST_WORDS]
    return frozenset(parts | {word.lower() for word in tokens})


def classify(kind: str, message: str) -> tuple[str, float]:
    """The category that the built-in model predicts, and its probability.

    Args:
        kind: class of the exception as printed.
        message: its message.
    """
    return shipped("classifier.json").classify(words(kind, message))
