"""``epochzero watch spectrum``: scores in a terminal and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from epochzero.cli.watch_spectrum import make_spectrum
from epochzero.run.watch.child.neurons import Neurons


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    for name, count in (("passing", 6), ("failing", 2)):
        with Neurons(model, str(tmp_path / name)):
            model(torch.randn(count, 3))
    return str(tmp_path / "passing"), str(tmp_path / "failing")


def test_layers_come_first_and_then_the_most_suspicious_neurons(files: tuple[str, str]) -> None:
    ran = CliRunner().invoke(make_spectrum, [files[0], "--failing", files[1], "-n", "3"])
    assert ran.exit_code == 0
    layers, neurons, summary = ran.output.split("\n\n")
    assert len(layers.splitlines()) == 4
    assert len(neurons.splitlines()) == 4
    assert "6 passing tests, 2 failing tests, 3 layers, 12 neurons" in summary


def test_json_has_all_neurons(files: tuple[str, str]) -> None:
    arguments = [files[0], "--failing", files[1], "--formula", "dstar", "-f", "json"]
    told = json.loads(CliRunner().invoke(make_spectrum, arguments).output)
    assert told["schema"] == "epochzero.spectrum/1"
    assert len(told["neurons"]) == 12


def test_files_can_be_tests(files: tuple[str, str]) -> None:
    arguments = [files[0], files[0], "--failing", files[1], "--by", "run"]
    ran = CliRunner().invoke(make_spectrum, arguments)
    assert "2 passing tests, 1 failing test," in ran.output
