"""All findings of a history as one verdict: the root, its symptoms under it, and what is left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from epochzero import taxonomy
from epochzero.run.watch.calibration import calibration
from epochzero.run.watch.confirmation import confirm
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import PROOFS, TOLD, EvidenceKind, TrainingFinding, WatchResult

SURE = 0.6
"""A fault of weaker signs is no root."""


def conclude(history: TrainingHistory) -> WatchResult:
    """The verdict: of the faults that are proved, that with the strongest signs is the root; of equally strong ones the earlier.

    Each finding is suspected or confirmed, as `confirm` decides.

    Its confidence is how often such a root was right in the lab, that of other findings the strength of their signs.
    """
    findings, failed = _found(history)
    findings = confirm(history, findings, catalogue())
    root = _strongest(findings, PROOFS, SURE)
    first = root or _strongest(findings, frozenset(EvidenceKind), TOLD)
    others = [finding for finding in findings if finding is not root]
    symptoms = [other for other in others if first is not None and other.word in first.causes]
    left = [other for other in others if other not in symptoms]
    if root is not None:
        sure = calibration().confidence(root.word, root.confidence)
        root = replace(root, confidence=round(sure, 2))
    return WatchResult(history.count, root, _sorted(symptoms), _sorted(left), failed)


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


def _strongest(
    findings: Sequence[TrainingFinding], kinds: Collection[EvidenceKind], least: float
) -> TrainingFinding | None:
    """The fault with the strongest signs, of those with such evidence."""
    faults = (finding for finding in findings if finding.word in taxonomy.faults())
    able = (fault for fault in faults if fault.kind in kinds and fault.confidence >= least)
    return min(able, key=_order, default=None)


def _order(finding: TrainingFinding) -> tuple[float, int]:
    return -finding.confidence, finding.since


def _sorted(findings: Iterable[TrainingFinding]) -> tuple[TrainingFinding, ...]:
    return tuple(sorted(findings, key=_order))
