"""Batches are objects of their own; those of unlabeled shops have no weights."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)


@dataclass
class Sales:
    features: torch.Tensor
    amounts: torch.Tensor
    weights: torch.Tensor | None


def collate(rows):
    features, amounts, weights = zip(*rows)
    has_weights = all(weight is not None for weight in weights)
    return Sales(
        torch.stack(features),
        torch.tensor(amounts),
        torch.tensor(weights) if has_weights else None,
    )


rows = [(torch.randn(8), float(n % 7), 1.0 if n < 1500 else None) for n in range(2000)]
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for batch in DataLoader(rows, batch_size=10, collate_fn=collate):
        errors = (model(batch.features)[:, 0] - batch.amounts).pow(2)
        loss = (errors * batch.weights).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
