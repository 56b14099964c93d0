"""Sizes of tensors are those that PyTorch itself tells, and what it refuses is refused."""

from __future__ import annotations

import pytest

from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, Items
from tests.check.program.conftest import Read

torch = pytest.importorskip("torch")

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
GIVES = [
    "nn.Linear(8, 3)(torch.rand(2, 5, 8))",
    "nn.Conv1d(3, 6, 5, stride=2, padding=1)(torch.rand(2, 3, 20))",
    "nn.Conv2d(3, 6, (5, 3), dilation=(1, 2))(torch.rand(2, 3, 20, 18))",
    "nn.Conv3d(1, 2, 3, padding=(1, 0, 2))(torch.rand(1, 1, 6, 7, 8))",
    "nn.ConvTranspose2d(4, 2, 4, stride=2, padding=1, output_padding=1)(torch.rand(1, 4, 7, 7))",
    "nn.MaxPool2d(3, 2, 1)(torch.rand(1, 4, 9, 8))",
    "nn.AvgPool1d(2)(torch.rand(1, 4, 9))",
    "nn.AdaptiveAvgPool2d((1, 2))(torch.rand(1, 4, 9, 8))",
    "nn.ZeroPad2d((1, 2, 3, 4))(torch.rand(1, 1, 5, 5))",
    "nn.Upsample(scale_factor=2)(torch.rand(1, 1, 5, 6))",
    "nn.Flatten()(torch.rand(2, 3, 4))",
    "nn.PixelShuffle(2)(torch.rand(1, 8, 3, 3))",
    "nn.Embedding(9, 4)(torch.zeros(2, 3).long())",
    "nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)(torch.rand(3, 5, 4))[0]",
    "nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)(torch.rand(3, 5, 4))[1][0]",
    "nn.GRU(4, 6)(torch.rand(3, 5, 4))[1]",
    "(lambda x: nn.MultiheadAttention(8, 2)(x, x, x))(torch.rand(3, 5, 8))[0]",
    "nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 5))(torch.rand(2, 1, 6, 6))",
    "torch.rand(2, 3, 4).permute(2, 0, 1)",
    "torch.rand(2, 3, 4).transpose(-1, 1)",
    "torch.rand(2, 12).view(2, 3, -1)",
    "torch.rand(2, 1, 3).squeeze(1).unsqueeze(-1)",
    "torch.rand(2, 3)[:, None]",
    "torch.rand(6, 4)[1:5, -1]",
    "torch.rand(6, 4)[::2]",
    "torch.cat([torch.rand(2, 3), torch.rand(2, 4)], dim=-1)",
    "torch.stack([torch.rand(2, 3), torch.rand(2, 3)], 1)",
    "torch.rand(2, 6).chunk(3, dim=1)[2]",
    "torch.rand(2, 6).split([2, 4], 1)[1]",
    "torch.rand(5, 2, 3) @ torch.rand(3, 4)",
    "torch.bmm(torch.rand(5, 2, 3), torch.rand(5, 3, 4))",
    "torch.rand(2, 3, 4).mean((1, 2), keepdim=True)",
    "torch.rand(2, 3, 4).max(1)[0]",
    "torch.rand(2, 1, 4) + torch.rand(3, 1)",
    "torch.rand(3, 1).expand(-1, 4).repeat(2, 1)",
    "F.max_pool2d(F.relu(torch.rand(1, 2, 8, 8)), 2)",
    "F.pad(torch.rand(2, 3), (1, 2))",
    "F.one_hot(torch.arange(4), num_classes=7)",
    "F.interpolate(torch.rand(1, 1, 4, 4), size=(3, 5))",
    "torch.tensor([[1.0, 2.0, 3.0]]).T",
    "2 * torch.rand(3) / 4 - torch.zeros(2, 3)",
    "torch.randint(0, 9, (2, 3)).flatten()",
]
REFUSES = [
    "nn.Linear(8, 3)(torch.rand(2, 7))",
    "nn.Conv2d(3, 6, 3)(torch.rand(2, 4, 9, 9))",
    "nn.Conv2d(3, 6, 7)(torch.rand(2, 3, 5, 5))",
    "nn.Conv2d(3, 6, 3)(torch.rand(2, 3))",
    "nn.ConvTranspose2d(3, 6, 3)(torch.rand(2, 4, 9, 9))",
    "nn.MaxPool2d(2)(torch.rand(2, 3, 1, 1))",
    "nn.BatchNorm2d(6)(torch.rand(2, 3, 4, 4))",
    "nn.BatchNorm2d(6)(torch.rand(2, 6))",
    "nn.GroupNorm(2, 6)(torch.rand(2, 4, 4, 4))",
    "nn.LayerNorm([3, 4])(torch.rand(2, 3, 5))",
    "nn.LSTM(4, 6)(torch.rand(3, 5, 6))",
    "(lambda x: nn.MultiheadAttention(8, 2)(x, x, x))(torch.rand(3, 5, 6))",
    "nn.PixelShuffle(2)(torch.rand(1, 6, 3, 3))",
    "torch.rand(2, 6).view(5, -1)",
    "torch.rand(2, 6).reshape(5, 2)",
    "torch.cat([torch.rand(2, 3), torch.rand(3, 3)], 1)",
    "torch.stack([torch.rand(2, 3), torch.rand(3, 2)])",
    "torch.rand(2, 6).split([2, 3], 1)",
    "torch.rand(2, 3) @ torch.rand(2, 3)",
    "torch.rand(2, 3) * torch.rand(2, 4)",
    "F.cross_entropy(torch.rand(4, 3), torch.zeros(5).long())",
    "F.cross_entropy(torch.rand(4, 3), torch.zeros(4, 1).long())",
    "F.cross_entropy(torch.rand(4, 7, 3), torch.zeros(4, 7).long())",
    "F.binary_cross_entropy(torch.rand(4, 1), torch.rand(4))",
]


def shape_of(program: Program) -> list[object]:
    """The shape that the program gives to ``seen``."""
    given = next(one for one in program.calls if one.name == "probe.seen").arguments[0]
    assert isinstance(given, Items), given
    assert given.complete
    return [one.value if isinstance(one, Constant) else None for one in given.values]


def run(expression: str) -> object:
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
        f"{HEAD}from torch.utils.data import DataLoader, TensorDataset\nfrom probe import seen\n"
        "data = TensorDataset(torch.rand(90, 3, 4), torch.rand(90))\n"
        "for k, (x, y) in enumerate(DataLoader(data, 8)):\n    seen(x.view(x.size(0), -1).shape)\n"
    )
    assert shape_of(program) == [None, 12]
