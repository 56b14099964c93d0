"""What comes out of the last layer is not what the loss expects, or cannot reach the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well, judged
from epochzero.run.watch.history import Iteration, TrainingHistory
from epochzero.run.watch.lines.layers import output_place
from epochzero.run.watch.model import TrainingFinding

_BOUNDED = ("Sigmoid", "sigmoid", "Tanh", "tanh", "Softmax", "softmax", "ReLU", "relu",
            "Hardtanh", "hardtanh", "ReLU6", "relu6", "Softsign", "LogSigmoid")  # fmt: skip
_OF_PROBABILITIES = (
    "SparseCategoricalCrossentropy", "CategoricalCrossentropy", "binary_cross_entropy",
)  # fmt: skip
_ROUNDED = 5e-3
"""How far probabilities in bfloat16 add up to something else than 1: each is off by 1/256 of itself at most."""


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The output that the loss receives, compared with the loss function and the labels."""
    yield from _logarithm_of_no_probability(history)
    looked = [iteration for iteration in judged(history) if iteration.target]
    if len(looked) < 3:
        return
    function = looked[0].loss_function
    low = min(iteration.output["min"] for iteration in looked)
    high = max(iteration.output["max"] for iteration in looked)
    path, kind = _last(history)
    if function == "cross_entropy":
        yield from _of_classes(history, looked, low, path, kind)
    elif kind.lower() == "softmax" and looked[0].output["shape"][-1:] == [1]:
        yield _finding(
            history, path, "A softmax over one value is always 1.", 0.93,
            "End the model with a sigmoid, or use one output per class.",
        )  # fmt: skip
    elif function in _OF_PROBABILITIES and (low < -1e-4 or high > 1 + 1e-4):
        yield _finding(
            history, path, f"{function} expects probabilities, but receives values from {low:.3g} to {high:.3g}.", 0.9, "End the model with softmax (sigmoid for two classes), or pass from_logits=True to the loss.",
        )  # fmt: skip
    elif function == "binary_cross_entropy_with_logits" and low >= 0 and high <= 1:
        if kind.lower() in ("sigmoid", "softmax") or high - low < 0.999:
            yield _finding(
                history, path, f"The loss applies a sigmoid itself, but receives probabilities ({low:.2g} to {high:.2g}).", 0.9 if kind.lower() in ("sigmoid", "softmax") else 0.5,
                "Remove the sigmoid from the model.",
            )  # fmt: skip
    elif function in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        yield from _of_numbers(history, looked, low, high, path, kind)


def _logarithm_of_no_probability(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A loss that is no number, since it takes the logarithm of what may be zero or less."""
    path, kind = _last(history)
    for record in history.nonfinite:
        for operator in record.get("operators", ()):
            values = operator["saved"].get("self", {})
            logs = operator["operator"] in ("LogBackward0", "Log2Backward0", "Log10Backward0")
            if (
                logs
                and (values.get("negative") or values.get("zeros"))
                and kind.lower() not in ("softmax", "sigmoid")
            ):
                yield _finding(
                    history, path, "The loss takes the logarithm of the output, which is zero or less: "
                    f"{values['min']:.3g}.", 0.84,
                    "End the model with softmax or sigmoid, or better, use cross_entropy on its logits.",
                )  # fmt: skip
                return


def _of_classes(
    history: TrainingHistory, looked: list[Iteration], low: float, path: str, kind: str
) -> Iterable[TrainingFinding]:
    sums = [iteration.output for iteration in looked if "sums" in iteration.output]
    if (
        sums
        and low >= 0
        and all(abs(o["sums"] - 1) < _ROUNDED and o["sums_spread"] < _ROUNDED for o in sums)
    ):
        yield _finding(
            history, path, "cross_entropy applies softmax itself, but receives probabilities: the rows add up to 1.", 0.95, "Remove the softmax from the model, or use log_softmax and nll_loss.",
        )  # fmt: skip
    elif kind.lower() in ("relu", "relu6", "sigmoid", "hardtanh", "tanh", "softplus"):
        zeros = max(iteration.output.get("zeros", 0.0) for iteration in looked)
        certain = 0.86 if kind.lower() != "relu" or zeros > 0.2 else 0.6
        yield _finding(
            history, path, f"The logits for cross_entropy pass through {kind.lower()}, which restricts their range ({low:.2g} "
"and more).",
            certain - (0.45 if does_well(history) else 0.0), "Remove the activation after the last layer.",
        )  # fmt: skip


def _of_numbers(
    history: TrainingHistory, looked: list[Iteration], low: float, high: float, path: str, kind: str
) -> Iterable[TrainingFinding]:
    least = min(iteration.target["min"] for iteration in looked)
    most = max(iteration.target["max"] for iteration in looked)
    span = max(most - least, 1e-12)
    bounds = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "relu": (0.0, math.inf), "softmax": (0.0, 1.0),
              "hardtanh": (-1.0, 1.0), "relu6": (0.0, 6.0)}.get(kind.lower())  # fmt: skip
    if bounds is None or not kind or does_well(history):
        return
    # What is scaled after its activation can reach more.
    if low < bounds[0] - 0.01 * span or high > bounds[1] + 0.01 * span:
        return
    below, above = (bounds[0] - least) / span, (most - bounds[1]) / span
    if max(below, above) > 0.05:
        yield _finding(
            history, path, f"Targets range from {least:.3g} to {most:.3g}, but the final {kind.lower()} can only return "
f"{low:.3g} to {high:.3g}.", 0.9, "Remove the last activation for regression.",
        )  # fmt: skip


def _last(history: TrainingHistory) -> tuple[str, str]:
    """The last layer or function of a forward pass, when it is an activation; else empty."""
    for path, kind in reversed(history.order):
        if kind in _BOUNDED:
            return path, kind
        if not kind.startswith(("Flatten", "Unflatten", "Identity", "Dropout")):
            break
    return "", ""


def _finding(
    history: TrainingHistory, path: str, text: str, confidence: float, fix: str
) -> TrainingFinding:
    place = output_place(history, path)
    layer = history.layer(path) if path else None
    if layer is None:
        path = next((p for p, _ in reversed(history.order) if ":" not in p), "")
        layer = history.layer(path)
    return TrainingFinding(
        "last_activation_wrong", 0, text, layer=path.partition(":")[0],
        place=place, confidence=confidence, fix=fix,
    )  # fmt: skip
