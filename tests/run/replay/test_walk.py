"""The walk through a step ends at the operator that its failure comes from; a program shows it by itself."""

from __future__ import annotations

import json
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from epochzero.cli.render_walk import program_lines, walked_lines
from epochzero.cli.replay import command
from epochzero.errors import InputError
from epochzero.run.replay.program import write_program
from epochzero.run.replay.walk_result import FailureOrigin, walked_of
from tests.torch_jobs import light_torch

torch = pytest.importorskip("torch")
nn = torch.nn

Walks = Callable[[Callable[[], Any]], FailureOrigin]
# Dropout leaves nothing of a row now and then, and its length is zero.
NOT_A_NUMBER = """
import torch
from torch import nn
torch.set_num_threads(1)
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(6, 3), nn.Dropout(0.5)
    def forward(self, x):
        found = self.drop(self.layer(x))
        return found / found.norm(dim=1, keepdim=True)
model = Head()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(500):
    model.drop.p = 0.5 if step > 2 else 0.0
    loss = model(torch.randn(2, 6)).sum()
    assert torch.isfinite(loss), "not finite"
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A fresh Python that imports a light torch and then runs a program."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "light.py").write_text(
        light_torch("import torch\n")
        + "import runpy, sys\nrunpy.run_path(sys.argv[1], run_name='__main__')\n"
    )
    # Called as `python -I program.py`.
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -I {folder}/light.py "$2"\n')
    (folder / "python").chmod(0o755)
    return str(folder / "python")


@pytest.fixture
def walks(python: str) -> Walks:
    """Walks through what a function does; answers what the process that was replayed would tell."""
    from epochzero.run.replay.child.walk import Walk
    from epochzero.run.replay.child.walking import told_tensor

    def walked(function: Callable[[], Any], *models: Any) -> FailureOrigin:
        walk, ended = Walk(models), None
        walk.begin()
        try:
            function()
        except Exception as error:
            ended = error
        finally:
            walk.end()
        told, tensors = walk.found(ended)
        told |= {"versions": {"torch": torch.__version__}, "python": python}
        told["tensors"] = {name: told_tensor(tensor) for name, tensor in tensors.items()}
        found = walked_of(json.loads(json.dumps(told)))
        assert found is not None
        return found

    return walked


@pytest.fixture(autouse=True)
def all_is_as_before() -> Iterator[None]:
    """A walk leaves nothing in place."""
    call = nn.Module._call_impl
    yield
    assert nn.Module._call_impl is call


def test_it_ends_at_the_operator_that_made_infinity_of_zeros(walks: Walks) -> None:
    model = nn.Sequential(nn.Linear(4, 3))

    def step() -> None:
        chances = torch.softmax(model(torch.ones(2, 4)) * 1e4, 1)
        (chances * chances.log()).sum().backward()

    found = walks(step, model)
    assert found.why == "not_finite"
    assert found.culprit is not None
    assert found.culprit.name == "aten.log"
    assert found.culprit.text == "(chances * chances.log()).sum().backward()"
    assert [one.name for one in found.chain] == ["aten.log", "aten.mul.Tensor", "aten.sum"]
    assert found.sources[0].name == "aten._softmax"


def test_only_what_raised_is_said_to_raise(walks: Walks) -> None:
    weights, values = [torch.ones(3)], torch.ones(2, 3)

    def step() -> None:
        torch._foreach_add_(weights, 1.0)
        with torch.profiler.record_function("sampling"):
            torch.zeros(2)
        values @ values

    found = walks(step)
    assert not any(one.name.startswith("profiler") for one in found.before)
    assert "aten._foreach_add_.Scalar" in [one.name for one in found.before]
    raises = [line for line in walked_lines(found) if "raises" in line]
    assert ["aten.mm" in line for line in raises] == [True]


def test_a_walk_does_not_see_how_the_operators_of_a_loss_are_found(walks: Walks) -> None:
    from epochzero.run.replay.child.course import _operators

    # Autograd stores the number 0.1; observed operators would receive it as a number, not as a tensor.
    scaled: list[str] = []
    x = torch.ones(3, requires_grad=True)
    walks(lambda: scaled.extend(_operators((0.1 * (x / torch.zeros(3))).pow(2).mean() + 0.5)))
    assert scaled[0] == "DivBackward0"


def test_a_gradient_belongs_to_the_module_and_line_of_its_forward_pass(walks: Walks) -> None:
    class Root(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.sqrt(x)

    model = nn.Sequential(nn.Linear(2, 2), Root())
    nn.init.zeros_(model[0].weight)
    nn.init.zeros_(model[0].bias)

    def step() -> None:
        (model(torch.ones(3, 2)) * 0).sum().backward()

    culprit = walks(step, model).culprit
    assert culprit is not None
    assert (culprit.backward, culprit.of, culprit.module) == (True, "aten.sqrt", "1 (Root)")
    assert culprit.text == "return torch.sqrt(x)"


def test_what_is_too_large_for_half_precision_is_finite_in_float64(walks: Walks) -> None:
    found = walks(lambda: (torch.full((3,), 300.0).half() ** 2).sum())
    assert found.culprit is not None
    assert found.culprit.finite_in_float64 is True
    assert any("whose maximum is 65504" in line for line in walked_lines(found))


def test_masks_of_infinities_are_meant_to_be(walks: Walks) -> None:
    def step() -> None:
        scores = torch.randn(2, 4).masked_fill(torch.ones(2, 4, dtype=torch.bool), float("-inf"))
        torch.softmax(scores, 1).sum()

    culprit = walks(step).culprit
    assert culprit is not None
    assert culprit.name == "aten._softmax"


@pytest.mark.parametrize(
    ("function", "operator", "call"),
    [
        (lambda: nn.functional.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3])), "aten.nll_loss_forward", "torch.nn.functional.cross_entropy"),
        (lambda: nn.Linear(4, 2)(torch.ones(3, 5)), "aten.addmm", "torch.nn.Linear(in_features=4, out_features=2, bias=True)"),
        (lambda: torch.stack([]), "aten.stack", "torch.stack"),
        (lambda: nn.LSTM(4, 4)(torch.ones(2, 3, 4), (torch.zeros(1, 2, 4),) * 2), "torch.nn.LSTM", "torch.nn.LSTM(4, 4)"),
    ],
)  # fmt: skip
def test_a_program_raises_what_the_job_raised(
    walks: Walks, tmp_path: Path, function: Callable[[], Any], operator: str, call: str
) -> None:
    found = walks(function)
    assert found.why == "raised"
    assert found.culprit is not None
    assert found.culprit.name == operator
    program = write_program(found, tmp_path / "failure.py")
    assert (program.call, program.data, program.outcome) == (call, "inline", found.error)
    # The program was already run by a fresh Python; here it is read by itself, without what made it.
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any type, compared as text
        runpy.run_path(str(program.path), run_name="__main__")
    assert found.error in "".join(traceback.format_exception_only(raised.value))


def test_large_tensors_are_made_where_that_fails_alike_and_lie_beside_it_elsewhere(
    walks: Walks, tmp_path: Path
) -> None:
    made = write_program(walks(lambda: torch.randn(40, 30).log().sum()), tmp_path / "made.py")
    assert (made.data, made.file) == ("made", None)
    assert "of yours" in " ".join(program_lines(made))

    numbers = torch.randn(40, 30)
    divisor = torch.where(torch.arange(40)[:, None] == 7, 0.0, numbers)
    exact = torch.where(torch.arange(40)[:, None] == 7, 0.0, numbers * 2 + 9)
    kept = write_program(walks(lambda: (exact / divisor).sum()), tmp_path / "kept.py")
    assert kept.data in ("made", "file")


def test_what_is_no_operator_has_no_program(walks: Walks, tmp_path: Path) -> None:
    def step() -> None:
        torch.ones(2).sum()
        raise KeyError("price")

    found = walks(step)
    assert (found.why, found.culprit) == ("nothing", None)
    assert "program's own code" in " ".join(" ".join(walked_lines(found)).split())
    with pytest.raises(InputError, match="program's own code"):
        write_program(found, tmp_path / "failure.py")


def test_names_and_modules_become_code_only_where_they_are_of_torch(
    walks: Walks, tmp_path: Path
) -> None:
    class Linear(nn.Linear):
        def extra_repr(self) -> str:
            return "__import__('os').system('touch hacked')"

    Linear.__module__ = "torch.nn.modules.linear"
    found = walks(lambda: Linear(4, 2)(torch.ones(3, 5)))
    program = write_program(found, tmp_path / "failure.py")
    assert program.call == "torch.nn.functional.linear"
    assert "hacked" not in program.path.read_text()


@pytest.mark.parametrize("told", [None, {}, {"why": "?"}, {"why": "raised", "operators": "x"}, []])
def test_what_cannot_be_read_is_nothing(told: Any) -> None:
    assert walked_of(told) is None


def test_a_replay_walks_and_writes_a_program(captured: Any, tmp_path: Path) -> None:
    folder = captured(light_torch(NOT_A_NUMBER))
    program = tmp_path / "failure.py"
    result = CliRunner().invoke(command, [str(folder), "--program", str(program)])
    assert result.exit_code == 0, result.output
    assert re.search(r"Operator +aten.div.Tensor gives \d+ NaN of 6 values from finite inputs", result.output)  # fmt: skip
    assert "It was run" in result.output
    assert "torch.ops.aten.div.Tensor" in program.read_text()
    result = CliRunner().invoke(command, [str(folder), "--bisect", "--format", "json"])
    found = json.loads(result.output)
    assert (found["reproduced"], found["exactness"]) == (True, "bits")
    culprit = found["walked"]["culprit"]
    assert culprit["name"] == "aten.div.Tensor"
    assert culprit["text"] == "return found / found.norm(dim=1, keepdim=True)"
