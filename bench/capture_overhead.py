"""What capturing costs a training: time of a step, memory, bytes on the disk.

The models of `watch_overhead`, trained from a loader of torch, on the CPU or, larger batches in bfloat16, on a GPU. Each is trained bare and as
`epochzero run --capture` does. Blocks of steps of the two are interleaved in one process, so that both meet the
same machine; what stands before torch is taken away for those that are bare. The first steps of a block are left out, so that the
others meet warm caches, as those of a job do. Medians of the steps' wall time are compared, and their processor time, which
includes snapshots: sums, or, of a hundred rounds of blocks and more, the mean of the rounds' ratios without the outer fifths, since
others' work on the machine moves sums by several per cent; with an interval of 95 %, by drawing rounds again (percentile
bootstrap). "again" is bare against bare, which tells how far numbers can be trusted. A large model is trained until it has had a snapshot. The capture is written at the end, and
compared with `torch.save` of the same state.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from common import SEED, require_gpus, save
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, dataloader
from torch.utils.data._utils import fetch
from watch_overhead import Language, interval, perceptron, residual_network

from epochzero.run.replay.child.course import Course
from epochzero.run.replay.child.hooks import install
from epochzero.run.replay.child.keeper import Keeper
from epochzero.run.replay.child.tensors import write_tensors

WANTED = {"overhead": 0.03, "times_checkpoint": 2.0}
"""What is wanted at most: the share of a step's time, and the size beside a checkpoint's."""
WAYS = ("bare", "captured", "again")
_SHORT = {"perceptron_5_ms": 200, "perceptron": 1000}
"""Models with short steps, and their steps for one of the large ones."""
BLOCK_S = 0.05
"""Seconds that a block takes, about: a round of three is short next to changes of the machine's load."""
WARM, SETTLE = 5, 3
"""Steps before all blocks, and before each block of several steps."""
MANY, OUTER = 100, 0.2
"""Rounds of which the mean ratio is taken, and the share at each end that is left out."""
_PLACES: tuple[tuple[Any, str], ...] = (
    (nn.Module, "__call__"),
    (torch.optim.Optimizer, "__init__"),
    (torch.autograd, "backward"),
    (DataLoader, "__iter__"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (dataloader._BaseDataLoaderIter, "_next_index"),
    (fetch._MapDatasetFetcher, "fetch"),
)


class Batches(Dataset[Any]):
    """The same kind of sample without end."""

    def __init__(self, make: Callable[[], tuple[torch.Tensor, torch.Tensor]]) -> None:
        self._make = make

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, _: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._make()


def training_of(name: str, device: str) -> tuple[nn.Module, DataLoader[Any]]:
    """One of the models, and a loader of its batches."""
    torch.manual_seed(SEED)
    if name == "gpt2":
        length, batch = (512, 8) if device == "cuda" else (128, 1)
        words = Batches(lambda: (torch.randint(50257, (length,)), torch.randint(50257, (length,))))
        return Language().to(device), DataLoader(words, batch)
    if name == "resnet18":
        side, batch = (224, 64) if device == "cuda" else (64, 16)
        image = torch.randn(3, side, side)
        # For a GPU, drawing each anew would take longer than a step.
        draw = image.clone if device == "cuda" else lambda: torch.randn(3, side, side)
        images = Batches(lambda: (draw(), torch.randint(10, ())))
        return residual_network().to(device), DataLoader(images, batch)
    rows = Batches(lambda: (torch.randn(64), torch.randint(10, ())))
    wide, batch = (1024, 256) if name == "perceptron_5_ms" else (128, 128)
    return perceptron(wide).to(device), DataLoader(rows, batch)


def steps_of(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Any, device: str
) -> Iterator[None]:
    """Trains by a step each time it is asked, and waits for it."""
    large = device == "cuda"
    while True:
        x, y = (part.to(device) for part in next(batches))
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=large):
            loss = functional.cross_entropy(model(x), y.flatten())
        loss.backward()
        optimizer.step()
        if large:
            torch.cuda.synchronize()
        yield


