"""Whether a finding may end a training: it is proved, it lasts, and no training recovers from it.

Every finding is suspected at first. `ENDING` has the words of what may be confirmed. What is only inferred, from curves or from the
program's text, never is: a loss at that of a trivial answer for hundreds of iterations is what parity, or fine-tuning at a
small rate, looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import CONFIRMED, PROOFS, TrainingFinding

Search = Callable[[TrainingHistory], Iterable[TrainingFinding]]
ENDING = frozenset(("backward_missing", "loss_not_a_number", "step_missing", "zero_grad_missing"))
_WINDOWS, _LOOKS = 3, 2
"""A fact must have been found this many times, this many inspected iterations apart."""
_LAST_LOSSES = 20
"""As many losses in a row that are no number; a gradient scaler skips a few and recovers."""


def confirm(
    history: TrainingHistory, findings: Sequence[TrainingFinding], searches: Mapping[str, Search]
) -> list[TrainingFinding]:
    """The findings, each with its state.

    Args:
        history: of the training so far.
        findings: on it.
        searches: by word, to be asked about earlier moments.
    """
    return [
        replace(of, state=CONFIRMED)
        if of.kind in PROOFS and _lasts(history, of.word, searches)
        else of
        for of in findings
    ]


def _lasts(history: TrainingHistory, word: str, searches: Mapping[str, Search]) -> bool:
    """Whether it was proved at several moments a few inspected iterations apart, up to now."""
    if word not in ENDING:
        return False
    if word == "loss_not_a_number":
        last = history.loss[-_LAST_LOSSES:, 1]
        return len(last) == _LAST_LOSSES and not np.isfinite(last).any()
    numbers = [iteration.number for iteration in history.iterations]
    moments = numbers[-_LOOKS * _WINDOWS :: _LOOKS] if len(numbers) > _LOOKS * _WINDOWS else []
    return bool(moments) and all(_proves(searches[word], history.until(at)) for at in moments)


def _proves(search: Search, history: TrainingHistory) -> bool:
    # A search that fails on a shorter history has not found anything.
    try:
        return any(finding.kind in PROOFS for finding in search(history))
    except Exception:
        return False
