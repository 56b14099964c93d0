"""A layer, function or loss receives a tensor whose shape does not match."""

from __future__ import annotations

from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Rule,
    Target,
    claim_failure,
    failures,
)


def _check(program: Program, target: Target) -> Claims:
    for failed in failures(program, "shape"):
        yield claim_failure(failed, message=failed.why, fix=failed.fix)


_HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
_NET = (
    _HEAD + "class Net(nn.Module):\n    def __init__(self, hidden):\n        super().__init__()\n"
    "        self.a = nn.Linear(8, hidden)\n        self.b = nn.Linear(512, 2)\n\n"
    "    def forward(self, x):\n        return self.b(F.relu(self.a(x)))\n\n\n"
    "print(Net({})(torch.rand(4, 8)))\n"
)
_IMAGES = (
    _HEAD
    + "class Block(nn.Module):\n    def __init__(self, given, made):\n        super().__init__()\n"
    "        self.conv = nn.Conv2d(given, made, 3, padding=1)\n        self.norm = nn.BatchNorm2d(made)\n\n"
    "    def forward(self, x):\n        return F.relu(self.norm(self.conv(x)))\n\n\n"
    "class Net(nn.Module):\n    def __init__(self, widths):\n        super().__init__()\n        layers = []\n"
    "        before = 1\n        for width in widths:\n            layers += [Block(before, width), nn.MaxPool2d(2)]\n"
    "            before = width\n        self.body = nn.Sequential(*layers)\n        self.head = nn.Linear({}, 10)\n\n"
    "    def forward(self, x):\n        x = self.body(x)\n        return self.head(x.view(x.size(0), -1))\n\n\n"
    "from torch.utils.data import DataLoader\nfrom torchvision import datasets, transforms\n\n"
    "data = datasets.MNIST('data', transform=transforms.ToTensor())\nnet = Net([16, 32]).to('cpu')\n"
    "for x, y in DataLoader(data, batch_size=64):\n    print(F.cross_entropy(net(x.to('cpu')), y))\n"
)
_WORDS = (
    _HEAD
    + "words, rnn = nn.Embedding(100, 16), nn.LSTM(16, 32, bidirectional=True, batch_first=True)\n"
    "out, (h, c) = rnn(words(torch.randint(0, 100, (8, 20))))\nprint(nn.Linear({}, 2)(out[:, -1]))\n"
)
_ADDED = (
    _HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])\n        self.last = nn.Linear(8, {})\n\n"
    "    def forward(self, x):\n        for layer in self.layers:\n            x = x + layer(x)\n"
    "        return x + self.last(x)\n\n\nprint(Net()(torch.rand(2, 8)))\n"
)
_LOSS = _HEAD + "loss = nn.{}()\nprint(loss(nn.Linear(4, 1)(torch.rand(32, 4)), torch.rand(32)))\n"

RULE = Rule(
    title="A layer, function or loss receives a tensor whose shape does not match",
    category="tensor_mismatch",
    why="PyTorch checks shapes when data flows: in the first step or, for a head that only the "
    "evaluation uses, in the last hour.",
    fix="Make the sizes match: derive one from the other.",
    source="Zhang et al., ICSE 2020, section 3.2, Tensor Mismatch: adjacent layers that are incompatible",
    check=_check,
    catches=(
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2))\n"
              "print(net(torch.rand(1, 4)))\n"}, line=7),
        Case({"train.py": _NET.format(256)}, line=13),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(32))\n"
              "print(net(torch.load('images.pt')))\n"}, line=7),
        Case({"train.py": _IMAGES.format(512)}, line=29),
        Case({"train.py": _WORDS.format(32)}, line=8),
        Case({"train.py": _ADDED.format(9)}, line=15),
        Case({"train.py": _LOSS.format("BCEWithLogitsLoss")}, line=7),
        Case({"train.py": _HEAD + "x = torch.rand(4, 3, 8)\nprint(torch.cat([x, x[:, 0]], -1))\n"
              "print(x.view(4, -1, 5))\n"}, line=8),
        Case({"train.py": _HEAD + "a, b = torch.rand(4, 8), torch.rand(4, 8)\nprint(a @ b)\n"}, line=7),
    ),
    leaves=(
        Case({"train.py": _NET.format(512)}),
        Case({"train.py": _IMAGES.format("32 * 7 * 7")}),
        Case({"train.py": _WORDS.format(64)}),
        Case({"train.py": _ADDED.format(8)}),
        Case({"train.py": _LOSS.format("MSELoss")}),
        Case({"train.py": _HEAD + "a, b = torch.rand(4, 8), torch.rand(4, 8)\nprint(a @ b.T, a + b[0])\n"}),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Flatten(), "
              "nn.Linear(400, 2))\nprint(net(torch.load('images.pt')))\n"}),
        Case({"train.py": _HEAD + "net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), "
              "nn.Linear(8, 2))\nprint(net(torch.rand(2, 4)))\n"}),
        Case({"train.py": _HEAD + "import sys\nnet = nn.Sequential(nn.Linear(4, int(sys.argv[1])), "
              "nn.Linear(9, 2))\nprint(net(torch.rand(2, 4)))\n"}, ("9",)),
        Case({"train.py": _HEAD + "a, b = nn.Linear(4, 8), nn.Linear(16, 2)\n"
              "x = a(torch.rand(2, 4))\nprint(b(torch.cat([x, x], 1)))\n"}),
        Case({"train.py": _HEAD + "x = torch.rand(2, 4)\nfor k in range(3):\n    x = torch.cat([x, x], 1)\n"
              "print(nn.Linear(32, 2)(x))\n"}),
        Case({"train.py": _HEAD + "x = torch.rand(2, 4)\nx.unsqueeze_(1)\nprint(nn.Conv1d(1, 2, 3)(x))\n"}),
    ),
)  # fmt: skip
