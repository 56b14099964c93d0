"""What a finding needs before a training is terminated for it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from epochzero import taxonomy
from epochzero.run.watch.confirmation import Silence, confirm, lasting, silence
from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.run.watch.live import fails
from epochzero.run.watch.model import CONFIRMED, SUSPECTED, TrainingFinding

FALLING = np.linspace(2.0, 0.2, 200)


def losses(values: Iterable[float]) -> TrainingHistory:
    told = [[number, "train.py:1", float(value)] for number, value in enumerate(values)]
    return read_records([{"kind": "losses", "losses": told}])


def found(history: TrainingHistory, word: str) -> set[str]:
    return lasting(history, {word}, catalogue())


def test_a_loss_that_stays_no_number_lasts() -> None:
    values = [*FALLING, *[math.nan] * 20]
    assert found(losses(values), "loss_not_a_number") == {"loss_not_a_number"}
    assert found(losses(values[:-1]), "loss_not_a_number") == set()
    assert found(losses([*values, 0.2]), "loss_not_a_number") == set()


@pytest.mark.parametrize("level", [math.log(2), 5.0])
def test_a_training_that_has_not_begun_to_learn_is_left_alone(level: float) -> None:
    plateau = losses(level + np.random.default_rng(0).normal(0, 0.01, 1000))
    assert list(catalogue()["loss_not_falling"](plateau))
    assert found(plateau, "loss_not_falling") == set()


def test_what_was_not_found_earlier_does_not_last() -> None:
    calls = []

    def late(history: TrainingHistory) -> list[TrainingFinding]:
        calls.append(history.count)
        return [TrainingFinding("weight_init_wrong", 0, "")] if history.count >= 150 else []

    values = [*FALLING[:100], *[math.nan] * 100]
    assert lasting(losses(values), {"weight_init_wrong"}, {"weight_init_wrong": late}) == set()
    assert calls == [100]


def test_what_was_found_all_along_lasts_where_the_loss_is_no_number() -> None:
    values = [2.0, *[math.nan] * 199]
    one = [TrainingFinding("weight_init_wrong", 0, "")]
    searches = {"weight_init_wrong": lambda _: one}
    assert lasting(losses(values), {"weight_init_wrong"}, searches) == {"weight_init_wrong"}
    assert lasting(losses(FALLING), {"weight_init_wrong"}, searches) == set()


def test_a_search_that_fails_on_less_finds_nothing() -> None:
    def breaks(_: TrainingHistory) -> list[TrainingFinding]:
        raise ZeroDivisionError

    values = [2.0, *[math.nan] * 199]
    assert lasting(losses(values), {"loss_wrong"}, {"loss_wrong": breaks}) == set()


def test_confidence_is_that_of_the_next_healthy_training() -> None:
    counted = Silence.of({"trainings": 98, "lasting": {"labels_wrong": 1}})
    assert counted.confidence("loss_wrong") == pytest.approx(0.99)
    assert counted.confidence("labels_wrong") == pytest.approx(0.98)
    assert Silence(0, {}).confidence("loss_wrong") == 0.5


def test_facts_need_no_confidence_and_no_false_one() -> None:
    assert Silence(0, {}).can_confirm("zero_grad_missing")
    assert not Silence(500, {"zero_grad_missing": 1}).can_confirm("zero_grad_missing")
    assert not Silence(97, {}).can_confirm("weight_init_wrong")
    assert Silence(98, {}).can_confirm("weight_init_wrong")


def test_only_what_is_confirmed_terminates_a_job() -> None:
    suspected = TrainingFinding("step_missing", 0, "", confidence=1.0)
    confirmed = TrainingFinding("step_missing", 0, "", confidence=0.3, state=CONFIRMED)
    assert suspected.state == SUSPECTED
    for words in ({"any"}, {"step_missing"}):
        assert not fails(suspected, words)
        assert fails(confirmed, words)
    assert not fails(confirmed, {"loss_wrong"})


def test_the_lab_has_counted() -> None:
    counted = silence()
    words = taxonomy.faults().keys() | taxonomy.symptoms().keys()
    assert counted.lasting.keys() <= words
    assert all(count > 0 for count in counted.lasting.values())
    history = losses([*FALLING, *[math.nan] * 20])
    one = TrainingFinding("loss_not_a_number", 200, "")
    (stated,) = confirm(history, [one], catalogue())
    assert stated.state == CONFIRMED


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


def test_what_only_the_text_of_a_program_shows_does_not_last() -> None:
    iterations = [
        {"kind": "iteration", "iteration": number, "stepped": 1, "parameters": {}}
        for number in range(40)
    ]
    history = read_records(iterations)
    one = [TrainingFinding("zero_grad_missing", 0, "")]
    assert lasting(history, {"zero_grad_missing"}, {"zero_grad_missing": lambda _: one}) == set()
    before = {"0": {"name": "0/weight", "left": 0.1}}
    seen = read_records([{**iteration, "before": before} for iteration in iterations])
    assert lasting(seen, {"zero_grad_missing"}, {"zero_grad_missing": lambda _: one})
