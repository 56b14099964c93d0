"""Whether a finding may end a training: it lasts, nothing contradicts it, and its kind is silent on healthy trainings.

Every finding is suspected at first. It is confirmed when all of these hold:

- It lasts: the search finds it again in the training as it was at several earlier moments.
- Nothing contradicts it: the loss is no number, or above that of a trivial answer, and neither it nor an evaluation
  improves. A training that has only not begun to learn may still begin: a loss at that of a trivial answer for
  hundreds of iterations is what parity, or fine-tuning at a small rate, looks like. A fact about the program, such as
  a step without a backward pass, needs no loss.
- Its kind was never seen to last like this in healthy trainings that were not used to build the searches, and, unless
  it is a fact about the program, there were enough of them for a confidence of `SURE_TO_END`: ``confirmation.json``,
  counted by ``bench/train_watch_confirmation.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from epochzero.run.watch.faults._signals import chance_loss, course, evaluations, first_accuracy
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import CONFIRMED, TrainingFinding

SURE_TO_END = 0.99
"""The least confidence, measured on healthy trainings, with which a training is ended."""
Search = Callable[[TrainingHistory], Iterable[TrainingFinding]]
_FACTS = frozenset(("backward_missing", "loss_not_a_number", "step_missing", "zero_grad_missing"))
"""What is read off the program's calls or its loss, not inferred from a curve."""
_LEAST_ITERATIONS = 100
"""A curve of fewer iterations says nothing: fine-tuning often starts at the loss of chance for tens of them."""
_SHARES = (0.5, 0.625, 0.75, 0.875)
"""Of the iterations so far: moments at which what is inferred from curves must have been found already."""
_WINDOWS, _LOOKS = 3, 2
"""A fact must have been found this many times, this many inspected iterations apart."""
_LAST_LOSSES = 20
"""As many losses in a row that are no number; a gradient scaler skips a few and recovers."""
_DEVIATIONS = 3.0
"""A difference of two means beyond this many standard errors is more than noise."""
_WORSE = 1.2
"""Times the loss of a trivial answer: what lies below may be noise, or a beginning."""
_EVALUATIONS = 4
"""Fewer evaluations show no direction."""


@dataclass(frozen=True, slots=True)
class Silence:
    """What findings did in healthy trainings.

    Attributes:
        trainings: how many there were that were not used to build the searches.
        lasting: of each kind that was found and lasted in any of them, in how many.
    """

    trainings: int
    lasting: Mapping[str, int]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Silence:
        """From its JSON form."""
        counts = {str(word): int(count) for word, count in stored["lasting"].items()}
        return cls(int(stored["trainings"]), counts)

    def confidence(self, word: str) -> float:
        """How likely the next healthy training is left alone, 0 to 1: Laplace's rule of succession."""
        return 1 - (self.lasting.get(word, 0) + 1) / (self.trainings + 2)

    def can_confirm(self, word: str) -> bool:
        """Whether findings of a kind may be confirmed: of facts none may have lasted in a healthy training."""
        if word in _FACTS:
            return self.lasting.get(word, 0) == 0
        return self.confidence(word) >= SURE_TO_END


@cache
def silence() -> Silence:
    """That of the lab."""
    stored = files(__package__ or "").joinpath("confirmation.json").read_text(encoding="utf-8")
    return Silence.of(json.loads(stored))


def confirm(
    history: TrainingHistory, findings: Sequence[TrainingFinding], searches: Mapping[str, Search]
) -> list[TrainingFinding]:
    """The findings, each with its state.

    Args:
        history: of the training so far.
        findings: on it.
        searches: by word, to be asked about earlier moments.
    """
    able = {finding.word for finding in findings if silence().can_confirm(finding.word)}
    confirmed = lasting(history, able, searches)
    return [replace(f, state=CONFIRMED) if f.word in confirmed else f for f in findings]


def lasting(
    history: TrainingHistory, words: Iterable[str], searches: Mapping[str, Search]
) -> set[str]:
    """The words whose finding lasts and is not contradicted, however well their kind is known."""
    found = {word for word in words if word in searches and not _is_contradicted(history, word)}
    facts, inferred = found & _FACTS, found - _FACTS
    if not any(iteration.before for iteration in history.iterations):
        # Where nothing shows what is left of gradients, that none are cleared is inferred from the program's text.
        facts -= {"zero_grad_missing"}
    if history.count < _LEAST_ITERATIONS:
        inferred = set()
    return _found_at(history, facts - {"loss_not_a_number"}, searches, _looks(history)) | (
        _found_at(history, inferred, searches, [int(s * history.count) for s in _SHARES])
        | (facts & {"loss_not_a_number"})
    )


def _looks(history: TrainingHistory) -> list[int]:
    """Moments a few inspected iterations apart, up to now; none where there were too few of them."""
    numbers = [iteration.number for iteration in history.iterations]
    return numbers[-_LOOKS * _WINDOWS :: _LOOKS] if len(numbers) > _LOOKS * _WINDOWS else []


def _found_at(
    history: TrainingHistory,
    words: set[str],
    searches: Mapping[str, Search],
    moments: Sequence[int],
) -> set[str]:
    """The words that each of the moments would have found."""
    if not moments:
        return set()
    for moment in moments:
        if not words:
            break
        earlier = history.until(moment)
        words = {word for word in words if _finds(searches[word], earlier, word)}
    return words


def _finds(search: Search, history: TrainingHistory, word: str) -> bool:
    # A search that fails on a shorter history has not found anything.
    try:
        return any(finding.word == word for finding in search(history))
    except Exception:
        return False


def _is_contradicted(history: TrainingHistory, word: str) -> bool:
    if word == "loss_not_a_number":
        return not _is_no_number(history)
    return word not in _FACTS and (not _is_worse_than_trivial(history) or improves(history))


def _is_worse_than_trivial(history: TrainingHistory) -> bool:
    """Whether the loss is no number, or clearly above that of a model that knows no input."""
    if _is_no_number(history):
        return True
    found, chance = course(history), chance_loss(history)
    if found is None or chance is None or not found.finite:
        return False
    return found.end > _WORSE * chance + _DEVIATIONS * found.noise


def _is_no_number(history: TrainingHistory) -> bool:
    last = history.loss[-_LAST_LOSSES:, 1]
    return len(last) == _LAST_LOSSES and not np.isfinite(last).any()


def improves(history: TrainingHistory) -> bool:
    """Whether the loss or an evaluation gets better over the later half of the training."""
    loss = history.loss[len(history.loss) // 2 :, 1]
    if np.isfinite(loss).all() and _falls(loss, 20):
        return True
    tested = evaluations(history)
    losses = [evaluation.loss for evaluation in tested if evaluation.loss is not None]
    wrong = [1 - a for evaluation in tested if (a := first_accuracy(evaluation)) is not None]
    return any(
        len(values) >= _EVALUATIONS
        and min(values[len(values) // 2 :]) < min(values[: len(values) // 2])
        for values in (losses, wrong)
    )


def _falls(values: np.ndarray[Any, Any], least: int) -> bool:
    """Whether the last third of so many values at least is clearly below the first."""
    third = len(values) // 3
    if third * 3 < least:
        return False
    first, last = values[:third], values[-third:]
    error = float(np.sqrt((first.var() + last.var()) / third))
    return float(first.mean() - last.mean()) > _DEVIATIONS * error
