"""The symptoms: what is seen in a training, whatever fault causes it.

Each has a function that reads only numbers and returns a sign or None; `SYMPTOMS` gives it a word, a confidence and the curve
to show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
from epochzero.run.watch.faults._table import Row, Search, Sign, percent
from epochzero.run.watch.history import Record, Series, TrainingHistory
from epochzero.run.watch.lines.layers import activation_place
from epochzero.run.watch.lines.settings import place_of

# -- The course of the loss --------------------------------------------------------------------

_CONSTANT_LOSS = 100
"""Iterations: a warm-up, and fine-tuning at a small rate, begin with tens of them at the same loss."""
_DIVERGED = 1.5
_UNDERFITTING_LEAST = 60
_LOGARITHM = ("self", "the logarithm of zero or less")
_ROOT = ("result", "the root of zero or less")
_NAN_SOURCES = {
    "Log": _LOGARITHM, "Log2": _LOGARITHM, "Log10": _LOGARITHM, "Log1P": _LOGARITHM, "Sqrt": _ROOT, "Rsqrt": _ROOT,
    "Div": ("other", "a division by zero"), "Exp": ("result", "an exponential that overflows"),
    "Pow": ("self", "a power that overflows, or a root of less than zero"), "Acos": ("self", "an angle out of range"),
}  # fmt: skip


def _in_course(
    least: int,
    test: Callable[[LossCourse], bool],
    text: Callable[[LossCourse, int], str],
    *,
    unless_well: bool = False,
) -> Search:
    """The search for a course of the loss, of at least so many values."""

    def search(history: TrainingHistory) -> Sign | None:
        found = course(history)
        if found is None or found.count < least or not test(found):
            return None
        if unless_well and does_well(history):
            return None
        evidence = {"first loss": found.start, "last loss": found.end}
        return Sign(text(found, history.count), evidence=evidence)

    return search


def _was_and_is(found: LossCourse, count: int) -> str:
    return f"The loss was {found.start:.4g} and is {found.end:.4g} after {count} iterations."


def _loss_vanishing(history: TrainingHistory) -> Sign | None:
    found = course(history)
    if found is None or found.count < 30 or not abs(found.end) < 1e-4 * max(abs(found.first), 1e-3):
        return None
    text = f"The loss has decreased from {found.first:.4g} to {found.end:.2g}."
    return Sign(text, evidence={"first loss": found.first, "last loss": found.end})


def _loss_not_a_number(history: TrainingHistory) -> Sign | None:
    """The first loss that is no number, and what the operators before it had saved."""
    loss = history.loss
    bad = ~np.isfinite(loss[:, 1]) if len(loss) else np.empty(0, bool)
    if not bad.any() and not history.nonfinite:
        return None
    first = loss[int(np.argmax(bad)), 0] if bad.any() else history.nonfinite[0]["iteration"]
    record = next(iter(history.nonfinite), None)
    text = f"The loss is not finite from iteration {int(first)} on{_nan_source(record) if record else ''}."
    return Sign(text, place_of(record) if record else None, int(first))


def _nan_source(record: Record) -> str:
    for operator in record.get("operators", ()):
        name = operator["operator"].removesuffix("Backward0")
        saved, words = _NAN_SOURCES.get(name, ("", ""))
        values = operator["saved"].get(saved)
        if values and (values["zeros"] or values["negative"] or values["nonfinite"]):
            return f": the first operator that produces it is {words} ({name.lower()})"
    return ""


def _overfitting(history: TrainingHistory) -> Sign | None:
    gap = overfits(history)
    return Sign(f"{gap.text[0].upper()}{gap.text[1:]}", since=gap.since) if gap else None


def _underfitting(history: TrainingHistory) -> Sign | None:
    """The accuracy on training data is hardly better than always saying the most frequent class."""
    accuracy, shares = train_accuracy(history), classes(history)
    if accuracy is None or not shares or history.count < _UNDERFITTING_LEAST:
        return None
    most = max(shares.values())
    if not accuracy < most + 0.25 * (1 - most):
        return None
    return Sign(
        f"{percent(accuracy)} of the training examples are classified correctly; always predicting the most frequent class would reach "
        f"{percent(most)}."
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
    first = next(iter(weights(history))).name
    text = f"The gradient of {first} is {ratio:.1e} of that of the last layer."
    return _of_parameter(history, first, text)


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
    Row("loss_not_falling", _in_course(_CONSTANT_LOSS, lambda loss: loss.finite and not abs(loss.fall) > 0.03, _was_and_is), 0.8, series="loss"),
    Row("loss_oscillating", _in_course(30, lambda loss: not loss.roughness < 0.35, lambda loss, _:
        f"The loss changes by {percent(loss.roughness)} of its value from one iteration to the next.", unless_well=True), 0.6, series="loss"),
    # The loss stops falling far from what could be reached.
    Row("loss_plateau", _in_course(60, lambda loss: 0.03 < loss.fall < 0.6 and not loss.slope > 0.05, lambda loss, _:
        f"The loss decreased by {percent(loss.fall)} and then stayed at {loss.end:.4g}.", unless_well=True), 0.6, series="loss"),
    Row("loss_rising", _in_course(20, lambda loss: not loss.rise <= 0.1 * abs(loss.start), _was_and_is), 0.8, series="loss"),
    Row("loss_vanishing", _loss_vanishing, 0.5, series="loss"),
    Row("overfitting", _overfitting, 0.7, series="loss"),
    Row("saturated_units", _saturated_units, 0.6, series="saturated"),
    Row("slow_learning", _in_course(60, lambda loss: 0.005 < loss.fall < 0.3 and not loss.slope < 0.1, lambda loss, count:
        f"After {count} iterations the loss has decreased by only {percent(loss.fall)} and is still decreasing."), 0.6, series="loss"),
    Row("underfitting", _underfitting, 0.65),
    Row("updates_too_large", _updates_too_large, 0.6, series="update"),
    Row("updates_too_small", _updates_too_small, 0.6, series="update"),
    Row("validation_diverging", _validation_diverging, 0.7, series="loss"),
    Row("vanishing_gradient", _vanishing_gradient, 0.65, series="gradient"),
    Row("weights_unchanged", _weights_unchanged, 0.85, series="update"),
)  # fmt: skip
"""All symptoms."""
