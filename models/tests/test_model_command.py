"""``epochzero model``: the commands as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from tests.cli.conftest import Command

NET = """
import torch
from torch import nn

def build():
    print("a word of the user's")
    return nn.Sequential(nn.Sequential(nn.Linear(2, 8), nn.ReLU()), nn.Linear(8, 2))

def other():
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
"""

UNFAIR = """
import torch
from torch import nn

class Unfair(nn.Module):
    def forward(self, x):
        score = x[:, 1] - 30.5 - 5 * x[:, 0]
        return torch.stack((-score, score), dim=1)

def build():
    return Unfair()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Code, and two moons that overlap."""
    (tmp_path / "cli_net.py").write_text(NET)
    draw = np.random.default_rng(0)
    for name, count in (("train", 200), ("test", 200)):
        y = draw.integers(2, size=count)
        x = draw.normal(size=(count, 2)).astype(np.float32) + y[:, None]
        np.savez(tmp_path / f"{name}.npz", x=x, y=y)
        rows = [
            f"{a},{b},{'mf'[n % 2]},{c}" for n, ((a, b), c) in enumerate(zip(x, y, strict=True))
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(("a,b,sex,label", *rows)) + "\n")
    return tmp_path


def test_dissect_writes_a_report_and_what_a_guard_needs(run: Command, folder: Path) -> None:
    done = run("model", "dissect", f"{folder}/cli_net.py:build", "--untrained", folder / "train.npz",
               "--test", folder / "test.npz", "-o", folder / "out",
               "--detector", "DDU", "--onnx", folder / "guarded.onnx")  # fmt: skip
    assert done.code == 0, done.err
    assert (folder / "guarded.onnx").stat().st_size > 0
    assert "DDU (used)" in done.out
    assert "Rejects" in done.out
    assert "guarded.onnx" in "".join(line.strip() for line in done.out.splitlines())
    assert "a word of the user's" not in done.out
    assert "a word of the user's" in done.err
    from epochzero_models import Guard, load_model

    guard = Guard(load_model(f"{folder}/cli_net.py:build", untrained=True), folder / "out")
    assert guard(torch.zeros(3, 2)).within.shape == (3,)
    assert "max softmax" in (folder / "out" / "report.html").read_text()


def test_dissect_says_what_the_guard_rejects_of_inputs_beyond(run: Command, folder: Path) -> None:
    done = run("model", "dissect", f"{folder}/cli_net.py:build", "--untrained", folder / "train.npz",
               "--test", folder / "test.npz", "--beyond", folder / "train.npz")  # fmt: skip
    assert done.code == 0, done.err
    assert re.search(r"of right ones, [\d.]+ % of inputs beyond;", " ".join(done.out.split()))


def test_random_weights_are_refused(run: Command, folder: Path) -> None:
    done = run("model", "evaluate", f"{folder}/cli_net.py:build", folder / "test.npz")
    assert done.code == 2
    assert "all parameters are randomly initialized, for example 0.0.weight" in done.err
    assert "--untrained" in done.err


def test_dissect_as_json_is_the_same_again(run: Command, folder: Path) -> None:
    told = [
        json.loads(
            run("model", "dissect", f"{folder}/cli_net.py:build", "--untrained", folder / "train.npz",
                "--test", folder / "test.npz", "--false-rejections", "0.1", "-f", "json").out
        )
        for _ in range(2)
    ]  # fmt: skip
    assert told[0]["schema"] == "epochzero.model-dissection/2"
    for value in told:
        del value["overhead"]
    assert told[0] == told[1]


def test_evaluate_compares_models_by_group(run: Command, folder: Path) -> None:
    done = run("model", "evaluate", f"{folder}/cli_net.py:build", "--untrained", folder / "test.csv", "--group", "sex",
               "--compare", f"{folder}/cli_net.py:other", "--no-attacks", "-o", folder / "out")  # fmt: skip
    assert done.code == 0, done.err
    assert "worst first: " in done.out
    assert "cli_net.py:other:accuracy" in "".join(done.out.split())
    assert (folder / "out" / "figures" / "reliability.svg").is_file()


@pytest.mark.filterwarnings("ignore")
def test_evaluate_attacks(run: Command, folder: Path) -> None:
    done = run("model", "evaluate", f"{folder}/cli_net.py:build", "--untrained", folder / "test.npz",
               "--attacked", "20", "-f", "json")  # fmt: skip
    (model,) = json.loads(done.out)["models"]
    assert [value["attack"] for value in model["attacks"]] == ["FGSM", "PGD", "DeepFool"]


@pytest.mark.parametrize(
    ("model", "more", "told"),
    [
        ("nothing.pt", (), "no such file"),
        ("cli_net.py:absent", (), "has no absent"),
        ("cli_net.py:build", ("--weights", "none.pt"), "no such file of weights"),
        ("cli_net.py:build", ("--weights", "-", "--weights", "-"), "2 times for 1 model"),
        ("cli_net.py:build", ("--device", "cuda:99"), "is not a device"),
        ("cli_net.py:build", ("--untrained", "--group", "sex"), "has no column 'sex'"),
    ],
)
def test_what_cannot_be_used_ends_with_2(
    run: Command, folder: Path, model: str, more: tuple[str, ...], told: str
) -> None:
    done = run("model", "evaluate", folder / model, folder / "test.npz", "--no-attacks", *more)
    assert done.code == 2
    assert told in done.err
    assert not done.out


TRAINING = """
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training that is read and not run."""
    (tmp_path / "train.py").write_text(TRAINING)
    return tmp_path / "train.py"


def test_mutate_writes_the_mutant_and_a_note(run: Command, training: Path) -> None:
    out = training.parent / "mutants"
    done = run("model", "mutate", training, "--leaf", "wrong_loss_function_calculation", "-o", out)
    assert done.code == 0, done.err
    assert "            - loss.backward()\n            + (-loss).backward()\n" in done.out
    text = (out / "wrong_loss_function_calculation.py").read_text()
    assert text == TRAINING.replace("loss.b", "(-loss).b")
    note = json.loads((out / "wrong_loss_function_calculation.json").read_text())
    assert note["schema"] == "epochzero.mutant/1"
    assert (note["line"], note["old"], note["new"]) == (5, "    loss.backward()", "    (-loss).backward()")  # fmt: skip
    assert (note["program"], note["seed"], note["places"]) == ("train.py", 0, 1)


def test_mutate_all_says_what_it_leaves_out(run: Command, training: Path) -> None:
    done = run("model", "mutate", training, "--all", "-o", training.parent / "m", "-f", "json")
    made = json.loads(done.out)
    assert {"missing_api_call", "missing_loss_function"} <= {v["leaf"] for v in made["mutants"]}
    assert "missing_dropout_layer" in made["left_out"]
    assert len(list((training.parent / "m").glob("*.py"))) == len(made["mutants"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass either --leaf (repeatable) or --all"),
        (
            ["--leaf", "missing_dropout_layer"],
            "not applicable to train.py. It would change: A dropout layer is removed.",
        ),
        (["--leaf", "missing_argument_scoping"], "cannot be injected: only graphs of TensorFlow 1"),
        (["--leaf", "missing_dropout"], "did you mean missing_dropout_layer?"),
    ],
)
def test_mutate_says_what_it_cannot_do(
    run: Command, training: Path, arguments: list[str], message: str
) -> None:
    done = run("model", "mutate", training, *arguments, "-o", training.parent / "m")
    assert done.code == 2
    assert message in done.err


def test_mutate_refuses_what_is_no_training(run: Command, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print('hello')\n")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "c.py").write_text("x = (\n")
    for name, message in (("a", "is it a PyTorch training program?"), ("b", "is not UTF-8 text"), ("c", "line 1 cannot be parsed")):  # fmt: skip
        done = run("model", "mutate", tmp_path / f"{name}.py", "--all", "-o", tmp_path / "m")
        assert done.code == 2
        assert message in done.err


def test_fairness_finds_whom_a_model_judges_by_sex(run: Command, folder: Path) -> None:
    (folder / "unfair.py").write_text(UNFAIR)
    rows = [f"{'fm'[n % 2]},{n % 50},{int(n % 50 > 30)}" for n in range(200)]
    (folder / "people.csv").write_text("\n".join(("sex,income,label", *rows)) + "\n")
    asked = ("model", "fairness", f"{folder}/unfair.py:build", folder / "people.csv")
    done = run(*asked, "--protected", "sex", "--inputs", "2000", "-o", folder / "fair")
    assert done.code == 0, done.err
    assert "exhaustive: 5 discriminatory instances" in done.out
    assert "sex f → 1, sex m → 0" in done.out or "sex m → 0, sex f → 1" in done.out
    assert {"report.html", "instances.csv"} <= {path.name for path in (folder / "fair").iterdir()}
    told = run(*asked, "--protected", "sex", "--inputs", "2000", "--format", "json")
    assert json.loads(told.out)["searches"][0]["found"] == 5
    wrong = run(*asked, "--protected", "race")
    assert (wrong.code, "no input column 'race'" in wrong.err) == (2, True)
