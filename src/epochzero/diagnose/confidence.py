"""How likely the category of a diagnosis is right, by what it rests on.

A small model (``confidence.json``, made by ``bench/train_confidence.py``) that was trained on logs of
projects which neither signatures nor rules were written from. What it sees is in the diagnosis itself.
"""

from __future__ import annotations

from epochzero.diagnose.linear import shipped
from epochzero.diagnose.model import Diagnosis
from epochzero.diagnose.reading import read

EXCERPT_LINES = 150
"""A failure further down is in the log of a job rather than in an excerpt of one."""


def confidence(found: Diagnosis) -> float:
    """The estimated probability that the category is right, 0 to 1.

    Args:
        found: a diagnosis of a job that failed.
    """
    answer, probability = shipped("confidence.json").classify(confidence_features(found))
    return round(probability if answer == "right" else 1.0 - probability, 2)


def confidence_features(found: Diagnosis) -> frozenset[str]:
    """What a category rests on: kind of evidence, category, and what is known of its exception."""
    basis: str = found.basis
    if basis == "reading" and found.root is not None:
        kind, message = "", found.root.text
        if found.exception:
            kind, message = found.exception.type, found.exception.message
        last = found.stack[-1] if found.stack else None
        basis = read(kind, message, last.file if last else "", last.code if last else "").basis
    late = found.root is not None and (found.root.line or 0) > EXCERPT_LINES
    return frozenset(
        {
            f"basis={basis}",
            f"category={found.category}",
            f"exception={found.exception is not None}",
            f"stack={bool(found.stack)}",
            f"rivals={bool(found.also)}",
            f"cause={found.root_cause}",
            f"long={late}",
            f"end={found.end.evidence}",
        }
    )
