"""How likely the category of a diagnosis is right, by what it rests on.

A small model (``confidence.json``, made by ``bench/train_confidence.py``) that was trained on first
evaluations: logs of projects that nobody had tuned for at that time. All its features are in the
diagnosis itself.
"""

from __future__ import annotations

from epochzero.diagnose.linear import shipped
from epochzero.diagnose.model import Diagnosis
from epochzero.diagnose.reading import read

EXCERPT_LINES = 150
"""A failure further down is in the log of a job rather than in an excerpt of one."""
_WEAK = frozenset({"catch_all", "classifier", "guess", "message", "nothing"})
"""Kinds of evidence that are too rare to be judged one by one."""


def confidence(found: Diagnosis) -> float:
    """The estimated probability that the category is right, 0 to 1."""
    model = shipped("confidence.json")
    answer, probability = model.classify(confidence_features(found))
    return round(model.calibrated(probability if answer == "right" else 1.0 - probability), 2)


def confidence_features(found: Diagnosis) -> frozenset[str]:
    """What a category rests on: kind of evidence, how the job ended, and what else the log contains."""
    later = sum(consequence.role == "later" for consequence in found.cascade)
    kinds = {consequence.title or consequence.text[:20] for consequence in found.cascade}
    root = found.root
    return frozenset(
        {
            f"basis={_basis(found)}",
            f"category={found.category}",
            f"cause={found.root_cause}",
            f"consequences={min(2, len(kinds))}",
            f"end={found.end.evidence}",
            f"exception={found.exception is not None}",
            f"later={min(2, later)}",
            f"long={root is not None and (root.line or 0) > EXCERPT_LINES}",
            f"own={found.user_frame is not None}",
            f"rank={root is not None and root.rank is not None}",
            f"rivals={bool(found.also)}",
            f"stack={bool(found.stack)}",
        }
    )


def _basis(found: Diagnosis) -> str:
    """The kind of evidence; of the general reading, the kind of its rule."""
    basis: str = found.basis
    if basis == "reading" and found.root is not None:
        kind, message = "", found.root.text
        if found.exception:
            kind, message = found.exception.type, found.exception.message
        last = found.stack[-1] if found.stack else None
        basis = read(kind, message, last.file if last else "", last.code if last else "").basis
    return "weak" if basis in _WEAK else basis
