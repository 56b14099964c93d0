"""Trains the classifiers of DeepFD and writes ``src/epochzero/study/training_faults/deepfd.json``.

As Cao et al., ICSE 2022: faults of five kinds are put into programs, each program is trained and
watched, a program into which a fault was put is faulty when it does worse than all runs of the one it was made
from, and k nearest neighbors, a decision tree and a random forest learn to tell the faults by the features. The
programs are made here, of data that are drawn; nothing of ``lab/watch`` is seen.

    python bench/train_deepfd.py                 # needs torch and scikit-learn; some minutes
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from torch.nn import functional

from epochzero.run.watch.child.hooks import Hooks
from epochzero.run.watch.child.observer import Observer
from epochzero.run.watch.child.records import Records
from epochzero.run.watch.child.schedule import Schedule
from epochzero.run.watch.history import TrainingHistory, read_records
from epochzero.study.training_faults.classifiers import SCALE, Array
from epochzero.study.training_faults.deepfd import (
    FAULTS,
    FEATURES,
    STATISTICS,
    classifiers_of,
    features,
    scaled,
)

TARGET = Path(__file__).resolve().parent.parent / "src/epochzero/study/training_faults/deepfd.json"
SEED = 20_220_521
ORIGINALS, MUTANTS = 4, 4
"""Runs of each program as it is, and faults of each kind put into it."""
HARM = 0.02
"""So much worse than the worst run without a fault is faulty."""
EXAMPLES, UNSEEN = 384, 256
NEIGHBORS, DEPTH, TREES, FOREST_DEPTH, FOREST_FEATURES = 5, 5, 32, 10, 60

Data = tuple[torch.Tensor, torch.Tensor]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Program:
    """A training.

    Attributes:
        data: name of its task.
        hidden: units of its hidden layers; of images, channels.
        between, last: activations; the last is empty for none.
        loss: name in `LOSSES`.
        optimizer, rate, epochs, batch: settings.
    """

    data: str
    hidden: tuple[int, ...]
    between: str
    loss: str
    optimizer: str
    rate: float
    epochs: int
    batch: int
    last: str = ""


PROGRAMS = (
    Program("blobs", (32,), "ReLU", "cross_entropy", "Adam", 0.01, 12, 32),
    Program("blobs", (16, 16), "Tanh", "cross_entropy", "SGD", 0.3, 16, 16),
    Program("rings", (32, 32), "ReLU", "cross_entropy", "Adam", 0.01, 20, 32),
    Program("rings", (24, 24), "Tanh", "cross_entropy", "RMSprop", 0.005, 20, 32),
    Program("patterns", (64,), "ReLU", "cross_entropy", "SGD", 0.1, 15, 32),
    Program("patterns", (48, 32), "ELU", "cross_entropy", "Adam", 0.003, 10, 32),
    Program("stripes", (8, 8), "ReLU", "cross_entropy", "Adam", 0.01, 10, 32),
    Program("stripes", (8,), "ReLU", "cross_entropy", "RMSprop", 0.005, 12, 32),
    Program("parity", (32, 16), "ReLU", "binary", "Adam", 0.01, 25, 32),
    Program("parity", (32,), "Tanh", "binary", "Adam", 0.02, 25, 32),
    Program("waves", (32, 32), "Tanh", "mse_loss", "Adam", 0.01, 20, 32),
    Program("waves", (32,), "ReLU", "mse_loss", "Adam", 0.02, 20, 32),
)
RATES = (1e-12, 1e-10, 1e-6, 1e-5, 1.0, 2.0, 5.0, 10.0)
ACTIVATIONS = ("ReLU", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "SELU", "ELU")
OPTIMIZERS = ("SGD", "RMSprop", "Adam", "Adadelta", "Adagrad")


def main() -> None:
    """Runs the programs, learns from them, and writes what was learned."""
    found, labels, programs = [], [], []
    with ProcessPoolExecutor() as pool:
        for number, examples in enumerate(pool.map(examples_of, PROGRAMS)):
            found += [one for one, _ in examples]
            labels += [fault for _, fault in examples]
            programs += [number] * len(examples)
            print(f"{number + 1} of {len(PROGRAMS)}: {sum(map(any, labels))} faulty so far")
    learn(np.array(found), np.array(labels), np.array(programs))


def examples_of(program: Program) -> list[tuple[Array, list[int]]]:
    """Features and labels of the program as it is, and with faults."""
    torch.set_num_threads(1)
    drawn = random.Random(f"{SEED} {program}")
    runs = [run(program, seed) for seed in range(ORIGINALS)]
    worst = min(reached for _, reached in runs)
    found = [(features(history), _labels("")) for history, _ in runs]
    for fault in FAULTS:
        for mutant in mutants(program, fault, drawn):
            history, reached = run(mutant, seed=len(found))
            is_faulty = not reached >= worst - HARM
            found.append((features(history), _labels(fault if is_faulty else "")))
    return found


def mutants(program: Program, fault: str, drawn: random.Random) -> Sequence[Program]:
    """The program with one fault of that kind, several times."""
    if fault == "optimizer":
        others = [name for name in OPTIMIZERS if name != program.optimizer]
        return [replace(program, optimizer=name) for name in others]
    if fault == "learning rate":
        rates = drawn.sample(RATES, MUTANTS)
        return [replace(program, rate=rate) for rate in rates]
    if fault == "activation":
        return [replace(program, last=name) for name in drawn.sample(ACTIVATIONS, MUTANTS)]
    if fault == "loss":
        others = [name for name in LOSSES if name not in (program.loss, "binary")]
        return [replace(program, loss=name) for name in drawn.sample(others, MUTANTS)]
    counts = {max(1, program.epochs // drawn.randint(4, 20)) for _ in range(MUTANTS)}
    return [replace(program, epochs=count) for count in sorted(counts)]


def run(program: Program, seed: int) -> tuple[TrainingHistory, float]:
    """What is seen of a training, and how well it does on unseen data: 1 is the best."""
    records: list[dict[str, Any]] = []
    observer = Observer(Records(on_record=records.append), Schedule(every=6))
    hooks = Hooks(observer)
    torch.manual_seed(seed)
    hooks.install()
    try:
        reached = _train(program)
        observer.end()
    finally:
        hooks.remove()
    return read_records(records), reached


def _train(program: Program) -> float:
    inputs, targets = DATA[program.data](EXAMPLES)
    unseen, unseen_targets = DATA[program.data](UNSEEN)
    model = _model(program, inputs, targets)
    optimizer = getattr(torch.optim, program.optimizer)(model.parameters(), lr=program.rate)
    loss = LOSSES[program.loss]
    reached = 0.0
    for _ in range(program.epochs):
        model.train()
        for batch in torch.randperm(len(inputs)).split(program.batch):
            optimizer.zero_grad()
            loss(model(inputs[batch]), targets[batch]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            outputs = model(unseen)
            loss(outputs, unseen_targets)
            reached = _reached(outputs, unseen_targets)
    return reached


def _reached(outputs: torch.Tensor, targets: torch.Tensor) -> float:
    """The accuracy; of numbers the share of their variance that is explained."""
    if targets.is_floating_point():
        rest = ((outputs - targets) ** 2).mean() / targets.var()
        return max(0.0, 1.0 - float(torch.nan_to_num(rest, nan=1.0)))
    predicted = (outputs[:, 0] > 0).long() if outputs.shape[1] == 1 else outputs.argmax(1)
    return float((predicted == targets).float().mean())


def _model(program: Program, inputs: torch.Tensor, targets: torch.Tensor) -> nn.Module:
    between = getattr(nn, program.between)
    layers: list[nn.Module] = []
    width = inputs.shape[1]
    if inputs.dim() == 4:
        for channels in program.hidden:
            layers += [nn.Conv2d(width, channels, 3, padding=1), between(), nn.MaxPool2d(2)]
            width = channels
        side = inputs.shape[-1] // 2 ** len(program.hidden)
        layers.append(nn.Flatten())
        width *= side * side
    else:
        for units in program.hidden:
            layers += [nn.Linear(width, units), between()]
            width = units
    if targets.is_floating_point() or program.loss == "binary":
        outputs = 1
    else:
        outputs = max(2, int(targets.max()) + 1)
    layers.append(nn.Linear(width, outputs))
    if program.last:
        kind = getattr(nn, program.last)
        layers.append(kind(dim=1) if program.last == "Softmax" else kind())
    return nn.Sequential(*layers)


# Losses take what the model gives and the targets as they are, as a mistaken choice of one would. ------


def _numbers(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    if targets.is_floating_point():
        return targets
    if outputs.shape[1] == 1:
        return targets.float().unsqueeze(1)
    return functional.one_hot(targets, outputs.shape[1]).float()


def _classes(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Numbers as classes: how people get a cross entropy to run on them."""
    if not targets.is_floating_point():
        return targets.clamp(max=outputs.shape[1] - 1)
    return (targets[:, 0] > 0).long().clamp(max=outputs.shape[1] - 1)


