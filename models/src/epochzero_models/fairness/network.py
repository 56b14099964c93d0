"""The network of the ADF paper, and training of any module on a table."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from epochzero_models.classifier import ProgressCallback
from epochzero_models.examples import Examples
from epochzero_models.seeds import seeded

HIDDEN = (64, 32, 16, 8, 4)
UPDATES = 2000
BATCH = 128


class _Standardized(nn.Module):
    """Standardizes inputs with mean and standard deviation of the training data."""

    center: Tensor
    scale: Tensor

    def __init__(self, inputs: Tensor) -> None:
        super().__init__()
        spread = inputs.std(dim=0, correction=0)
        self.register_buffer("center", inputs.mean(dim=0))
        self.register_buffer("scale", torch.where(spread > 0, 1 / spread.clamp_min(1e-12), 0.0))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.center) * self.scale


def train_network(
    examples: Examples, seed: int = 0, on_progress: ProgressCallback | None = None
) -> nn.Module:
    """Train the paper's fully connected network, with 64, 32, 16, 8 and 4 ReLUs, on a table.

    Args:
        examples: inputs of shape (n, columns).
        seed: of weights and batches.
        on_progress: called with the progress.
    """
    with seeded(seed):
        layers: list[nn.Module] = [_Standardized(examples.inputs)]
        width = examples.inputs.shape[1]
        for hidden in HIDDEN:
            layers += [nn.Linear(width, hidden), nn.ReLU()]
            width = hidden
        classes = max(2, int(examples.labels.max()) + 1)
        module = nn.Sequential(*layers, nn.Linear(width, classes))
    return fit(module, examples, seed, on_progress)


def fit(
    module: nn.Module,
    examples: Examples,
    seed: int,
    on_progress: ProgressCallback | None = None,
    weights: Tensor | None = None,
) -> nn.Module:
    """Train a module in place by Adam for some thousand batches, and put it into evaluation mode.

    Args:
        module: to train.
        examples: of the batches.
        seed: of the batches.
        on_progress: called with the progress.
        weights: how often each example is drawn, relative to the others; equally often if None.
    """
    draw = torch.Generator().manual_seed(seed)
    module.train().requires_grad_(True)
    optimizer = torch.optim.Adam(module.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, UPDATES)
    if weights is None:
        batches = torch.randint(len(examples), (UPDATES, BATCH), generator=draw)
    else:
        rows = torch.multinomial(weights, UPDATES * BATCH, replacement=True, generator=draw)
        batches = rows.view(UPDATES, BATCH)
    with torch.enable_grad(), seeded(seed):
        for update, at in enumerate(batches):
            optimizer.zero_grad()
            loss = functional.cross_entropy(module(examples.inputs[at]), examples.labels[at])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            if on_progress and update % 100 == 0:
                on_progress("training, batches", update, UPDATES)
    return module.eval().requires_grad_(False)
