"""A layer that fails is named, with the place where it was made and what to change."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from epochzero.check.dryrun.child import layers  # noqa: E402

START = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"

# What is wrong -> the program, and what is said: each a key with a part of its value.
MISTAKES: dict[str, tuple[str, dict[str, str]]] = {
    "linear": (
        "m = nn.Sequential(nn.ReLU(), nn.Linear(8, 4))\nm(torch.randn(2, 9))",
        {"path": "1", "class": "Linear", "config": "in_features=8", "fix": "in_features=9"},
    ),
    "flatten missing": (
        "nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(400, 4))(torch.randn(2, 3, 8, 8))",
        {"path": "1", "fix": "torch.flatten(x, 1) before, and in_features=144"},
    ),
    "flatten missing, size right": (
        "nn.Linear(24, 4)(torch.randn(2, 4, 6))",
        {"fix": "flatten the input before: torch.flatten(x, 1)"},
    ),
    "features in the middle": (
        "nn.Linear(8, 4)(torch.randn(2, 8, 5))",
        {"fix": "x.transpose(-1, -2)"},
    ),
    "channels": (
        "nn.Conv2d(3, 4, 3)(torch.randn(2, 5, 8, 8))",
        {"class": "Conv2d", "fix": "in_channels=5", "expected": "3 channels in dimension 1; given 5"},
    ),
    "gray image": ("nn.Conv2d(3, 4, 3)(torch.randn(2, 1, 8, 8))", {"fix": "in_channels=1"}),
    "channels last": ("nn.Conv2d(3, 4, 3)(torch.randn(2, 8, 8, 3))", {"fix": "x.permute(0, 3, 1, 2)"}),
    "channels last, one image": (
        "nn.Conv2d(3, 4, 3)(torch.randn(8, 8, 3))",
        {"fix": "x.permute(2, 0, 1)"},
    ),
    "channels last in one dimension": (
        "nn.Conv1d(16, 4, 3)(torch.randn(2, 50, 16))",
        {"fix": "x.permute(0, 2, 1)"},
    ),
    "video given to an image layer": (
        "nn.Conv2d(3, 4, 3)(torch.randn(2, 6, 3, 8, 8))",
        {"fix": "x.flatten(0, 1)"},
    ),
    "image too small": (
        "nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 7))(torch.randn(2, 3, 8, 8))",
        {"path": "1", "fix": "a larger input"},
    ),
    "transposed convolution": (
        "nn.ConvTranspose2d(8, 4, 2)(torch.randn(2, 4, 9, 9))",
        {"fix": "in_channels=4"},
    ),
    "batch norm": ("nn.BatchNorm2d(4)(torch.randn(2, 5, 8, 8))", {"fix": "num_features=5"}),
    "batch norm of images for features": (
        "nn.BatchNorm2d(4)(torch.randn(2, 4))",
        {"fix": "nn.BatchNorm1d", "expected": "4 dimensions; given 2"},
    ),
    "batch of one": ("nn.BatchNorm1d(4)(torch.randn(1, 4))", {"fix": "drop_last=True"}),
    "layer norm": ("nn.LayerNorm(8)(torch.randn(2, 9))", {"fix": "normalized_shape=9"}),
    "layer norm of channels": (
        "nn.LayerNorm(4)(torch.randn(2, 4, 8, 8))",
        {"fix": "x.permute(0, 2, 3, 1)"},
    ),
    "group norm": ("nn.GroupNorm(2, 4)(torch.randn(2, 6, 8, 8))", {"fix": "num_channels=6"}),
    "embedding of floats": ("nn.Embedding(9, 4)(torch.randn(2, 3))", {"fix": "input.long()"}),
    "embedding out of range": (
        "nn.Embedding(9, 4)(torch.tensor([9]))",
        {"expected": "indices from 0 to 8", "fix": "num_embeddings"},
    ),
    "LSTM": ("nn.LSTM(8, 4)(torch.randn(2, 5, 9))", {"class": "LSTM", "fix": "input_size=9"}),
    "LSTM state, batch first": (
        "nn.LSTM(8, 4)(torch.randn(2, 5, 8), (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)))",
        {"fix": "batch_first=True", "expected": "a state of shape [1, 5, 4]; given [1, 2, 4]"},
    ),
    "GRU state of another size": (
        "nn.GRU(8, 4)(torch.randn(2, 5, 8), torch.zeros(1, 5, 6))",
        {"fix": "make the state with [1, 5, 4]"},
    ),
    "attention": (
        "m = nn.MultiheadAttention(8, 2)\nx = torch.randn(2, 5, 6)\nm(x, x, x)",
        {"fix": "embed_dim=6"},
    ),
    "classes": (
        "F.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 2, 3]))",
        {"expected": "classes from 0 to 2", "fix": "num_classes"},
    ),
    "classes as a column": (
        "F.cross_entropy(torch.randn(4, 3), torch.zeros(4, 1, dtype=torch.long))",
        {"fix": "target.squeeze(-1)"},
    ),
    "classes of a sequence": (
        "nn.CrossEntropyLoss()(torch.randn(2, 5, 7), torch.zeros(2, 5, dtype=torch.long))",
        {"class": "CrossEntropyLoss", "fix": "input.transpose(1, 2)"},
    ),
    "classes as floats": (
        "F.cross_entropy(torch.randn(4, 3), torch.zeros(4))",
        {"fix": "target.long()"},
    ),
    "logits of one column": (
        "F.binary_cross_entropy_with_logits(torch.randn(4, 1), torch.zeros(4))",
        {"fix": "target.unsqueeze(-1)"},
    ),
    "binary target of whole numbers": (
        "F.binary_cross_entropy(torch.rand(4), torch.zeros(4, dtype=torch.long))",
        {"fix": "target.float()"},
    ),
    "types": ("nn.Linear(8, 4)(torch.zeros(2, 8, dtype=torch.float64))", {"fix": "input.to(torch.float32)"}),
    "whole numbers": (
        "nn.Linear(8, 4)(torch.zeros(2, 8, dtype=torch.long))",
        {"fix": "input.to(torch.float32)"},
    ),
    "product in a line": (
        "a, b = torch.randn(2, 3), torch.randn(4, 3)\nc = a @ b",
        {"fix": "b.transpose(-1, -2)"},
    ),
    "sum in a line": (
        "a, b = torch.randn(2, 3), torch.randn(2, 4)\nc = a + b",
        {"expected": "equal sizes, or 1, in dimension 1; given 3 and 4"},
    ),
    "view": ("x = torch.randn(2, 3, 5)\ny = x.view(-1, 7)", {"fix": "view(-1, 15) instead of 7"}),
    "view of what is transposed": ("x = torch.randn(2, 3).t()\nx.view(-1)", {"fix": "reshape"}),
    "concatenation": (
        "a, b = torch.randn(1, 4, 8, 8), torch.randn(1, 4, 7, 7)\ntorch.cat([a, b], 1)",
        {"fix": "crop, pad or interpolate"},
    ),
    "checkpoint of DataParallel": (
        "m = nn.Linear(2, 2)\nm.load_state_dict({'module.' + k: v for k, v in m.state_dict().items()})",
        {"fix": '{k.removeprefix("module."): v for k, v in state.items()}'},
    ),
    "checkpoint without the prefix": (
        "m = nn.DataParallel(nn.Linear(2, 2))\nm.load_state_dict(m.module.state_dict())",
        {"fix": '{"module." + k: v for k, v in state.items()}'},
    ),
    "checkpoint of other classes": (
        "nn.Linear(2, 2).load_state_dict(nn.Linear(2, 3).state_dict())",
        {"expected": "weight of shape [2, 2]; the checkpoint has [3, 2]"},
    ),
    "renamed layer": (
        "nn.ModuleDict({'head': nn.Linear(2, 2)}).load_state_dict(nn.ModuleDict({'heads': nn.Linear(2, 2)}).state_dict())",
        {"fix": "rename heads.weight to head.weight"},
    ),
    "missing key": ("nn.Linear(2, 2).load_state_dict({'weight': torch.zeros(2, 2)})", {"fix": "strict=False"}),
}  # fmt: skip


def run(program: str, folder: Path) -> dict[str, Any]:
    """What is explained of the program's exception."""
    path = folder / "program.py"
    path.write_text(START + program + "\n", encoding="utf-8")
    linecache.checkcache(str(path))
    with layers.watched(), pytest.raises(Exception) as caught:  # noqa: PT011
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    return layers.explain(caught.value) or {}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str, tmp_path: Path) -> None:
    program, wanted = MISTAKES[name]
    found = run(program, tmp_path)
    assert found
    for key, part in wanted.items():
        assert part in found.get(key, ""), found


MODEL = """
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc1 = nn.Linear(size, 16)
        self.fc2 = nn.Linear(12, size)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
net = Net()
net(torch.randn(3, 8))
"""


def test_a_nested_layer_has_its_path_its_place_and_the_shapes(tmp_path: Path) -> None:
    found = run(MODEL, tmp_path)
    assert found["path"] == "blocks.0.fc2"
    assert found["defined"]["code"] == "self.fc2 = nn.Linear(12, size)"
    assert found["shapes"] == [[3, 16], [8, 12]]
    assert found["fix"] == "in_features=16"
    assert found["tensors"][0]["name"] == "self.fc2.weight" or found["tensors"][0]["name"] == "x"


def test_what_has_nothing_to_do_with_tensors_is_not_explained(tmp_path: Path) -> None:
    assert run("{}['a']", tmp_path) == {}


def test_torch_is_as_before_in_the_end() -> None:
    call, init = torch.nn.Module.__call__, torch.nn.Module.__init__
    with layers.watched():
        assert torch.nn.Module.__call__ is not call
    assert torch.nn.Module.__call__ is call
    assert torch.nn.Module.__init__ is init
    assert layers.depth() == 0
    assert layers.path() == ""
