"""The symptoms: what is seen in a training, whatever fault causes it.

Each has a function that reads only numbers and returns a sign or None; `SYMPTOMS` gives it a word, a confidence and the curve
to show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from epochzero.run.watch.faults._signals import (
    LossCourse,
    classes,
    course,
    does_well,
    evaluations,
    gradient_ratio,
    overfits,
    ratios,
    relative_updates,
    saturation,
    train_accuracy,
    weights,
)
from epochzero.run.watch.faults._table import Row, Sign
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import Record, Series, TrainingHistory
from epochzero.run.watch.lines.layers import activation_place
from epochzero.run.watch.lines.settings import place_of

# -- The course of the loss --------------------------------------------------------------------

_CONSTANT_LOSS = 100
"""Iterations: a warm-up, and fine-tuning at a small rate, begin with tens of them at the same loss."""
_DIVERGED = 1.5
_UNDERFITTING_LEAST = 60
_NAN_SOURCES = {
    "LogBackward0": ("self", "the logarithm of zero or less"),
    "Log2Backward0": ("self", "the logarithm of zero or less"),
    "Log10Backward0": ("self", "the logarithm of zero or less"),
    "Log1PBackward0": ("self", "the logarithm of zero or less"),
    "DivBackward0": ("other", "a division by zero"),
    "SqrtBackward0": ("result", "the root of zero or less"),
    "RsqrtBackward0": ("result", "the root of zero or less"),
    "ExpBackward0": ("result", "an exponential that overflows"),
    "PowBackward0": ("self", "a power that overflows, or a root of less than zero"),
    "AcosBackward0": ("self", "an angle out of range"),
}


def _of_loss(found: LossCourse, text: str) -> Sign:
    return Sign(text, evidence={"first loss": found.start, "last loss": found.end})


def _loss_not_falling(history: TrainingHistory) -> Sign | None:
    found = course(history)
    if found is None or found.count < _CONSTANT_LOSS or not found.finite or abs(found.fall) > 0.03:
        return None
    text = (
        f"The loss was {found.start:.4g} and is {found.end:.4g} after {history.count} iterations."
    )
    return _of_loss(found, text)


def _loss_rising(history: TrainingHistory) -> Sign | None:
    found = course(history)
    if found is None or found.count < 20 or found.rise <= 0.1 * abs(found.start):
        return None
    text = (
        f"The loss was {found.start:.4g} and is {found.end:.4g} after {history.count} iterations."
    )
    return _of_loss(found, text)


def _loss_oscillating(history: TrainingHistory) -> Sign | None:
    """The loss jumps by more than it falls."""
    found = course(history)
    if found is None or found.count < 30 or found.roughness < 0.35 or does_well(history):
        return None
    change = percent(found.roughness)
    return _of_loss(
        found, f"The loss changes by {change} of its value from one iteration to the next."
    )


def _loss_plateau(history: TrainingHistory) -> Sign | None:
    """The loss stops falling far from what could be reached."""
    found = course(history)
    if found is None or found.count < 60 or not 0.03 < found.fall < 0.6:
        return None
    if found.slope > 0.05 or does_well(history):
        return None
    return _of_loss(
        found, f"The loss decreased by {percent(found.fall)} and then stayed at {found.end:.4g}."
    )


def _loss_vanishing(history: TrainingHistory) -> Sign | None:
    found = course(history)
    if found is None or found.count < 30 or not abs(found.end) < 1e-4 * max(abs(found.first), 1e-3):
        return None
    text = f"The loss has decreased from {found.first:.4g} to {found.end:.2g}."
    return Sign(text, evidence={"first loss": found.first, "last loss": found.end})


def _slow_learning(history: TrainingHistory) -> Sign | None:
    found = course(history)
    if found is None or found.count < 60 or not 0.005 < found.fall < 0.3 or found.slope < 0.1:
        return None
    return _of_loss(
        found,
        f"After {history.count} iterations the loss has decreased by only {percent(found.fall)} and is "
        "still decreasing.",
    )


def _loss_not_a_number(history: TrainingHistory) -> Sign | None:
    """The first loss that is no number, and what the operators before it had saved."""
    loss = history.loss
    bad = ~np.isfinite(loss[:, 1]) if len(loss) else np.empty(0, bool)
    if not bad.any() and not history.nonfinite:
        return None
    since = (
        int(loss[int(np.argmax(bad)), 0]) if bad.any() else int(history.nonfinite[0]["iteration"])
    )
    record = next(iter(history.nonfinite), None)
    source = _nan_source(record) if record else ""
    return Sign(
        f"The loss is not finite from iteration {since} on{source}.",
        since=since,
        place=place_of(record) if record else None,
    )


def _nan_source(record: Record) -> str:
    for operator in record.get("operators", ()):
        name = operator["operator"]
        saved, words = _NAN_SOURCES.get(name, ("", ""))
        values = operator["saved"].get(saved)
        if values and (values["zeros"] or values["negative"] or values["nonfinite"]):
            return f": the first operator that produces it is {words} ({name.removesuffix('Backward0').lower()})"
    return ""


def _overfitting(history: TrainingHistory) -> Sign | None:
    gap = overfits(history)
    return (
        Sign(f"{gap.text[0].upper()}{gap.text[1:]}", since=gap.since) if gap is not None else None
    )


def _underfitting(history: TrainingHistory) -> Sign | None:
    """The accuracy on training data is hardly better than always saying the most frequent class."""
    accuracy, shares = train_accuracy(history), classes(history)
    if accuracy is None or not shares or history.count < _UNDERFITTING_LEAST:
        return None
    most = max(shares.values())
    if not accuracy < most + 0.25 * (1 - most):
        return None
    return Sign(
        f"{percent(accuracy)} of the training examples are classified correctly; always predicting the "
        f"most frequent class would reach {percent(most)}."
    )


def _validation_diverging(history: TrainingHistory) -> Sign | None:
    """An evaluation loss that has grown since its best, while the training loss has fallen."""
    found = course(history)
    losses = [(ev.iteration, ev.loss) for ev in evaluations(history) if ev.loss is not None]
    if found is None or len(losses) < 3 or found.fall < 0.1:
        return None
    since, best = min(losses, key=lambda pair: pair[1])
    # A loss that is NaN has not diverged: it is reported as such.
    if not losses[-1][1] > _DIVERGED * best or since >= losses[-1][0]:
        return None
    return Sign(
        f"The evaluation loss was {best:.4g} at iteration {since} and is {losses[-1][1]:.4g}; the "
        f"training loss has decreased by {percent(found.fall)}.",
        since=since,
    )


# -- Gradients, weights and updates ------------------------------------------------------------

_HUGE_GRADIENT = 1e3
_VANISHED_RATIO = 0.005
_LARGE_UPDATE, _SMALL_UPDATE = 0.3, 1e-5


def _of_parameter(history: TrainingHistory, name: str, text: str, since: int = 0) -> Sign:
    path = name.rpartition(".")[0]
    layer = history.layer(path)
    return Sign(text, layer.place if layer else None, since, path)


def _exploding_gradient(history: TrainingHistory) -> Sign | None:
    for iteration in history.iterations:
        for name, of in iteration.parameters.items():
            gradient = of.get("gradient", {})
            if gradient.get("nonfinite", 0) > 0 or gradient.get("rms", 0.0) > _HUGE_GRADIENT:
                size = "not finite" if gradient.get("nonfinite") else f"{gradient['rms']:.2g}"
                text = f"The gradient of {name} is {size} at iteration {iteration.number}."
                return _of_parameter(history, name, text, iteration.number)
    return None


def _vanishing_gradient(history: TrainingHistory) -> Sign | None:
    """The gradient of the first layer compared with that of the last."""
    ratio = gradient_ratio(history)
    if ratio is None or ratio > _VANISHED_RATIO or does_well(history):
        return None
    first = next(iter(weights(history)))
    layer = history.layer(first.layer)
    text = f"The gradient of {first.name} is {ratio:.1e} of that of the last layer."
    return Sign(text, layer=first.layer, place=layer.place if layer else None)


def _weights_unchanged(history: TrainingHistory) -> Sign | None:
    # The largest of each: where gradients are gathered, most iterations have no step.
    series = [ratios(history, weight.name) for weight in weights(history)]
    updates = [float(np.nanmax(array[:, 1])) for array in series if len(array) >= 3]
    if len(history.iterations) < 5 or not updates or max(updates) > 1e-9:
        return None
    return Sign(f"None of {len(history.iterations)} sampled steps has changed a weight.")


def _updates_too_large(history: TrainingHistory) -> Sign | None:
    updates = relative_updates(history)
    name = max(updates, key=lambda name: updates[name], default="")
    if not name or updates[name] < _LARGE_UPDATE or does_well(history):
        return None
    text = f"A step changes {name} by {percent(updates[name])} of its size."
    return _of_parameter(history, name, text)


def _updates_too_small(history: TrainingHistory) -> Sign | None:
    most = max(relative_updates(history).values(), default=1.0)
    if most > _SMALL_UPDATE or most <= 1e-9 or does_well(history):
        return None
    return Sign(f"No step changes a weight by more than {most:.1e} of its size.")


# -- Outputs of layers -------------------------------------------------------------------------

_DEAD_SHARE, _SATURATED_SHARE = 0.5, 0.6
_PLACES = 8
_LAST_OUTPUTS = 5


def _of_activation(history: TrainingHistory, path: str, text: str, since: int = 0) -> Sign:
    place = activation_place(history.layer(path), path)
    return Sign(text, place, since, path.partition(":")[0])


def _activation_not_finite(history: TrainingHistory) -> Sign | None:
    """The first layer in the order of calls, at the first iteration where one does."""
    for iteration in history.iterations:
        for path, _ in history.order:
            share = iteration.layers.get(path, {}).get("nonfinite", 0.0)
            if share > 0:
                text = (
                    f"{path} is the first layer whose output is not finite ({percent(share)} of its "
                    f"values) at iteration {iteration.number}."
                )
                return _of_activation(history, path, text, iteration.number)
    return None


def _constant_output(history: TrainingHistory) -> Sign | None:
    """How much what the loss is given differs between the examples of a batch."""
    seen = [it for it in history.iterations if it.output.get("between_examples") is not None]
    last = seen[-_LAST_OUTPUTS:]
    if len(last) < _LAST_OUTPUTS or any(it.output["between_examples"] > 1e-4 for it in last):
        return None
    text = f"The model returns {last[-1].output['mean']:.3g} for all examples of a batch."
    return Sign(text, since=last[0].number)


def _dead_units(history: TrainingHistory) -> Sign | None:
    """The share of units that are constant over a batch, after each activation, at the end."""
    if does_well(history):
        return None
    for path, kind in history.order:
        if not kind.lower().startswith(("relu", "leaky", "elu", "gelu", "hard", "sigmoid", "tanh")):
            continue
        series = _constant_shares(history, path)
        if len(series) >= 3 and float(np.median(series[-3:, 1])) > _DEAD_SHARE:
            since = int(series[int(np.argmax(series[:, 1] > _DEAD_SHARE)), 0])
            text = f"{percent(series[-1, 1])} of the units of {path} have the same output for all examples."
            return _of_activation(history, path, text, since)
    return None


def _constant_shares(history: TrainingHistory, path: str) -> Series:
    """The share of constant units over the iterations whose batch has enough positions.

    A unit of a live ReLU is silent for half of the examples: over one of them each unit is constant.
    """
    found = [
        (iteration.number, layer["constant"])
        for iteration in history.iterations
        if (layer := iteration.layers.get(path))
        and "constant" in layer
        and _places(layer["shape"]) >= _PLACES
    ]
    return np.array(found, dtype=float).reshape(-1, 2)


def _places(shape: Sequence[int]) -> int:
    """How many values each unit has: examples, and of images or sequences their places."""
    if len(shape) < 2:
        return 1
    unit = shape[-1] if len(shape) == 3 else shape[1]
    return math.prod(shape) // max(1, unit)


def _saturated_units(history: TrainingHistory) -> Sign | None:
    """Of sigmoids and the like within the model, the share at their ends."""
    if does_well(history):
        return None
    for path, kind in history.order[:-1]:
        is_bounded = kind.lower() in ("sigmoid", "tanh", "hardtanh")
        share = saturation(history, path) if is_bounded else 0.0
        if share > _SATURATED_SHARE:
            text = (
                f"{percent(share)} of the outputs of {path} are in the saturated range of {kind}."
            )
            return _of_activation(history, path, text)
    return None


SYMPTOMS: Sequence[Row] = (
    Row("activation_not_finite", _activation_not_finite, 0.9),
    Row("constant_output", _constant_output, 0.75),
    Row("dead_units", _dead_units, 0.65, series="constant"),
    Row("exploding_gradient", _exploding_gradient, 0.75, series="gradient"),
    Row("loss_not_a_number", _loss_not_a_number, 0.99, series="loss"),
    Row("loss_not_falling", _loss_not_falling, 0.8, series="loss"),
    Row("loss_oscillating", _loss_oscillating, 0.6, series="loss"),
    Row("loss_plateau", _loss_plateau, 0.6, series="loss"),
    Row("loss_rising", _loss_rising, 0.8, series="loss"),
    Row("loss_vanishing", _loss_vanishing, 0.5, series="loss"),
    Row("overfitting", _overfitting, 0.7, series="loss"),
    Row("saturated_units", _saturated_units, 0.6, series="saturated"),
    Row("slow_learning", _slow_learning, 0.6, series="loss"),
    Row("underfitting", _underfitting, 0.65),
    Row("updates_too_large", _updates_too_large, 0.6, series="update"),
    Row("updates_too_small", _updates_too_small, 0.6, series="update"),
    Row("validation_diverging", _validation_diverging, 0.7, series="loss"),
    Row("vanishing_gradient", _vanishing_gradient, 0.65, series="gradient"),
    Row("weights_unchanged", _weights_unchanged, 0.85, series="update"),
)
"""All symptoms."""
