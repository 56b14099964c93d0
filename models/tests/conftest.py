"""A small network for scikit-learn's digits, with names for what it is made of.

The fixtures import torch and scikit-learn, since pytest loads this file before any test is selected.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Command, run

if TYPE_CHECKING:
    from torch import nn

    from epochzero_models import Examples

__all__ = ["Command", "run"]  # a fixture, and its type for annotations

NET = '''
import torch
from torch import nn


class Net(nn.Module):
    """Three layers for eight by eight pixels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1, stride=2), nn.ReLU())
        self.third = nn.Sequential(nn.Flatten(), nn.Linear(256, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.third(self.second(self.first(x))))


def build():
    print("building")
    return Net()


def broken():
    return {}["weights"]


number = 3
'''


def digits() -> tuple[Examples, Examples]:
    """A few for training, so that the network is wrong on some of the others."""
    import torch
    from sklearn.datasets import load_digits

    from epochzero_models import Examples

    data = load_digits()
    inputs = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(data.target)
    return Examples("train", inputs[:300], labels[:300]), Examples(
        "test", inputs[300:1100], labels[300:1100]
    )


@pytest.fixture(scope="session")
def net_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network's code."""
    path = tmp_path_factory.mktemp("net") / "net.py"
    path.write_text(NET)
    return path


@pytest.fixture(scope="session")
def data() -> tuple[Examples, Examples]:
    """Training and test examples."""
    return digits()


@pytest.fixture(scope="session")
def net(net_file: Path, data: tuple[Examples, Examples]) -> nn.Module:
    """The network, trained for a moment."""
    import torch
    from torch.nn import functional

    from epochzero_models.seeds import seeded
    from epochzero_models.user_code import made_by

    with seeded(0):
        module: nn.Module = made_by(f"{net_file}:build")
    train = data[0]
    optimizer = torch.optim.Adam(module.parameters(), 3e-3)
    for _ in range(40):
        optimizer.zero_grad()
        functional.cross_entropy(module(train.inputs), train.labels).backward()
        optimizer.step()
    return module.eval()


@pytest.fixture(scope="session")
def weights(net: nn.Module, net_file: Path) -> Path:
    """Its state dict."""
    import torch

    path = net_file.with_name("net.pt")
    torch.save(net.state_dict(), path)
    return path
