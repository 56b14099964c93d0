"""What watching costs a training: time of a step, and memory.

A language model of GPT-2's size, a residual network like ResNet-18 and two perceptrons with steps of half a millisecond and
of one, on the CPU or, with larger batches in bfloat16, on a GPU. Each is trained bare, watched as `epochzero run --watch` does,
and under `torch.autograd.set_detect_anomaly`. Blocks of steps of each way are interleaved in one process, so that all of them
meet the same machine. The hooks are removed for blocks that are not watched, and the time of these does not count as the job's.
Short steps come in blocks: installing hooks empties Python's caches of attributes, which happens once in a job. Compared are
sums over all steps, which include inspections, of processor time, which a busy machine changes least, and of wall time; and the
medians of blocks of both; of processor time also an interval of 95 %, by drawing rounds again (percentile bootstrap). "late"
covers the second half of the steps, without the extra inspections of the start. Peak memory is measured in separate processes.
"again" compares bare with bare: the noise of the measurement.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeVar

import torch
from common import SEED, require_gpus, save
from torch import nn
from torch.nn import functional

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule

Round = TypeVar("Round")
WANTED = {"overhead": 0.03, "overhead_of_1_ms": 0.15, "memory_mb": 200}
"""Limits: the share of a step's time for large models and for steps of 1 ms, and additional megabytes."""
WAYS = ("bare", "watched", "again", "anomaly")
WARM = 2
STEPS = {"gpt2": 1, "resnet18": 3, "perceptron": 500, "perceptron_1_ms": 300}
"""Steps of each model for one of the largest."""
DRAWS = 1000
BLOCK = {"perceptron": 100, "perceptron_1_ms": 100}
"""Steps in a row of one way; 1 for the others."""


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of shape (batch, tokens, width), as is what it gives."""
        batch, tokens, width = x.shape
        parts = self.attention(self.before(x)).view(batch, tokens, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Language(nn.Module):
    """124 million parameters: 12 layers of 768, 50,257 words."""

    def __init__(self, layers: int = 12, width: int = 768, words: int = 50257) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*(Block(width, 12) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Words of shape (batch, tokens) to scores of (batch * tokens, words)."""
        found = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.last(self.blocks(found))).flatten(0, 1)


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, width: int, to: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, to, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(to, to, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(to), nn.BatchNorm2d(to)])
        self.shortcut = nn.Conv2d(width, to, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images to images."""
        found = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(found)) + self.shortcut(x))


def residual_network() -> nn.Module:
    """Eight blocks, as ResNet-18 has."""
    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [
        Residual(width, to, 2 if to != width else 1) for width, to in itertools.pairwise(widths)
    ]
    start = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*start, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def perceptron(wide: int = 128) -> nn.Module:
    """Three layers, whose steps take half a millisecond."""
    return nn.Sequential(nn.Linear(64, wide), nn.ReLU(), nn.Linear(wide, 64), nn.ReLU(),
                         nn.Linear(64, 10))  # fmt: skip


def step_of(name: str, device: str = "cpu") -> Callable[[], None]:
    """A function that trains one of the models by a step, and waits for it."""
    torch.manual_seed(SEED)
    large = device == "cuda"
    if name == "gpt2":
        model: nn.Module = Language()
        shape = (8, 512) if large else (1, 128)
        x, y = torch.randint(50257, shape), torch.randint(50257, (shape[0] * shape[1],))
    elif name == "resnet18":
        batch, side = (64, 224) if large else (16, 64)
        model, x = residual_network(), torch.randn(batch, 3, side, side)
        y = torch.randint(10, (batch,))
    else:
        batch, wide = (256, 256) if name == "perceptron_1_ms" else (128, 128)
        model, x, y = perceptron(wide), torch.randn(batch, 64), torch.randint(10, (batch,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        # As large models are trained on GPUs.
        with torch.autocast(device, dtype=torch.bfloat16, enabled=large):
            loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if large:
            torch.cuda.synchronize()

    return step


def times_of(name: str, steps: int, path: str, device: str) -> dict[str, float]:
    """Median seconds of a bare step, and the shares by which the other ways take longer."""
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    processor: dict[str, list[float]] = {way: [] for way in WAYS}
    watched = [0.0]  # Processor seconds of the job that is watched.
    observer = Observer(Records(path), Schedule(clock=lambda: watched[0]))
    hooks = Hooks(observer)
    step = step_of(name, device)
    block = BLOCK.get(name, 1)
    for number in range(WARM + steps // block):
        # The first in a round finds other caches: each way is first equally often.
        first = number % len(WAYS)
        for way in (*WAYS[first:], *WAYS[:first]):
            about: AbstractContextManager[object] = nullcontext()
            if way == "watched":
                hooks.install()
            elif way == "anomaly":
                about = torch.autograd.set_detect_anomaly(True)
            with about:
                began, before = time.perf_counter(), time.process_time()
                for _ in range(block):
                    step()
                seconds, busy = time.perf_counter() - began, time.process_time() - before
            if way == "watched":
                hooks.remove()
                watched[0] += busy
            if number >= WARM:
                taken[way].append(seconds / block)
                processor[way].append(busy / block)
    medians = {way: statistics.median(times) for way, times in taken.items()}
    found = {way: round(medians[way] / medians["bare"] - 1, 4) for way in WAYS[1:]}
    sums: dict[str, object] = {}
    for way in WAYS[1:]:
        sums[f"{way}_mean"] = more_of(taken[way], taken["bare"])
        sums[f"{way}_processor"] = more_of(processor[way], processor["bare"])
        half = len(processor[way]) // 2
        late, bare = processor[way][half:], processor["bare"][half:]
        sums[f"{way}_processor_late"] = more_of(late, bare)
        pairs = list(zip(processor[way], processor["bare"], strict=True))
        sums[f"{way}_processor_interval"] = interval(
            pairs, lambda of: more_of(*zip(*of, strict=True))
        )
        usual = statistics.median(processor[way]) / statistics.median(processor["bare"])
        sums[f"{way}_processor_median"] = round(usual - 1, 4)
    spent = {"spent": round(observer.spent / watched[0], 4)}
    return {"bare_s": round(medians["bare"], 5), "steps": steps, **found, **sums, **spent}


def more_of(taken: Sequence[float], bare: Sequence[float]) -> float:
    """The share by which the sum is larger."""
    return round(sum(taken) / sum(bare) - 1, 4)


def interval(rounds: Sequence[Round], statistic: Callable[[Sequence[Round]], float]) -> list[float]:
    """Where the statistic lies with 95 %, by drawing rounds again."""
    drawing = random.Random(SEED)
    found = sorted(statistic(drawing.choices(rounds, k=len(rounds))) for _ in range(DRAWS))
    return [round(found[round(part * (DRAWS - 1))], 4) for part in (0.025, 0.975)]


def memory_of(name: str, way: str, path: str, device: str) -> float:
    """Peak megabytes of a process of its own."""
    command = [sys.executable, __file__, "--device", device, "--peak", name, way, path]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def peak(name: str, way: str, path: str, device: str) -> None:
    """Trains a little, and prints the megabytes that it took."""
    if way == "watched":
        Hooks(Observer(Records(path), Schedule())).install()
    step = step_of(name, device)
    for _ in range(4):
        step()
    if device == "cuda":
        print(torch.cuda.max_memory_reserved() / 2**20)
        return
    # Not ru_maxrss: that begins with the peak of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, metavar="N", help="of the largest model")
    parser.add_argument("--models", nargs="+", default=list(STEPS))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--peak", nargs=3, metavar=("MODEL", "WAY", "FILE"))
    options = parser.parse_args()
    if options.device == "cuda":
        require_gpus()
    torch.set_num_threads(1)
    if options.peak:
        peak(*options.peak, options.device)
        return
    numbers: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="watch-overhead-") as folder:
        for name in options.models:
            steps = options.steps * STEPS[name]
            found = times_of(name, steps, str(Path(folder, f"{name}.jsonl")), options.device)
            if not options.no_memory:
                bare = memory_of(name, "bare", "-", options.device)
                more = (
                    memory_of(name, "watched", str(Path(folder, f"{name}.peak")), options.device)
                    - bare
                )
                found |= {"bare_mb": round(bare, 1), "memory_mb": round(more, 1)}
            print(name, found, flush=True)
            numbers[name] = found
            suffix = "_gpu" if options.device == "cuda" else ""
            save(f"watch_overhead{suffix}", {**numbers, "wanted": WANTED})


if __name__ == "__main__":
    main()
