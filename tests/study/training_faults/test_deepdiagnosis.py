"""DeepDiagnosis on real trainings: symptom, and what its decision tree says to change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from epochzero.run.watch.model import WatchResult
from epochzero.study.training_faults.deepdiagnosis import find
from tests.study.training_faults.trainings import blobs, training, watched


def net(*last: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3), *last)


def found(model: Callable[[], nn.Module] = net, **changed: object) -> WatchResult:
    return find(watched(training(model, **changed)))  # type: ignore[arg-type]


def test_a_training_without_symptoms_yields_nothing() -> None:
    assert found() == WatchResult(36)


def test_labels_beyond_the_last_activation_are_out_of_range() -> None:
    verdict = found(
        lambda: net(nn.Sigmoid()),
        loss=nn.MSELoss,
        data=lambda: (blobs()[0], 5 + torch.rand(192, 3)),
    )
    assert verdict.root is not None
    assert (verdict.root.word, verdict.root.layer) == ("last_activation_wrong", "3")
    assert verdict.root.text.startswith("Epoch 0 layer 3: out of range.")
    assert verdict.root.place is not None
    assert "nn.Sigmoid()" in verdict.root.place.text
    assert [one.word for one in verdict.symptoms] == ["constant_output"]


def test_classes_without_a_softmax_are_out_of_range() -> None:
    verdict = found(loss=nn.NLLLoss)
    assert verdict.root is not None
    assert verdict.root.fix == "Change the activation function to softmax."
    assert found(lambda: net(nn.LogSoftmax(1)), loss=nn.NLLLoss).root is None


@pytest.mark.parametrize(
    ("scale", "word"), [(1.0, "activation_missing"), (100.0, "input_scale_wrong")]
)
def test_dead_nodes_ask_for_the_inputs_first(scale: float, word: str) -> None:
    def dying() -> nn.Module:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        nn.init.constant_(model[0].bias[:7], -50.0 * scale)  # type: ignore[index]
        return model

    verdict = found(dying, data=lambda: blobs(scale=scale), rate=0.001)
    assert verdict.root is not None
    assert verdict.root.word == word
    assert [one.word for one in verdict.symptoms] == ["dead_units"]


def test_a_saturated_activation_is_told_in_the_fifth_epoch() -> None:
    def saturated() -> nn.Module:
        model = net()
        nn.init.normal_(model[0].weight, std=20.0)  # type: ignore[index,arg-type]
        return model

    verdict = found(saturated)
    assert verdict.root is not None
    assert (verdict.root.word, verdict.root.layer) == ("weight_init_wrong", "1")
    assert verdict.root.text.startswith("Epoch 4 layer 1: saturated activation.")


@pytest.mark.parametrize("rate", [1e-12, 0.0])
def test_weights_that_stay_where_they_are_are_unchanged(rate: float) -> None:
    verdict = found(rate=rate, optimizer=torch.optim.SGD)
    assert verdict.root is not None
    assert verdict.root.word == "learning_rate_too_low"
    assert verdict.root.place is not None
    assert [one.word for one in verdict.symptoms] == ["weights_unchanged"]


def test_a_loss_that_is_no_number_asks_for_the_rate() -> None:
    verdict = found(rate=1e6, optimizer=torch.optim.SGD, loss=nn.MSELoss,
                    data=lambda: (blobs()[0], torch.rand(192, 3)))  # fmt: skip
    assert verdict.root is not None
    assert verdict.symptoms


def test_a_gradient_that_vanishes_asks_for_depth() -> None:
    def deep() -> nn.Module:
        hidden = [part for _ in range(12) for part in (nn.Linear(8, 8), nn.Sigmoid())]
        return nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), *hidden, nn.Linear(8, 3))

    verdict = found(deep, epochs=3)
    assert verdict.root is not None
    assert [one.word for one in verdict.symptoms] == ["vanishing_gradient"]
