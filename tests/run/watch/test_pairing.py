"""The measure of inputs and targets without the model: a fact if they do not belong together, nothing if they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from epochzero.run.watch.faults.pairing import RELATIONS
from epochzero.run.watch.history import read_records
from tests.run.watch.child.conftest import watched

Batch = tuple[torch.Tensor, torch.Tensor]
Change = Callable[[torch.Tensor, torch.Tensor], Batch]
COLUMNS, CLASSES, ROWS = 6, 3, 32
WEIGHTS = torch.randn(COLUMNS, CLASSES, generator=torch.Generator().manual_seed(1))


def _found(change: Change, steps: int = 10) -> list[str]:
    torch.manual_seed(0)
    with watched() as heard:
        model = nn.Linear(COLUMNS, CLASSES)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
        for _ in range(steps):
            x = torch.randn(ROWS, COLUMNS) * torch.arange(1, COLUMNS + 1)
            x, y = change(x, (x @ WEIGHTS + 0.5 * torch.randn(ROWS, CLASSES)).argmax(1))
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    history = read_records(heard)
    return [found.word for row in RELATIONS for found in row.find(history)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x, y: (x, y), []),
        (lambda x, y: (x, y.roll(2, 0)), ["labels_wrong"]),
        (lambda x, y: (x, y.flip(0)), ["labels_wrong"]),
        # Noise hides most of what inputs explain.
        (lambda x, y: (x, torch.where(torch.rand(ROWS) < 0.6, y[torch.randperm(ROWS)], y)), []),
        (lambda x, y: (torch.randn_like(x), y), []),
    ],
    ids=["healthy", "shifted", "reversed", "noise", "chance"],
)
def test_inputs_and_targets(change: Change, expected: list[str]) -> None:
    assert _found(change) == expected
