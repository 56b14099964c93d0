"""What Keras is told, by the names and in the sense of torch; no Keras is needed for that."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from epochzero.run.watch.child.keras_fits import class_weights, clipping_of, loader_of, norm_of
from epochzero.run.watch.child.keras_hooks import _after
from epochzero.run.watch.child.keras_models import as_compared

ONE_HOT = torch.eye(3)[[0, 2, 1, 1]]


@pytest.mark.parametrize(
    ("function", "target", "output", "compared"),
    [
        ("CategoricalCrossentropy", ONE_HOT, (4, 3), [0, 2, 1, 1]),
        ("SparseCategoricalCrossentropy", torch.tensor([[0], [2], [1], [1]]), (4, 3), [0, 2, 1, 1]),
        ("cross_entropy", 0.9 * ONE_HOT + 0.1 / 3, (4, 3), None),
        ("binary_cross_entropy", torch.tensor([0, 1, 1, 0]), (4, 1), [[0], [1], [1], [0]]),
        ("mse_loss", torch.tensor([0.5, 1.5]), (2, 1), [[0.5], [1.5]]),
        ("mse_loss", torch.tensor([[0.5], [1.5]]), (2, 5), [0.5, 1.5]),
    ],
)
def test_labels_are_compared_as_keras_does(
    function: str, target: Any, output: tuple[int, ...], compared: Any
) -> None:
    given = as_compared(target, torch.zeros(output), function)
    assert given.tolist() == (target.tolist() if compared is None else compared)


def test_the_data_of_a_fit_are_a_loader() -> None:
    given = {"x": {"left": torch.zeros(200, 3)}, "validation_split": 0.25, "shuffle": False}
    loader = loader_of(given)
    assert loader is not None
    assert (loader["examples"], loader["batch_size"]) == (150, 32)
    assert loader["sampler"] == "SequentialSampler"


@pytest.mark.parametrize("x", [iter([]), object(), None, []])
def test_data_that_come_in_batches_are_no_loader(x: Any) -> None:
    assert loader_of({"x": x}) is None


def test_weights_of_classes_are_in_their_order() -> None:
    assert class_weights({"class_weight": {2: 4.0, 0: 1.0, 1: 2.0}}) == [1.0, 2.0, 4.0]
    assert class_weights({}) is None


def test_clipping_is_by_one_weight_or_by_all() -> None:
    optimizer = SimpleNamespace(clipnorm=None, global_clipnorm=2.0, clipvalue=None)
    assert clipping_of(optimizer) == ("global_clipnorm", "clip_grad_norm_", 2.0)
    assert norm_of("global_clipnorm", [3.0, 4.0]) == 5.0
    assert norm_of("clipnorm", [3.0, 4.0]) == 4.0


def test_keras_can_read_the_arguments_of_a_watched_constructor() -> None:
    """Without these arguments, Keras does not store a model."""

    def constructor(self: Any, units: int, *, name: str = "") -> None: ...

    watched = _after(constructor, lambda *_, **__: None)
    assert inspect.getfullargspec(watched) == inspect.getfullargspec(constructor)
