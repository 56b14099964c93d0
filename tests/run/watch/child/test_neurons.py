"""Which neurons are active: as it is computed by hand, without touching the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from epochzero.run.watch.child.neurons import Neurons
from epochzero.study.neuron_spectrum import read_activity


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_neuron_is_active_above_the_middle_of_its_layer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 11), nn.Tanh(), nn.Linear(11, 2))
    inputs = torch.randn(7, 3)
    with Neurons(model, str(tmp_path / "n")):
        model(inputs[:4])
        model(inputs[4:])
    found = read_activity([tmp_path / "n"])
    shown = model[0](inputs).detach()
    lowest, highest = shown.min(1, keepdim=True).values, shown.max(1, keepdim=True).values
    by_hand = (shown - lowest) / (highest - lowest) > 0.5
    assert {name: of.shape for name, of in found.items()} == {
        "0": (7, 11),
        "1": (7, 11),
        "2": (7, 2),
    }
    assert (found["0"] == by_hand.numpy()).all()


@pytest.mark.parametrize(
    ("layer", "shape", "units"),
    [
        (nn.Conv2d(3, 6, 3), (4, 3, 9, 9), 6),
        (nn.Conv1d(3, 6, 3), (4, 3, 9), 6),
        (nn.Linear(5, 9), (4, 7, 5), 9),
        (nn.Embedding(8, 10), (4, 7), 10),
    ],
)
def test_units_are_channels_of_images_and_columns_of_sequences(
    tmp_path: Path, layer: nn.Module, shape: tuple[int, ...], units: int
) -> None:
    inputs = torch.rand(shape) if not isinstance(layer, nn.Embedding) else torch.ones(shape).long()
    with Neurons(nn.Sequential(layer), str(tmp_path / "n")):
        nn.Sequential(layer)(inputs)
    assert not (tmp_path / "n").exists()
    model = nn.Sequential(layer)
    with Neurons(model, str(tmp_path / "n")):
        model(inputs)
    assert read_activity([tmp_path / "n"])["0"].shape == (4, units)


def test_the_model_computes_as_ever_and_is_left_as_it_was(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4, 1))
    inputs = torch.randn(5, 3)
    torch.manual_seed(1)
    before = model(inputs)
    torch.manual_seed(1)
    with Neurons(model, str(tmp_path / "n")):
        after = model(inputs)
    assert torch.equal(before, after)
    assert after.requires_grad
    assert not any(module._forward_hooks for module in model.modules())
    assert list(records(tmp_path / "n")[0]["units"]) == ["0", "1"]


def test_a_shared_layer_adds_what_is_active_in_each_call(tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4, bias=False)
            nn.init.eye_(self.layer.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.layer(x) + self.layer(x.flip(1))
            return found

    model = Twice()
    with Neurons(model, str(tmp_path / "n")):
        model(torch.tensor([[1.0, 0, 0, 0]]))
    assert read_activity([tmp_path / "n"])["layer"].tolist() == [[True, False, False, True]]


def test_an_output_of_any_kind_and_an_error_of_the_model_pass_through(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, int]:
            if x.numel() == 0:
                raise ValueError("empty")
            return {"n": 3}

    model = nn.Sequential(Odd())
    with Neurons(model, str(tmp_path / "n")):
        assert model(torch.ones(2, 2)) == {"n": 3}
        with pytest.raises(ValueError, match="empty"):
            model(torch.ones(0))
    assert records(tmp_path / "n")[0]["inputs"] == 0


def test_no_tensor_outlives_the_call(tmp_path: Path) -> None:
    import weakref

    model = nn.Sequential(nn.Linear(3, 4))
    with Neurons(model, str(tmp_path / "n")):
        output = model(torch.randn(5, 3))
        gone = weakref.ref(output)
        del output
        assert gone() is None
