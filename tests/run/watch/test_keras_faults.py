"""Faults that a model of Keras can have and one of torch hardly, read from records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epochzero.run.watch.faults import catalogue
from epochzero.run.watch.history import read_records

Order = Sequence[tuple[str, str]]
HEAD: Order = (("head", "Dense"), ("head:softmax", "softmax"))


def said(word: str, order: Order = HEAD, **seen: Any) -> list[str]:
    """What is found of a training of ten iterations, each seen as given."""
    layers = [
        {
            "path": path, "class": kind, "settings": {}, "leaf": True, "called": True, "parameters": [],
        }
        for path, kind in order if ":" not in path
    ]  # fmt: skip
    model = {"kind": "model", "number": 0, "layers": layers, "parameters": []}
    losses = {"kind": "losses", "losses": [[n, "train.py:9", 0.7] for n in range(10)]}
    looks = [
        {
            "kind": "iteration", "iteration": number, "order": [[f"0/{path}", kind] for path, kind in order],
            "layers": {f"0/{path}": {"source": ""} for path, _ in order}, **seen,
        }
        for number in range(10)
    ]  # fmt: skip
    history = read_records([model, losses, *looks])
    return [one.text for one in catalogue()[word](history)]


LABELS = {"min": 0.0, "max": 1.0, "mean": 0.5, "std": 0.5, "shape": [8, 1], "whole": True}


def test_a_softmax_over_one_number_is_always_one() -> None:
    output = {"min": 1.0, "max": 1.0, "mean": 1.0, "std": 0.0, "shape": [8, 1]}
    found = said(
        "last_activation_wrong", function="binary_cross_entropy", output=output, target=LABELS
    )
    assert found == ["A softmax over one value is always 1."]


def test_cross_entropy_takes_no_numbers_that_are_no_probabilities() -> None:
    """Torch refuses them; Keras cuts them off."""
    output = {"min": -2.0, "max": 3.0, "mean": 0.1, "std": 1.0, "shape": [8, 1]}
    found = said(
        "last_activation_wrong", [("head", "Dense")],
        function="binary_cross_entropy", output=output, target=LABELS,
    )  # fmt: skip
    assert found[0].startswith("binary_cross_entropy expects probabilities")


def test_cross_entropy_over_one_output_says_nothing() -> None:
    output = {"min": 0.2, "max": 0.9, "mean": 0.5, "std": 0.2, "shape": [8, 1]}
    found = said("loss_wrong", function="CategoricalCrossentropy", output=output, target=LABELS)
    assert found == ["CategoricalCrossentropy over one output is always zero."]


def test_a_model_that_scales_its_inputs_itself_may_have_any() -> None:
    image = {"dtype": "float32", "shape": [8, 9], "mean": 120.0, "std": 70.0, "zeros": 0.0}
    assert said("input_scale_wrong", [("first", "Dense")], inputs=[image])
    scales = [("scale", "Rescaling"), ("first", "Dense")]
    flips = [("flip", "RandomFlip"), *scales]
    assert said("input_scale_wrong", scales, inputs=[image]) == []
    assert said("input_scale_wrong", flips, inputs=[image]) == []
