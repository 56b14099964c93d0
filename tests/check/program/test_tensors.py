"""Sizes of tensors equal those of PyTorch, and sizes that PyTorch rejects are rejected."""

from __future__ import annotations

import pytest

from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, Items
from tests.check.program.conftest import Read

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
GIVES = [
    "nn.Linear(8, 3)(torch.rand(2, 5, 8))",
    "nn.Conv1d(3, 6, 5, stride=2, padding=1)(torch.rand(2, 3, 20))",
    "nn.Conv2d(3, 6, (5, 3), dilation=(1, 2))(torch.rand(2, 3, 20, 18))",
    "nn.Conv3d(1, 2, 3, padding=(1, 0, 2))(torch.rand(1, 1, 6, 7, 8))",
    "nn.MaxPool2d(3, 2, 1)(torch.rand(1, 4, 9, 8))",
    "nn.AvgPool1d(2)(torch.rand(1, 4, 9))",
    "nn.AdaptiveAvgPool2d((1, 2))(torch.rand(1, 4, 9, 8))",
    "nn.Flatten()(torch.rand(2, 3, 4))",
    "nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 5))(torch.rand(2, 1, 6, 6))",
    "torch.rand(2, 12).view(2, 3, -1)",
    "F.max_pool2d(F.relu(torch.rand(1, 2, 8, 8)), 2)",
]
REFUSES = [
    "nn.Linear(8, 3)(torch.rand(2, 7))",
    "nn.Conv2d(3, 6, 3)(torch.rand(2, 4, 9, 9))",
    "nn.BatchNorm2d(6)(torch.rand(2, 3, 4, 4))",
    "torch.rand(2, 6).view(5, -1)",
    "torch.rand(2, 6).reshape(5, 2)",
]


def shape_of(program: Program) -> list[object]:
    """The shape that the program gives to ``seen``."""
    given = next(one for one in program.calls if one.name == "probe.seen").arguments[0]
    assert isinstance(given, Items), given
    assert given.complete
    return [one.value if isinstance(one, Constant) else None for one in given.values]


def run(expression: str) -> object:
    torch = pytest.importorskip("torch")
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    return eval(expression, names)


@pytest.mark.parametrize("expression", GIVES)
def test_shapes_are_those_of_torch(read: Read, expression: str) -> None:
    program = read(f"{HEAD}from probe import seen\nseen(({expression}).shape)\n")
    assert shape_of(program) == list(run(expression).shape)  # type: ignore[attr-defined]
    assert not program.failures


@pytest.mark.parametrize("expression", REFUSES)
def test_what_torch_refuses_is_refused(read: Read, expression: str) -> None:
    (failed,) = read(f"{HEAD}print({expression})\n").failures
    assert (failed.kind, failed.at.place.line) == ("shape", 4)
    assert failed.why
    assert failed.fix
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as raised:
        run(expression)
    assert type(raised.value).__name__ == failed.error


@pytest.mark.parametrize(
    "lines",
    [
        "for k in range(3):\n    x = torch.cat([x, x], 1)",
        "while x.sum() > 0:\n    x = torch.cat([x, x], 1)",
        "x.unsqueeze_(0)",
        "if x.sum() > 0:\n    x = x[:, 0]",
        "y = x + 1\ny.unsqueeze_(0)\nx = y",
    ],
)
def test_a_shape_that_may_have_changed_is_not_known(read: Read, lines: str) -> None:
    program = read(f"{HEAD}x = torch.rand(2, 4)\n{lines}\nprint(nn.Linear(9, 2)(x))\n")
    assert not program.failures


def test_a_shape_that_a_condition_leaves_alone_is_known(read: Read) -> None:
    lines = "x = torch.rand(2, 4)\nif input():\n    x = F.dropout(x)\nprint(nn.Linear(9, 2)(x))\n"
    assert [one.kind for one in read(HEAD + lines).failures] == ["shape"]


@pytest.mark.parametrize(("features", "fails"), [(8, False), (9, True)])
def test_modules_in_a_list_are_followed(read: Read, features: int, fails: bool) -> None:
    lines = (
        f"layers = nn.ModuleList([nn.Linear(4, 8)])\nlayers.append(nn.Linear({features}, 2))\n"
        "print(layers[1](layers[0](torch.rand(2, 4))))\n"
    )
    assert bool(read(HEAD + lines).failures) is fails


def test_a_module_that_is_put_into_a_chain_counts(read: Read) -> None:
    lines = "net = nn.Sequential(nn.Linear(4, 8), nn.Linear(9, 2))\nnet[1] = nn.Linear(8, 3)\n"
    assert not read(f"{HEAD}{lines}print(net(torch.rand(2, 4)))\n").failures


def test_a_batch_of_unknown_size_stays_one(read: Read) -> None:
    program = read(
        f"{HEAD}from probe import count, seen\n"
        "x = torch.rand(count(), 3, 4)\nseen(x.view(x.size(0), -1).shape)\n"
    )
    assert shape_of(program) == [None, 12]
