"""Training with less memory than it needs: the loss curve and the throughput that are left.

Three models are trained with memory for all of it, then with a limit of which they need 1.5, 2 and 4
times as much: with `epochzero.memory.fit`, with Accelerate's ``find_executable_batch_size``, which trains
with smaller batches, and with plain gradient checkpointing. On a GPU the limit is the allocator's; without
one it is simulated, at the same cost for all of them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from common import SEED, require_gpus, save
from torch import Tensor, nn
from torch.nn import functional

import epochzero
from epochzero.run.memory.checkpointing import checkpointed, repeated_blocks

OVER = (1.5, 2.0, 4.0)
TOLERANCE = 1e-3
"""Largest relative difference of a loss that is rounding, over the steps of one run in float32."""
CUDA = torch.cuda.is_available() and "cpu" not in sys.argv
DEVICE = torch.device("cuda" if CUDA else "cpu")
WIDER = 8 if CUDA else 1
"""Widths on a GPU: its allocator takes 20 MiB at a time, which must be little of the whole."""


class ResidualBlock(nn.Module):
    """Two convolutions, each normalized, added to what came."""

    def __init__(self, width: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            norm(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            norm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.layers(x))


class DecoderBlock(nn.Module):
    """Causal attention and a perceptron."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        size, length, width = x.shape
        parts = self.attention(self.norms[0](x)).view(size, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(size, length, width))
        return x + self.perceptron(self.norms[1](x))


class Language(nn.Module):
    """A small GPT."""

    def __init__(self, width: int = 64 * WIDER, length: int = 64, blocks: int = 6) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(DecoderBlock(width) for _ in range(blocks)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 256))

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.tokens(tokens) + self.places(places)))