class Captured:
    """What stands before torch, put there and taken away."""

    def __init__(self) -> None:
        self.course = Course()
        self.keeper = self.course.follower = Keeper(self.course, lambda: None)
        before = [getattr(owner, name) for owner, name in _PLACES]
        install(self.course)
        self._ways = {False: before, True: [getattr(owner, name) for owner, name in _PLACES]}

    def be(self, active: bool) -> None:
        """Active or not."""
        self.course.ended = not active
        for (owner, name), value in zip(_PLACES, self._ways[active], strict=True):
            setattr(owner, name, value)


def measured(name: str, steps: int, folder: Path, device: str) -> dict[str, Any]:
    """Seconds of a step, the shares by which the others take longer, and the size of the capture."""
    captured = Captured()
    model, loader = training_of(name, device)
    optimizer = torch.optim.AdamW(model.parameters())
    training = steps_of(model, optimizer, iter(loader), device)
    captured.course.optimizers.add(optimizer)
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    rounds: list[dict[str, float]] = []
    # Time that goes by in steps that are not captured is none in which it may spend.
    elapsed = 0.0
    length = _length_of_block(training)
    while len(rounds) < (wanted := max(len(WAYS), steps // length)) or not captured.keeper.taken:
        # While a large model waits for its first snapshot, the noise is known.
        ways = WAYS if len(rounds) < wanted else WAYS[:2]
        first = len(rounds) % len(ways)
        rounds.append({})
        for way in (*ways[first:], *ways[:first]):
            captured.be(way == "captured")
            captured.course.began = since = time.monotonic() - elapsed
            for _ in range(SETTLE if length > 1 else 0):
                next(training)
            began = time.process_time()
            times = [_seconds(training) for _ in range(length)]
            rounds[-1][way] = time.process_time() - began
            taken[way] += times
            if way == "captured":
                elapsed = time.monotonic() - since
    captured.be(False)
    written = write_tensors(folder / name, captured.keeper.tensors())["bytes"]
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "saved")
    medians = {way: statistics.median(times) for way, times in taken.items()}
    return {
        "bare_s": round(medians["bare"], 5),
        **{way: round(medians[way] / medians["bare"] - 1, 4) for way in WAYS[1:]},
        **{f"{way}_processor": round(_more(rounds, way), 4) for way in WAYS[1:]},
        "captured_processor_interval": interval(rounds, lambda drawn: _more(drawn, "captured")),
        "spent": round(captured.course.spent_s / elapsed, 4),
        "snapshot_s": round(captured.keeper.cost_s, 4),
        "rounds": len(rounds),
        "capture_mb": round(written / 1e6, 2),
        "times_checkpoint": round(written / (folder / "saved").stat().st_size, 2),
    }


def _more(rounds: Sequence[Mapping[str, float]], way: str) -> float:
    """By which share more processor time was used than bare, in the rounds that have this way."""
    rounds = [of for of in rounds if way in of]
    if len(rounds) >= MANY:
        ratios, cut = sorted(one[way] / one["bare"] for one in rounds), int(OUTER * len(rounds))
        return statistics.mean(ratios[cut:-cut]) - 1
    return sum(one[way] for one in rounds) / sum(one["bare"] for one in rounds) - 1


def _seconds(training: Iterator[None], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    next(training)
    return clock() - began


def _length_of_block(training: Iterator[None]) -> int:
    """Steps that a block has, after some to warm up."""
    return max(1, round(BLOCK_S / min(_seconds(training, time.process_time) for _ in range(WARM))))


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="of the large models")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--models", nargs="+", default=["gpt2", "resnet18", *_SHORT])
    options = parser.parse_args()
    if options.device == "cuda":
        require_gpus()
    torch.set_num_threads(1)
    numbers: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="capture-overhead-") as folder:
        for name in options.models:
            steps = options.steps * _SHORT.get(name, 1)
            numbers[name] = measured(name, steps, Path(folder), options.device)
            print(name, numbers[name], flush=True)
            suffix = "_gpu" if options.device == "cuda" else ""
            save(f"capture_overhead{suffix}", {**numbers, "wanted": WANTED})


if __name__ == "__main__":
    main()
