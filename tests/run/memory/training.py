"""Small training programs, run with and without a limit of memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from epochzero.integrations.memory import OomSafeStep, fit, simulated_limit

Loss = Callable[[nn.Module, Any], Tensor]


class Block(nn.Module):
    """Normalizes, then adds what two layers make of it."""

    def __init__(self, width: int, norm: Callable[[int], nn.Module], dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm(width)
        self.layers = nn.Sequential(
            nn.Linear(width, 8 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(8 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(self.norm(x))


def network(
    norm: Callable[[int], nn.Module] = nn.LayerNorm, dropout: float = 0.0, depth: int = 4
) -> nn.Module:
    """Blocks over 16 numbers, for five classes."""
    blocks = [Block(16, norm, dropout) for _ in range(depth)]
    return nn.Sequential(nn.Sequential(*blocks), nn.Linear(16, 5))


def cross_entropy(model: nn.Module, batch: Any) -> Tensor:
    """Of a dictionary with ``x`` and ``y``, of which -100 is ignored."""
    return functional.cross_entropy(model(batch["x"]), batch["y"])


def batches(count: int = 4, size: int = 48) -> list[dict[str, Tensor]]:
    """The same ones each time; a part of the targets is ignored, more of them at the end of a batch."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for _ in range(count):
        x = torch.randn(size, 16, generator=generator)
        y = torch.randint(0, 5, (size,), generator=generator)
        y[torch.rand(size, generator=generator) < torch.arange(size) / size * 0.8] = -100
        made.append({"x": x, "y": y})
    return made


class Trained:
    """What a run came to.

    Attributes:
        losses: of the steps.
        peak: bytes that lived at most.
    """

    def __init__(
        self,
        file: Path,
        *,
        limit: int = 1 << 40,
        make: Callable[[], nn.Module] = network,
        loss: Loss = cross_entropy,
        size: int = 48,
        **options: Any,
    ) -> None:
        """Trains for four steps within the limit."""
        torch.manual_seed(0)
        self.model = make()
        optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.losses: list[float] = []
        self.step: OomSafeStep
        with simulated_limit(limit) as counted:
            self.step = fit(
                lambda batch: loss(self.model, batch),
                model=self.model,
                optimizer=optimizer,
                remember=file,
                **options,
            )
            for batch in batches(size=size):
                optimizer.zero_grad()
                self.losses.append(self.step(batch).item())
                optimizer.step()
        self.peak = counted.peak

    def state(self) -> dict[str, Tensor]:
        """Weights and buffers."""
        return self.model.state_dict()
