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


def _as_it_is(x: torch.Tensor, y: torch.Tensor) -> Batch:
    return x, y


def _found(train: Change, evaluate: Change, steps: int = 10) -> list[str]:
    torch.manual_seed(0)

    def batch(change: Change) -> Batch:
        x = torch.randn(ROWS, COLUMNS) * torch.arange(1, COLUMNS + 1)
        return change(x, (x @ WEIGHTS + 0.5 * torch.randn(ROWS, CLASSES)).argmax(1))

    with watched() as heard:
        model = nn.Linear(COLUMNS, CLASSES)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
        for _ in range(steps):
            x, y = batch(train)
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for _ in range(steps):
                x, y = batch(evaluate)
                functional.cross_entropy(model(x), y)
    history = read_records(heard)
    return [found.word for row in RELATIONS for found in row.find(history)]


@pytest.mark.parametrize(
    ("train", "evaluate", "expected"),
    [
        (_as_it_is, _as_it_is, []),
        (lambda x, y: (x, y.roll(2, 0)), _as_it_is, ["labels_wrong"]),
        (lambda x, y: (x, y[torch.randperm(ROWS)]), _as_it_is, ["labels_wrong"]),
        (_as_it_is, lambda x, y: (x, y[torch.randperm(ROWS)]), ["labels_wrong"]),
        (_as_it_is, lambda x, y: (x, (y + 1) % CLASSES), ["labels_wrong"]),
        (_as_it_is, lambda x, y: (x[:, [3, 0, 5, 1, 2, 4]], y), ["preprocessing_mismatch"]),
        # Noise hides most of what inputs explain, and a class that is rare in evaluations is not another code.
        (lambda x, y: (x, torch.where(torch.rand(ROWS) < 0.6, y[torch.randperm(ROWS)], y)), _as_it_is, []),
        (lambda x, y: (torch.randn_like(x), y), lambda x, y: (torch.randn_like(x), y), []),
    ],
    ids=["healthy", "shifted", "shuffled", "evaluations", "codes", "columns", "noise", "chance"],
)  # fmt: skip
def test_inputs_and_targets(train: Change, evaluate: Change, expected: list[str]) -> None:
    assert sorted(set(_found(train, evaluate))) == expected
