"""All findings of a history as one verdict: the root, its symptoms under it, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from epochzero import taxonomy
from epochzero.run.watch.calibration import calibration
from epochzero.run.watch.confirmation import confirm
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.faults._signals import is_harmed
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding, WatchResult

SURE = 0.5
"""A fault of weaker signs is no root."""
SURE_ON_THE_WAY = 0.7
"""While a training goes on, what it has not reached yet is no fault."""
SURE_WITHOUT_HARM = 0.6
"""Where it is unknown whether the training came to harm: below that, findings in the lab's open half are wrong."""


def conclude(history: TrainingHistory) -> WatchResult:
    """The verdict: the fault with the strongest signs is the root; of equally strong ones the earlier.

    Each finding is suspected or confirmed, as `confirm` decides.

    Its confidence is how often such a root was right in the lab, that of other findings the strength of their signs.
    """
    findings, failed = _found(history)
    findings = confirm(history, findings, catalogue())
    root = _root(history, findings)
    others = [finding for finding in findings if finding is not root]
    symptoms = [other for other in others if root is not None and other.word in root.causes]
    left = [other for other in others if other not in symptoms]
    if root is not None:
        sure = calibration().confidence(root.word, root.confidence)
        root = replace(root, confidence=round(sure, 2))
    return WatchResult(history.count, root, _sorted(symptoms), _sorted(left), failed)


def root_of(history: TrainingHistory) -> TrainingFinding | None:
    """The root with the strength of its signs as its confidence; None for none."""
    findings, _ = _found(history)
    return _root(history, findings)


def _found(history: TrainingHistory) -> tuple[list[TrainingFinding], tuple[str, ...]]:
    """All findings, and the searches that failed."""
    findings: list[TrainingFinding] = []
    failed: list[str] = []
    for word, find in catalogue().items():
        # One search that fails must not hide what the others find.
        try:
            findings += find(history)
        except Exception as error:
            failed.append(f"{word}: {type(error).__name__}: {error}")
    return findings, tuple(failed)


def _root(history: TrainingHistory, findings: Sequence[TrainingFinding]) -> TrainingFinding | None:
    faults = [finding for finding in findings if finding.word in taxonomy.faults()]
    root = min(faults, key=_order, default=None)
    return root if root is not None and root.confidence >= _least(history) else None


def _least(history: TrainingHistory) -> float:
    """How strong the signs of a root are at least."""
    if not history.ended:
        return SURE_ON_THE_WAY
    return SURE_WITHOUT_HARM if is_harmed(history) is None else SURE


def _order(finding: TrainingFinding) -> tuple[float, int]:
    return -finding.confidence, finding.since


def _sorted(findings: Iterable[TrainingFinding]) -> tuple[TrainingFinding, ...]:
    return tuple(sorted(findings, key=_order))
