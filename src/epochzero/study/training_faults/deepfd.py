"""DeepFD: which of five kinds of faults a training has, by classifiers of its run-time features.

Cao, Li, Chen, Wen, Tian, Wu, Cheung: "DeepFD: Automated Fault Diagnosis and Localization for Deep Learning Programs",
ICSE 2022 (arXiv 2205.01938); thresholds and settings are those of the program that the authors published. Twenty
features of the training are each summarized by eight statistics. K nearest neighbors, a decision tree and a random
forest, trained on programs with injected faults, each predict the faults; every predicted fault is reported with the
line that sets the value.

Departures from the publication:

- Features are recorded once per epoch, from its last sampled iteration.
- Mean and standard deviation of weights are not recorded: root mean square and largest value are used to detect
  whether they change.
- If batches provide no accuracy, that of the evaluation is used. A training without classes has accuracy 0, as in a
  Keras program without that metric.
- The classifiers are trained on our own programs (``bench/train_deepfd.py``), with one fault at a time. A program
  counts as faulty if it does worse than each of four runs without the fault; the authors use a statistical test over
  twenty.
- Values are scaled by the range of nine tenths of the training programs and clipped there; the authors scale by the
  range of the programs under diagnosis, which a single program does not have.
- "Learning rate" has two words in our taxonomy: it is too high if a usual step is more than a thousandth of the
  weight.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from epochzero.run.watch.faults._signals import first_accuracy
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult
from epochzero.study.training_faults.classifiers import SCALE, Array, Forest, Neighbors
from epochzero.study.training_faults.training_view import Epoch, epochs, layers

FAULTS = ("optimizer", "learning rate", "activation", "loss", "epochs")
STATISTICS = ("mean", "std", "skew", "median", "var", "sem", "max", "min")
FEATURES = tuple(
    """
    loss acc val_loss val_acc nan_loss nan_acc nan_weight nan_gradient large_weight decrease_acc
    increase_loss cons_mean_weight cons_std_weight gap_train_test test_turn_bad slow_converge
    oscillating_loss dying_relu gradient_vanish gradient_explosion
    """.split()
)
_FIXES = {
    "optimizer": "Change the optimizer.",
    "learning rate": "Change the learning rate.",
    "activation": "Change the activation function of the last layer.",
    "loss": "Change the loss function.",
    "epochs": "Change the number of epochs.",
}

LARGE_LOSS, LARGE_WEIGHT = 1e5, 5.0
JUDGED = 0.3
"""Symptoms of the curves are searched for after this share of the training."""
VANISHED_RATIO, VANISHED_NORM, EXPLODED_RATIO = 1e-3, 1e-4, 70.0
DEAD = 0.7
JUMP, JUMPS = 0.03, 0.2
"""A swing of the accuracy, and the share of epochs with one from which the training is unstable."""
SLOW, CHANGED = 0.01, 0.01
USUAL_STEP = 1e-3


def find(history: TrainingHistory) -> WatchResult:
    """Return the fault that most classifiers predict as the root, and the others that they predict."""
    if not history.iterations:
        return WatchResult(history.count)
    votes = _votes(features(history))
    named = sorted(zip(votes, FAULTS, strict=True), key=lambda pair: -pair[0])
    found = [_finding(history, fault, int(count)) for count, fault in named if count]
    return WatchResult(history.count, found[0] if found else None, others=tuple(found[1:]))


def features(history: TrainingHistory) -> Array:
    """Return `STATISTICS` of each of `FEATURES` over the epochs, (160,); missing values are 0."""
    monitor = _Monitor(history)
    rows = [monitor.row(epoch) for epoch in epochs(history)]
    if not rows:
        return np.zeros(len(FEATURES) * len(STATISTICS))
    table = np.array([[row[name] for name in FEATURES] for row in rows], dtype=float)
    with np.errstate(all="ignore"):
        found = np.concatenate([_statistics(column) for column in table.T])
    return np.where(np.isfinite(found), found, 0.0)


def _statistics(values: Array) -> Array:
    n = len(values)
    mean = values.mean()
    spread = values.std(ddof=1) if n > 1 else 0.0
    moments = [((values - mean) ** power).mean() for power in (2, 3)]
    # The unbiased skewness requires three values.
    skew = 0.0
    if n > 2 and moments[0] > 0:
        skew = moments[1] / moments[0] ** 1.5 * math.sqrt(n * (n - 1)) / (n - 2)
    return np.array(
        [mean, spread, skew, np.median(values), spread**2, spread / math.sqrt(n), values.max(),
         values.min()]
    )  # fmt: skip


class _Monitor:
    """Counts observations per epoch; counts accumulate over the training."""

    def __init__(self, history: TrainingHistory) -> None:
        self._total = len(epochs(history))
        self._weights = [of.weight for of in layers(history) if of.trained and of.weight]
        self._sizes = {of.name: math.prod(of.shape) for of in history.parameters}
        self._counts = dict.fromkeys(FEATURES, 0.0)
        self._curves: dict[str, list[float]] = {name: [] for name in FEATURES[:4]}
        self._last: Mapping[str, Mapping[str, float]] = {}

    def row(self, epoch: Epoch) -> Mapping[str, float]:
        """Return the features after an epoch."""
        evaluation = epoch.evaluation
        reached = first_accuracy(evaluation) if evaluation else None
        trained = epoch.accuracy if epoch.accuracy is not None else reached
        values = (epoch.loss, trained, evaluation.loss if evaluation else None, reached)
        for name, value in zip(FEATURES[:4], values, strict=True):
            self._curves[name].append(value if value is not None else 0.0)
            self._counts[name] = self._curves[name][-1]
        self._look_at_gradients(epoch)
        self._look_at_weights(epoch)
        self._look_at_curves()
        return dict(self._counts)

    def _look_at_gradients(self, epoch: Epoch) -> None:
        by_parameter = epoch.looks[-1].parameters
        seen = {name: r["gradient"] for name, r in by_parameter.items() if r.get("gradient")}
        if any(record["nonfinite"] for record in seen.values()):
            self._counts["nan_gradient"] = 1.0
            return
        known = [name for name in self._weights if name in seen]
        norms = [seen[name]["rms"] * math.sqrt(self._sizes[name]) for name in known]
        if not norms:
            return
        ratio = norms[0] / norms[-1] if norms[-1] else math.nan
        self._counts["gradient_vanish"] += ratio < VANISHED_RATIO and norms[0] < VANISHED_NORM
        self._counts["gradient_explosion"] += ratio > EXPLODED_RATIO
        zeros = sum(record["zeros"] * self._sizes.get(name, 0) for name, record in seen.items())
        all_of_them = sum(self._sizes.get(name, 0) for name in seen)
        self._counts["dying_relu"] += zeros >= DEAD * all_of_them

    def _look_at_weights(self, epoch: Epoch) -> None:
        by_parameter = epoch.looks[-1].parameters
        seen = {name: r["weight"] for name, r in by_parameter.items() if r.get("weight")}
        last, self._last = self._last, seen
        if any(record["nonfinite"] for record in seen.values()):
            self._counts["nan_weight"] = 1.0
            return
        self._counts["large_weight"] += any(r["largest"] > LARGE_WEIGHT for r in seen.values())
        for name in seen.keys() & last.keys():
            self._counts["cons_mean_weight"] += seen[name]["rms"] == last[name]["rms"]
            self._counts["cons_std_weight"] += seen[name]["largest"] == last[name]["largest"]

    def _look_at_curves(self) -> None:
        loss, accuracy, unseen_loss, unseen_accuracy = self._curves.values()
        if not np.isfinite([*loss, *unseen_loss]).all() or unseen_loss[-1] >= LARGE_LOSS:
            self._counts["nan_loss"] += 1
            return
        if len(loss) < JUDGED * self._total:
            return
        gap = accuracy[-1] - unseen_accuracy[-1]
        self._counts["gap_train_test"] += gap >= (0.1 if accuracy[-1] <= 0.9 else 0.07)
        if _is_unstable(accuracy):
            self._counts["oscillating_loss"] = 1.0
        if max(_most_gained(accuracy), _most_gained(unseen_accuracy)) < SLOW:
            self._counts["slow_converge"] = 1.0
        if len(loss) < 2:
            return
        self._counts["test_turn_bad"] = float(
            loss[-1] - loss[-2] < -CHANGED and unseen_loss[-1] - unseen_loss[-2] > CHANGED
        )
        self._counts["increase_loss"] += loss[-1] > loss[-2]
        self._counts["decrease_acc"] += accuracy[-1] < accuracy[-2]


def _is_unstable(accuracy: Sequence[float]) -> bool:
    """Whether the accuracy swings often."""
    inner = range(1, len(accuracy) - 1)
    tops = [accuracy[i] for i in inner if accuracy[i] >= max(accuracy[i - 1], accuracy[i + 1])]
    lows = [accuracy[i] for i in inner if accuracy[i] <= min(accuracy[i - 1], accuracy[i + 1])]
    swings = sum(top - low >= JUMP for top, low in zip(tops, lows, strict=False))
    return swings >= JUMPS * len(accuracy)


def _most_gained(curve: Sequence[float]) -> float:
    return max((after - before for before, after in pairwise(curve)), default=0)


@cache
def _trained() -> Mapping[str, Any]:
    text = files(__package__).joinpath("deepfd.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def scaled(values: Array, low: Array, high: Array) -> Array:
    """Scale features by the range of the training programs to integers from 0 to `SCALE`."""
    of_range = (values - low) / np.where(high > low, high - low, np.inf)
    return np.asarray((np.clip(of_range, 0.0, 1.0) * SCALE).round())


def classifiers_of(model: Mapping[str, Any]) -> tuple[Neighbors | Forest, ...]:
    """Return the three classifiers of a trained model."""
    trees = (Forest.of(of) for of in ([model["tree"]], model["forest"]))
    return (Neighbors.of(model["neighbors"]), *trees)


def _votes(values: Array) -> Array:
    """Return how many classifiers predict each fault, (5,)."""
    model = _trained()
    of_range = scaled(values, np.array(model["low"]), np.array(model["high"]))
    return np.asarray(np.sum([value.predict(of_range) for value in classifiers_of(model)], axis=0))


def _finding(history: TrainingHistory, fault: str, votes: int) -> TrainingFinding:
    word, layer, place = _localized(history, fault)
    return TrainingFinding(
        word,
        0,
        f"Fault in the {fault}: named by {votes} of 3 classifiers.",
        layer=layer,
        place=place,
        confidence=votes / 3,
        fix=_FIXES[fault],
        evidence={"classifiers": float(votes)},
    )


def _localized(history: TrainingHistory, fault: str) -> tuple[str, str, SourceLine | None]:
    """Return word, layer and line of a fault."""
    made = place_of(history.optimizers[0]) if history.optimizers else None
    if fault == "optimizer":
        return "optimizer_wrong", "", made
    if fault == "learning rate":
        word = "learning_rate_too_low" if _step(history) <= USUAL_STEP else "learning_rate_too_high"
        return word, "", setting_place(made, "lr", 1)
    if fault == "activation":
        last = next(reversed(layers(history)), None)
        return "last_activation_wrong", last.name if last else "", last.place if last else None
    if fault == "loss":
        return "loss_wrong", "", place_of(history.losses[0]) if history.losses else None
    return "epochs_too_few", "", None


def _step(history: TrainingHistory) -> float:
    """Return the usual size of an update relative to its weight."""
    found = [
        statistics["update"]["rms"] / statistics["weight"]["rms"]
        for look in history.iterations
        for statistics in look.parameters.values()
        if statistics.get("update") and statistics["weight"]["rms"] > 0
    ]
    return float(np.median(found)) if found else 0.0
