"""What a finding needs before a training is terminated for it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from epochzero.run.watch.confirmation import confirm
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.live import fails
from epochzero.run.watch.model import CONFIRMED, SUSPECTED, EvidenceKind, TrainingFinding

FALLING = np.linspace(2.0, 0.2, 200)


def losses(values: Iterable[float]) -> TrainingHistory:
    told = [[number, "train.py:1", float(value)] for number, value in enumerate(values)]
    return read_records([{"kind": "losses", "losses": told}])


def state(history: TrainingHistory, finding: TrainingFinding, early: int = 0) -> str:
    """Of a finding that is there from an iteration on."""
    searches = {finding.word: lambda of: [finding] if of.count > early else []}
    (stated,) = confirm(history, [finding], searches)
    return stated.state


def test_a_loss_that_stays_no_number_lasts() -> None:
    values = [*FALLING, *[math.nan] * 20]
    lost = TrainingFinding("loss_not_a_number", 200, "")
    assert state(losses(values), lost) == CONFIRMED
    assert state(losses(values[:-1]), lost) == SUSPECTED
    assert state(losses([*values, 0.2]), lost) == SUSPECTED


@pytest.mark.parametrize("level", [math.log(2), 5.0])
def test_a_training_that_has_not_begun_to_learn_is_left_alone(level: float) -> None:
    plateau = losses(level + np.random.default_rng(0).normal(0, 0.01, 1000))
    (found,) = catalogue()["loss_not_falling"](plateau)
    assert state(plateau, found) == SUSPECTED


def inspected() -> TrainingHistory:
    """Every iteration was looked at."""
    return read_records({"kind": "iteration", "iteration": n, "parameters": {}} for n in range(40))


def test_what_is_proved_at_several_moments_is_confirmed() -> None:
    missing = TrainingFinding("step_missing", 0, "")
    assert state(inspected(), missing) == CONFIRMED
    assert state(inspected(), missing, early=35) == SUSPECTED


@pytest.mark.parametrize("kind", [kind for kind in EvidenceKind if kind is not EvidenceKind.FACT])
def test_what_is_not_proved_terminates_nothing(kind: EvidenceKind) -> None:
    assert state(inspected(), TrainingFinding("zero_grad_missing", 0, "", kind=kind)) == SUSPECTED


def test_a_fault_that_a_training_survives_terminates_nothing() -> None:
    assert state(inspected(), TrainingFinding("layer_unused", 0, "")) == SUSPECTED


def test_a_search_that_fails_on_less_finds_nothing() -> None:
    def breaks(_: TrainingHistory) -> list[TrainingFinding]:
        raise ZeroDivisionError

    missing = TrainingFinding("step_missing", 0, "")
    (stated,) = confirm(inspected(), [missing], {"step_missing": breaks})
    assert stated.state == SUSPECTED


def test_only_what_is_confirmed_terminates_a_job() -> None:
    suspected = TrainingFinding("step_missing", 0, "", confidence=1.0)
    confirmed = TrainingFinding("step_missing", 0, "", confidence=0.3, state=CONFIRMED)
    assert suspected.state == SUSPECTED
    for words in ({"any"}, {"step_missing"}):
        assert not fails(suspected, words)
        assert fails(confirmed, words)
    assert not fails(confirmed, {"loss_wrong"})


def test_a_history_can_be_cut() -> None:
    records = [
        {"kind": "losses", "losses": [[number, "train.py:1", 1.0] for number in range(10)]},
        {"kind": "evaluation", "iteration": 4, "loss": 1.0},
        {"kind": "evaluation", "iteration": 8, "loss": 1.0},
        {"kind": "ended", "iterations": 10},
    ]
    history = read_records(records)
    earlier = history.until(5)
    assert (history.ended, history.count, len(history.loss), len(history.evaluations)) == (
        True,
        10,
        10,
        2,
    )
    assert (earlier.ended, earlier.count, len(earlier.loss), len(earlier.evaluations)) == (
        False,
        5,
        5,
        1,
    )
