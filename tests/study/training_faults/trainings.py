"""Small trainings that are watched in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule
from epochzero.run.watch.history import TrainingHistory, read_records


def watched(train: Callable[[], None]) -> TrainingHistory:
    """What is seen of a training when every iteration is looked at."""
    records: list[dict[str, Any]] = []
    observer = Observer(Records(on_record=records.append), Schedule(every=1))
    hooks = Hooks(observer)
    hooks.install()
    try:
        train()
        observer.end()
    finally:
        hooks.remove()
    return read_records(records)


def blobs(
    classes: int = 3, each: int = 64, scale: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Points around one center a class, of four columns within -1 and 1."""
    drawn = torch.Generator().manual_seed(5)
    labels = torch.arange(classes).repeat(each)
    centers = torch.rand(classes, 4, generator=drawn) - 0.5
    points = centers[labels] + 0.1 * torch.randn(len(labels), 4, generator=drawn)
    return scale * points.clamp(-1, 1), labels


def training(
    model: Callable[[], nn.Module],
    *,
    data: Callable[[], tuple[torch.Tensor, torch.Tensor]] = blobs,
    loss: Callable[[], nn.Module] = nn.CrossEntropyLoss,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
    rate: float = 0.01,
    epochs: int = 6,
) -> Callable[[], None]:
    """A training as people write it, with an evaluation after each epoch."""

    def train() -> None:
        torch.manual_seed(3)
        inputs, targets = data()
        net, criterion = model(), loss()
        steps = optimizer(net.parameters(), lr=rate)
        for _ in range(epochs):
            net.train()
            for batch in torch.randperm(len(inputs)).split(32):
                steps.zero_grad()
                criterion(net(inputs[batch]), targets[batch]).backward()
                steps.step()
            net.eval()
            with torch.no_grad():
                criterion(net(inputs), targets)

    return train