LOSSES: Mapping[str, Loss] = {
    "cross_entropy": lambda o, t: functional.cross_entropy(o, _classes(o, t)),
    "nll_loss": lambda o, t: functional.nll_loss(o, _classes(o, t)),
    "binary": lambda o, t: functional.binary_cross_entropy_with_logits(o, _numbers(o, t)),
    "sigmoid_twice": lambda o, t: functional.binary_cross_entropy_with_logits(
        o.sigmoid(), _numbers(o, t).clamp(0, 1)
    ),
    "mse_loss": lambda o, t: functional.mse_loss(o, _numbers(o, t)),
    "l1_loss": lambda o, t: functional.l1_loss(o, _numbers(o, t)),
    "percentage": lambda o, t: ((o - _numbers(o, t)) / _numbers(o, t).clamp(min=1e-7)).abs().mean(),
}


# Data ---------------------------------------------------------------------------------------------------


def _blobs(count: int) -> Data:
    centers = torch.tensor([[0.6, 0.2], [-0.5, 0.5], [-0.2, -0.6], [0.5, -0.5]])
    targets = torch.randint(4, (count,))
    return centers[targets] + 0.22 * torch.randn(count, 2), targets


def _rings(count: int) -> Data:
    targets = torch.randint(2, (count,))
    angle = 6.2832 * torch.rand(count)
    radius = 0.4 + 0.45 * targets + 0.07 * torch.randn(count)
    return torch.stack([angle.cos(), angle.sin()], 1) * radius.unsqueeze(1), targets


