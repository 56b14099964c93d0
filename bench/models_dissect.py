"""DISSECTOR beside other detectors, and what it takes for a model of ResNet-18's size.

Quality: a small convolutional network is trained here on scikit-learn's handwritten digits (1,797 images of
8 by 8), from several seeds of weights and split. The area under the ROC curve is over right and wrong
predictions of images that neither network nor sub-models saw: as they are, and with half of them
corrupted by noise. As inputs beyond the model, the test images turned by a quarter. Time: a ResNet-18 with random weights is dissected on 5,000 images of 32 by 32, half of them for
training; and what a guard costs beside it, for one image at a time and for 64. Torch has one thread, so that the time
of the processor is what a core alone would take.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from common import SEED, mean, save
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from epochzero_models import Dissection, Examples, Guard, dissect

SEEDS = 6
TRAINED = 400
EPOCHS = 60
NOISE = 0.35
"""Standard deviation, of pixels from 0 to 1."""
IMAGES = 5000
"""For training and for test together."""
BATCHES = (1, 64)
"""That are guarded."""
REPEATS = 10


def network() -> nn.Module:
    """Three convolutions and a hidden layer, 29,000 weights."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
        nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Sequential(nn.Flatten(), nn.Linear(128, 64), nn.ReLU()),
        nn.Linear(64, 10),
    )


def trained(train: Examples, seed: int) -> nn.Module:
    """The network after some epochs of Adam."""
    torch.manual_seed(seed)
    module = network()
    optimizer = torch.optim.Adam(module.parameters(), 2e-3)
    for _ in range(EPOCHS):
        for at in torch.randperm(len(train)).split(64):
            optimizer.zero_grad()
            functional.cross_entropy(module(train.inputs[at]), train.labels[at]).backward()
            optimizer.step()
    return module


def split(seed: int) -> tuple[Examples, Examples]:
    """Training and test images, drawn by the seed."""
    digits = load_digits()
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(digits.target)))
    inputs = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    every = Examples("digits", inputs, labels)
    return every.take(order[:TRAINED]), every.take(order[TRAINED:])


def noisy(examples: Examples, seed: int) -> Examples:
    """The same with noise on each second image."""
    draw = torch.Generator().manual_seed(seed)
    noise = NOISE * torch.randn(examples.inputs.shape, generator=draw)
    changed = torch.arange(len(examples)) % 2 == 0
    inputs = torch.where(
        changed[:, None, None, None], (examples.inputs + noise).clamp(0, 1), examples.inputs
    )
    return Examples("noisy digits", inputs, examples.labels)


def turned(examples: Examples) -> Examples:
    """The same images, turned by a quarter: some digits remain digits."""
    return Examples("turned digits", examples.inputs.rot90(1, (2, 3)), examples.labels)


def quality(seeds: int) -> dict[str, object]:
    """Areas by condition and score, over the seeds."""
    found: dict[str, list[Dissection]] = {"as they are": [], "half with noise": []}
    for number in range(seeds):
        train, test = split(SEED + number)
        module = trained(train, SEED + number)
        for condition, examples in zip(found, (test, noisy(test, SEED + number)), strict=True):
            dissection = dissect(module, train, examples, beyond=turned(test), seed=number)
            found[condition].append(dissection)
            print(
                f"seed {number + 1} of {seeds}, {condition}: {dissection.recommended}", flush=True
            )
    return {condition: summed(dissections) for condition, dissections in found.items()}


