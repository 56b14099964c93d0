"""Spectrum-based scores: the formulas, and a neuron that was broken on purpose."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from epochzero.errors import InputError
from epochzero.run.watch.child.neurons import Neurons
from epochzero.study.neuron_spectrum import FORMULAS, read_activity, spectrum, to_dict
from tests.study.training_faults.trainings import blobs

# Two failing and four passing tests; elements that are covered by (failing, passing) of them.
COVERED = [(2, 0), (2, 4), (1, 1), (0, 4), (0, 0)]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("tarantula", [1.0, 0.5, 2 / 3, 0.0, 0.0]),
        ("ochiai", [1.0, 2 / math.sqrt(12), 0.5, 0.0, 0.0]),
        ("dstar", [math.inf, 1.0, 0.5, 0.0, 0.0]),
    ],
)
def test_each_formula_gives_what_its_paper_says(formula: str, expected: list[float]) -> None:
    failing, passing = np.array(COVERED, float).T
    assert FORMULAS[formula](failing, passing, 2, 4) == pytest.approx(expected)


@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6),
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from(sorted(FORMULAS)),
)
def test_scores_are_never_negative_and_always_sorted(
    passing: list[list[bool]], failing: list[list[bool]], formula: str
) -> None:
    found = spectrum({"a": np.array(passing)}, {"a": np.array(failing)}, formula)
    scores = [one.score for one in found.neurons]
    assert scores == sorted(scores, reverse=True)
    assert all(score >= 0 for score in scores)
    json.dumps(to_dict(found), allow_nan=False)


@cache
def broken() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A model that has learned its classes, in which one neuron then always speaks for the first."""
    torch.manual_seed(1)
    inputs, targets = blobs()
    model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    assert (model(inputs).argmax(1) == targets).float().mean() > 0.95
    with torch.no_grad():
        # It answers to the second class, and speaks for the first.
        centered = inputs[targets == 1].mean(0) - inputs.mean(0)
        model[0].weight[5] = 12 * centered / centered.norm()
        model[0].bias[5] = -12 * (inputs.mean(0) @ (centered / centered.norm()))
        model[2].weight[:, 5] = torch.tensor([9.0, -3.0, -3.0])
    return model, inputs, targets


@pytest.mark.parametrize("formula", sorted(FORMULAS))
def test_the_broken_neuron_is_the_most_suspicious_of_its_layer(
    tmp_path: Path, formula: str
) -> None:
    model, inputs, targets = broken()
    is_right = model(inputs).argmax(1) == targets
    assert 20 < int(is_right.sum()) < len(targets) - 20
    for name, part in (("passing", is_right), ("failing", ~is_right)):
        with Neurons(model, str(tmp_path / name)):
            model(inputs[part])
    found = spectrum(
        read_activity([tmp_path / "passing"]), read_activity([tmp_path / "failing"]), formula
    )
    assert (found.passing, found.failing) == (int(is_right.sum()), int((~is_right).sum()))
    of_layer = [one.unit for one in found.neurons if one.layer == "1"]
    assert of_layer[0] == 5
    # As the study has it: layers as they are executed are all alike.
    if formula == "tarantula":
        assert {one.score for one in found.layers} == {0.5}


def test_runs_are_tests_of_what_any_of_their_inputs_makes_active(tmp_path: Path) -> None:
    model, inputs, _ = broken()
    with Neurons(model, str(tmp_path / "run")):
        model(inputs[:10])
        model(inputs[10:20])
    each, whole = (read_activity([tmp_path / "run"], by)["0"] for by in ("input", "run"))
    assert each.shape == (20, 12)
    assert (whole == each.any(axis=0, keepdims=True)).all()
    assert read_activity([tmp_path / "run"] * 3, "run")["0"].shape == (3, 12)


def test_records_of_a_watched_training_are_one_test_of_its_layers(tmp_path: Path) -> None:
    from epochzero.run.watch.child.hooks import Hooks
    from epochzero.run.watch.child.observer import Observer
    from epochzero.run.watch.child.records import Records
    from epochzero.run.watch.child.schedule import Schedule
    from tests.study.training_faults.trainings import training

    def dead() -> nn.Module:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        nn.init.constant_(model[0].bias, -50.0)  # type: ignore[arg-type]
        return model

    def live() -> nn.Module:
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

    for name, model in (("good", live), ("bad", dead)):
        observer = Observer(Records(str(tmp_path / name)), Schedule(every=1))
        hooks = Hooks(observer)
        hooks.install()
        try:
            training(model, epochs=1)()
            observer.end()
        finally:
            hooks.remove()
    found = spectrum(read_activity([tmp_path / "good"]), read_activity([tmp_path / "bad"]))
    assert {one.layer: one.score for one in found.layers} == {"0": 0.5, "1": 0.0, "2": 0.0}


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("no record\n")
    with pytest.raises(InputError, match="contains neither records of neurons"):
        read_activity([empty])
    with pytest.raises(InputError, match="cannot be read"):
        read_activity([tmp_path / "missing"])
    one, other = {"a": np.ones((2, 3), bool)}, {"a": np.ones((2, 4), bool)}
    with pytest.raises(InputError, match="size differs"):
        spectrum(one, other)
    with pytest.raises(InputError, match="no layer in common"):
        spectrum(one, {"b": np.ones((2, 3), bool)})
    with pytest.raises(InputError, match="no failing tests"):
        spectrum(one, {"a": np.ones((0, 3), bool)})
    with pytest.raises(InputError, match="tarantula, ochiai, dstar"):
        spectrum(one, one, "barinel")