def _patterns(count: int) -> Data:
    prototypes = torch.rand(10, 64, generator=torch.Generator().manual_seed(1))
    targets = torch.randint(10, (count,))
    return (prototypes[targets] + 0.35 * torch.randn(count, 64)).clamp(0, 1), targets


def _stripes(count: int) -> Data:
    """Images of waves in one of four directions."""
    targets = torch.randint(4, (count,))
    angle = targets * 0.7854
    at = torch.linspace(-1, 1, 12)
    along = at.view(1, 1, -1) * angle.cos().view(-1, 1, 1) + at.view(1, -1, 1) * angle.sin().view(
        -1, 1, 1
    )
    image = torch.sin(9 * along + 6.2832 * torch.rand(count, 1, 1))
    return (image + 0.4 * torch.randn(count, 12, 12)).unsqueeze(1), targets


def _parity(count: int) -> Data:
    points = 2 * torch.rand(count, 2) - 1
    return points, (points[:, 0] * points[:, 1] > 0).long()


def _waves(count: int) -> Data:
    points = 2 * torch.rand(count, 3) - 1
    values = torch.sin(3 * points[:, :1]) + points[:, 1:2] * points[:, 2:]
    return points, values + 0.05 * torch.randn(count, 1)


DATA: Mapping[str, Callable[[int], Data]] = {
    "blobs": _blobs,
    "rings": _rings,
    "patterns": _patterns,
    "stripes": _stripes,
    "parity": _parity,
    "waves": _waves,
}


# Learning -----------------------------------------------------------------------------------------------