def summed(dissections: Sequence[Dissection]) -> dict[str, object]:
    """Means over the seeds, with intervals by draws of whole seeds."""
    areas: dict[str, list[float]] = {}
    for dissection in dissections:
        for score in dissection.scores:
            areas.setdefault(score.name, []).append(score.auc.value or 0.5)
    softmax = areas["max softmax"]
    return {
        "accuracy": mean([one.accuracy.value or 0 for one in dissections]),
        "wrong_predictions": sum(
            round(one.reported_on * (1 - (one.accuracy.value or 0))) for one in dissections
        ),
        "auc": {name: mean(values) for name, values in areas.items()},
        "auc_over_max_softmax": {
            name: {
                **mean([a - b for a, b in zip(values, softmax, strict=True)]),
                "seeds_won": sum(a > b for a, b in zip(values, softmax, strict=True)),
            }
            for name, values in areas.items()
            if name != "max softmax"
        },
        "auc_beyond": {
            score.name: mean([one.beyond[at].auc.value or 0.5 for one in dissections])
            for at, score in enumerate(dissections[0].beyond)
        },
        "recommended": Counter(one.recommended for one in dissections),
        "recommended_auc_beyond": mean(
            [
                score.auc.value or 0.5
                for one in dissections
                for score in one.beyond
                if score.name == one.recommended
            ]
        ),
        "overhead_ms": statistics.median(one.overhead.guard_ms for one in dissections),
        "model_ms": statistics.median(one.overhead.model_ms for one in dissections),
    }


class Residual(nn.Module):
    """ResNet's basic block. He et al. (CVPR 2016)."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(given, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.skip = (
            nn.Identity()
            if stride == 1 and given == width
            else nn.Sequential(
                nn.Conv2d(given, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.skip(x))


def resnet18() -> nn.Module:
    """ResNet-18 as it is used for 32 by 32 images: no pooling at the start; 11 million weights."""
    blocks: list[nn.Module] = []
    given = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Residual(given, width, stride), Residual(width, width, 1)]
        given = width
    stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return nn.Sequential(stem, *blocks, *head)


def speed(count: int) -> Mapping[str, object]:
    """Time to dissect ResNet-18 on so many images, half of them for training, and to guard it."""
    draw = torch.Generator().manual_seed(SEED)
    torch.manual_seed(SEED)
    images = torch.rand(count, 3, 32, 32, generator=draw)
    labels = torch.randint(10, (count,), generator=draw)
    every = Examples("random", images, labels)
    half = torch.arange(count // 2)
    module = resnet18()
    began, used = time.perf_counter(), time.process_time()
    found = dissect(
        module, every.take(half), every.take(half + count // 2), detector="dissector linear"
    )
    wall, used = time.perf_counter() - began, time.process_time() - used
    print(f"ResNet-18 on {count:,} images: {wall:.1f} s, {used:.1f} s of the processor")
    guard = Guard(module, found.dissector)
    return {
        "images": count,
        "detector": found.dissector.name,
        "layers": [layer.layer for layer in found.layers[:-1]],
        "wall_s": round(wall, 1),
        "processor_s": round(used, 1),
        "load": round(os.getloadavg()[0], 1),
        "guard": [guard_cost(guard, images[:size]) for size in BATCHES],
    }


def guard_cost(guard: Guard, images: Tensor) -> Mapping[str, object]:
    """Milliseconds of the processor for one batch: of the model, and of the guard beside it, medians by turns."""
    alone: list[float] = []
    guarded: list[float] = []
    for _ in range(REPEATS):
        began = time.process_time()
        with torch.no_grad():
            guard.classifier.logits(images)
        between = time.process_time()
        guard(images)
        alone.append(1000 * (between - began))
        guarded.append(1000 * (time.process_time() - between))
    beside = [one - other for one, other in zip(guarded, alone, strict=True)]
    return {
        "batch": len(images),
        "model_processor_ms": round(statistics.median(alone), 2),
        "guard_processor_ms": round(statistics.median(beside), 2),
    }


def main() -> None:
    """Measures both and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--images", type=int, default=IMAGES, help="for the time of ResNet-18")
    told = parser.parse_args()
    torch.set_num_threads(1)
    digits = quality(told.seeds)
    numbers = {"seeds": told.seeds, "digits": digits, "resnet18": speed(told.images)}
    data = [{"name": "scikit-learn's digits", "images": 1797, "trained_on": TRAINED}]
    versions = {name: importlib.metadata.version(name) for name in ("torch", "scikit-learn")}
    save("models_dissect", numbers, data=data, rivals=versions)


if __name__ == "__main__":
    main()