def images(norm: Callable[[int], nn.Module], width: int = 16 * WIDER) -> nn.Module:
    """A small residual network for ten classes."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.Sequential(*(ResidualBlock(width, norm) for _ in range(6))),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 10),
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "cnn_group_norm": lambda: images(lambda width: nn.GroupNorm(4, width)),
    "cnn_batch_norm": lambda: images(nn.BatchNorm2d),
    "small_gpt": Language,
}


@dataclass
class Curve:
    """What a run came to.

    Attributes:
        losses: of the steps, or for Accelerate of as many examples as a step has.
        rate: examples a second, of the second half of the steps.
        peak: bytes.
        how: what it did to fit.
    """

    losses: list[float] = field(default_factory=list)
    rate: float = 0.0
    peak: int = 0
    how: str = ""


@contextmanager
def limited(limit: int | None) -> Iterator[Callable[[], int]]:
    """Memory up to a limit in bytes; gives a function that tells the peak."""
    if not CUDA:
        with epochzero.memory.simulated_limit(limit or 1 << 50) as counted:
            yield lambda: counted.peak
        return
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.set_per_process_memory_fraction(min(limit / total, 1.0) if limit else 1.0)
    try:
        yield torch.cuda.max_memory_allocated
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


class Training:
    """One model on the same examples each time; its labels can be learned from them."""

    def __init__(self, name: str, steps: int, size: int) -> None:
        self.name, self.steps, self.size = name, steps, size
        draw = torch.Generator().manual_seed(SEED)
        count = steps * size
        if name == "small_gpt":
            first = torch.randint(0, 256, (count, 1), generator=draw)
            self.inputs = (first + 3 * torch.arange(64)) % 256
            self.targets = (self.inputs + 3) % 256
            hidden = (
                torch.rand(count, 64, generator=draw) < torch.rand(count, 1, generator=draw) / 2
            )
            self.targets[hidden] = -100
        else:
            self.targets = torch.randint(0, 10, (count,), generator=draw)
            pattern = torch.randn(10, 3, 32, 32, generator=draw)
            noise = torch.randn(count, 3, 32, 32, generator=draw)
            self.inputs = pattern[self.targets] + 2 * noise

        self.examples = (self.inputs.numpy(), self.targets.numpy())

    def start(self) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[Any], Tensor]]:
        """The model, its optimizer and the loss of a batch."""
        torch.manual_seed(SEED)
        model = MODELS[self.name]().to(DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

        def loss_of(batch: Any) -> Tensor:
            inputs, targets = batch
            return functional.cross_entropy(
                model(inputs).reshape(-1, 256 if self.name == "small_gpt" else 10),
                targets.flatten(),
            )

        return model, optimizer, loss_of

    def batches(self, size: int) -> Iterator[tuple[Tensor, ...]]:
        """All examples, in batches of this size."""
        for first in range(0, len(self.inputs), size):
            part = slice(first, first + size)
            # Cut by NumPy: all examples, of which torch sees none, take no memory of the device.
            yield tuple(torch.from_numpy(one[part].copy()).to(DEVICE) for one in self.examples)

    def run(self, step: Callable[[Any], Tensor], optimizer: Any, size: int) -> Curve:
        """Trains on all examples."""
        curve, half, began = Curve(), len(self.inputs) // 2, 0.0
        for index, batch in enumerate(self.batches(size)):
            if index * size >= half and not began:
                began, half = _now(), index * size
            optimizer.zero_grad()
            curve.losses.append(step(batch).item())
            optimizer.step()
        curve.rate = (len(self.inputs) - half) / (_now() - began)
        return curve

    def whole(self, limit: int | None, *, checkpoint: bool = False) -> Curve | None:
        """Whole batches; None where memory runs out."""
        model, optimizer, loss_of = self.start()
        blocks = repeated_blocks(model) if checkpoint else []

        def step(batch: Any) -> Tensor:
            with checkpointed(blocks):
                loss = loss_of(batch)
                loss.backward()
            return loss.detach()

        try:
            with limited(limit) as peak:
                curve = self.run(step, optimizer, self.size)
                curve.peak = peak()
        except torch.OutOfMemoryError:
            return None
        return curve

    def fitted(self, limit: int, **options: Any) -> Curve | None:
        """With `epochzero.memory.fit`."""
        model, optimizer, loss_of = self.start()
        with tempfile.TemporaryDirectory() as folder, limited(limit) as peak:
            step = epochzero.memory.fit(
                loss_of, model=model, optimizer=optimizer, remember=Path(folder, "f"), **options
            )
            try:
                curve = self.run(step, optimizer, self.size)
            except torch.OutOfMemoryError:
                return None
            curve.peak, curve.how = peak(), str(step.plan)
        return curve

    def accelerated(self, limit: int) -> Curve | None:
        """With Accelerate's batch finder, losses as means over as many examples as a whole batch has."""
        from accelerate.utils import find_executable_batch_size

        @find_executable_batch_size(starting_batch_size=self.size)
        def train(size: int) -> tuple[Curve, int]:
            _, optimizer, loss_of = self.start()

            def step(batch: Any) -> Tensor:
                loss = loss_of(batch)
                loss.backward()
                return loss.detach()

            return self.run(step, optimizer, size), size

        with limited(limit) as peak:
            try:
                curve, size = train()
            except RuntimeError:
                return None
            curve.peak, curve.how = peak(), f"batches of {size} examples instead of {self.size}"
        weights = torch.zeros(self.steps, len(curve.losses))
        for index in range(len(curve.losses)):
            middle = min((index + 0.5) * size, len(self.inputs) - 1)
            weights[int(middle // self.size), index] = 1
        means = weights @ torch.tensor(curve.losses) / weights.sum(1).clamp(min=1)
        curve.losses = means.tolist()
        return curve


def _now() -> float:
    """Seconds, on a CPU those of the processor, which other programs disturb less."""
    if not CUDA:
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def compared(curve: Curve | None, whole: Curve) -> dict[str, Any]:
    """A run beside the one with memory for all."""
    if curve is None:
        return {"finished": False}
    differences = [
        abs(one - other) / abs(other) for one, other in zip(curve.losses, whole.losses, strict=True)
    ]
    return {
        "finished": True,
        "how": curve.how,
        "largest_relative_difference_of_loss": float(f"{max(differences):.3g}"),
        "same_curve": max(differences) <= TOLERANCE,
        "last_loss": round(curve.losses[-1], 4),
        "throughput_lost": round(1 - curve.rate / whole.rate, 3),
        "peak_mib": round(curve.peak / 2**20, 2),
    }


def measured(name: str, steps: int, size: int) -> dict[str, Any]:
    """All runs of one model."""
    training = Training(name, steps, size)
    whole = training.whole(None)
    assert whole is not None
    found: dict[str, Any] = {
        "peak_mib": round(whole.peak / 2**20, 2),
        "first_loss": round(whole.losses[0], 4),
        "last_loss": round(whole.losses[-1], 4),
        "examples_per_second": round(whole.rate, 1),
    }
    for over in OVER:
        limit = int(whole.peak / over)
        runs: dict[str, Callable[[], Curve | None]] = {
            "epochzero": partial(training.fitted, limit),
            "accelerate": partial(training.accelerated, limit),
            "checkpointing": partial(training.whole, limit, checkpoint=True),
        }
        if name == "cnn_batch_norm":
            runs["epochzero_allow_batch_norm"] = partial(
                training.fitted, limit, allow_batch_norm=True
            )
        found[f"{over:g}x"] = {}
        for which, run in runs.items():
            found[f"{over:g}x"][which] = told = compared(run(), whole)
            print(f"{name:15} {over:3g}x {which:27} {told}", flush=True)
    return found


def main() -> None:
    """Measures all, and saves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--size", type=int, default=32, help="examples of a batch")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    options = parser.parse_args()
    if options.device == "cuda":
        require_gpus()
    if not CUDA:
        torch.set_num_threads(1)
    numbers: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if CUDA else "CPU, limit simulated",
        "steps": options.steps,
        "batch": options.size,
        "tolerance": TOLERANCE,
    }
    versions = {name: importlib.metadata.version(name) for name in ("accelerate", "torch")}
    for name in MODELS:
        numbers[name] = measured(name, options.steps, options.size)
        save("survive_gpu" if CUDA else "survive", numbers, rivals=versions)


if __name__ == "__main__":
    main()