def learn(found: Array, labels: Array, programs: Array) -> None:
    """Fits the classifiers with the authors' settings; says how they do on every third program, left out."""
    part = programs % 3 == 0
    model = _fitted(found[~part], labels[~part])
    named = _named(model, found[part])
    is_right = (named == labels[part]).all(axis=1)
    is_faulty = labels[part].any(axis=1)
    hit = (named * labels[part]).any(axis=1)[is_faulty]
    quiet = ~named.any(axis=1)[~is_faulty]
    print(f"{len(found)} trainings, {int(labels.any(axis=1).sum())} faulty: {labels.sum(axis=0)}")
    print(f"left out {part.sum()}: all right {is_right.mean():.2f}, fault named {hit.mean():.2f}, "
          f"good ones left alone {quiet.mean():.2f}")  # fmt: skip
    model = _fitted(found, labels)
    model["trained_on"] = {
        "programs": len(PROGRAMS),
        "trainings": len(found),
        "faulty": dict(zip(FAULTS, labels.sum(axis=0).tolist(), strict=True)),
        "left_out": {
            "trainings": int(part.sum()),
            "fault_named": round(float(hit.mean()), 4),
            "good_left_alone": round(float(quiet.mean()), 4),
        },
    }
    TARGET.write_text(json.dumps(model, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"-> {TARGET.name}, {TARGET.stat().st_size // 1024} kB")


def _fitted(found: Array, labels: Array) -> dict[str, Any]:
    low, high = _range(found)
    values = scaled(found, low, high)
    neighbors = KNeighborsClassifier(NEIGHBORS).fit(values, labels)
    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=SEED).fit(values, labels)
    forest = RandomForestClassifier(
        TREES, max_depth=FOREST_DEPTH, max_features=FOREST_FEATURES, random_state=SEED
    ).fit(values, labels)
    model: dict[str, Any] = {
        "features": [f"{name}_{one}" for name in FEATURES for one in STATISTICS],
        "low": [float(f"{value:.6g}") for value in low],
        "high": [float(f"{value:.6g}") for value in high],
        "neighbors": {
            "count": NEIGHBORS,
            "examples": values.astype(int).tolist(),
            "labels": labels.tolist(),
        },
        "tree": _stored(tree),
        "forest": [_stored(one) for one in forest.estimators_],
    }
    _assert_alike(model, values, (neighbors, tree, forest))
    return model


def _range(found: Array) -> tuple[Array, Array]:
    """Of nine tenths of the trainings: a loss that diverged would leave no scale to the others."""
    low, high = np.quantile(found, (0.05, 0.95), axis=0)
    is_rare = low == high
    return np.where(is_rare, found.min(axis=0), low), np.where(is_rare, found.max(axis=0), high)


def _stored(tree: DecisionTreeClassifier) -> Mapping[str, Any]:
    """The nodes in the order of a walk that takes the smaller side first."""
    nodes = tree.tree_
    is_leaf = nodes.children_left < 0
    shares = (nodes.value[:, :, 1] / nodes.value.sum(axis=2) * SCALE).round().astype(int)
    return {
        "feature": np.where(is_leaf, -1, nodes.feature).tolist(),
        # Values are whole numbers: none lies between the bound and what is below it.
        "bound": np.where(is_leaf, 0, np.floor(nodes.threshold)).astype(int).tolist(),
        "other": np.where(is_leaf, 0, nodes.children_right).tolist(),
        "share": [one if leaf else [] for one, leaf in zip(shares.tolist(), is_leaf, strict=True)],
    }


def _assert_alike(model: Mapping[str, Any], values: Array, fitted: Sequence[Any]) -> None:
    """What the package reads answers as what was fitted, but for ties of neighbors."""
    read = classifiers_of(model)
    for one, by_sklearn in list(zip(read, fitted, strict=True))[1:]:
        ours = np.array([one.predict(row) for row in values])
        assert (ours != by_sklearn.predict(values)).mean() < 0.005


def _named(model: Mapping[str, Any], found: Array) -> Array:
    """What any classifier names, (trainings, faults)."""
    values = scaled(found, np.array(model["low"]), np.array(model["high"]))
    read = classifiers_of(model)
    return np.array([np.any([one.predict(row) for one in read], axis=0) for row in values])


def _labels(fault: str) -> list[int]:
    return [int(name == fault) for name in FAULTS]


if __name__ == "__main__":
    main()
