"""DeepFD: its features on real trainings, its classifiers, and what it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from epochzero import taxonomy
from epochzero.study.training_faults import deepfd
from epochzero.study.training_faults.classifiers import Forest, Neighbors
from epochzero.study.training_faults.deepfd import FEATURES, STATISTICS, features, find
from epochzero.study.training_faults.training_view import epochs
from tests.study.training_faults.trainings import training, watched


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))


def named(values: np.ndarray) -> dict[str, float]:
    names = [f"{name}_{one}" for name in FEATURES for one in STATISTICS]
    return dict(zip(names, values.tolist(), strict=True))


def test_curves_are_summed_up_over_the_epochs() -> None:
    history = watched(training(net, epochs=5))
    seen = named(features(history))
    losses = np.array([one.loss for one in epochs(history)], float)
    reached = [one.evaluation.accuracy for one in epochs(history) if one.evaluation]
    assert len(losses) == len(reached) == 5
    assert seen["loss_mean"] == pytest.approx(losses.mean())
    assert seen["loss_std"] == pytest.approx(losses.std(ddof=1))
    assert seen["loss_sem"] == pytest.approx(losses.std(ddof=1) / np.sqrt(5))
    assert seen["val_acc_max"] == pytest.approx(max(reached))  # type: ignore[type-var]
    assert seen["nan_loss_max"] == seen["dying_relu_max"] == seen["cons_mean_weight_max"] == 0


def test_skewness_is_the_unbiased_one() -> None:
    """Of 1, 2, 4, 9, 30: by hand, G1 of Joanes and Gill, 1998."""
    found = deepfd._statistics(np.array([1.0, 2.0, 4.0, 9.0, 30.0]))
    assert found[STATISTICS.index("skew")] == pytest.approx(1.8992, abs=1e-4)


def test_weights_that_never_change_are_counted_each_epoch() -> None:
    seen = named(features(watched(training(net, rate=0.0, epochs=5))))
    # Two weights and two biases, four times after the first.
    assert seen["cons_mean_weight_max"] == seen["cons_std_weight_max"] == 16


def test_a_loss_that_is_no_number_is_counted() -> None:
    seen = named(features(watched(training(net, rate=1e20, optimizer=torch.optim.SGD, epochs=5))))
    assert seen["nan_loss_max"] >= 1
    assert seen["nan_weight_max"] == 1


def test_units_without_gradient_are_counted_as_dying() -> None:
    def dead() -> nn.Module:
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        nn.init.constant_(model[0].bias, -50.0)  # type: ignore[arg-type]
        return model

    assert named(features(watched(training(dead, epochs=5))))["dying_relu_max"] == 5


def test_most_of_the_nearest_neighbors_decide() -> None:
    examples = np.array([[0.0], [10.0], [20.0], [900.0], [1000.0]])
    labels = np.array([[1, 0], [1, 0], [0, 0], [0, 1], [0, 1]], float)
    near = Neighbors(examples, labels, 3)
    assert near.predict(np.array([5.0])).tolist() == [1, 0]
    assert near.predict(np.array([990.0])).tolist() == [0, 1]


def test_trees_vote_with_their_shares() -> None:
    tree = {
        "feature": [1, -1, -1],
        "bound": [500, 0, 0],
        "other": [2, 0, 0],
        "share": [[], [1000, 0], [400, 1000]],
    }
    sure = {"feature": [-1], "bound": [0], "other": [0], "share": [[700, 0]]}
    forest = Forest.of([tree, sure])
    assert forest.predict(np.array([0.0, 500.0])).tolist() == [1, 0]
    assert forest.predict(np.array([0.0, 501.0])).tolist() == [1, 0]
    assert Forest.of([tree]).predict(np.array([0.0, 501.0])).tolist() == [0, 1]


@pytest.mark.parametrize("rate", [1e-12, 1e4])
def test_a_rate_far_off_is_named_with_its_line(rate: float) -> None:
    verdict = find(watched(training(net, rate=rate, epochs=10)))
    assert verdict.root is not None
    words = {one.word for one in (verdict.root, *verdict.others)}
    expected = "learning_rate_too_low" if rate < 1 else "learning_rate_too_high"
    assert expected in words
    of_rate = next(one for one in (verdict.root, *verdict.others) if one.word == expected)
    assert of_rate.place is not None
    assert words <= set(taxonomy.faults())


def test_a_training_that_learns_is_left_alone() -> None:
    assert find(watched(training(net, epochs=12))).root is None


def test_the_model_is_small() -> None:
    assert Path(deepfd.__file__).with_name("deepfd.json").stat().st_size < 200_000
