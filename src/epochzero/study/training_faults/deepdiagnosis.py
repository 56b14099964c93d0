"""DeepDiagnosis: eight symptoms of a training, and a decision tree that gives advice for each.

Wardat, Cruz, Le, Rajan: "DeepDiagnosis: Automatically Diagnosing Faults and Recommending Actionable Fixes in Deep
Learning Programs", ICSE 2022. Symptoms, their order and thresholds, and the tree are those of the callback that the
authors published. At the end of each epoch it checks, in this order, the outputs of the layers (out of range,
numerical error, dead node, saturated activation, unchanged tensor), loss and accuracy, and gradients and weights from
last to first (numerical error, vanishing gradient, unchanged weight). It stops at the first symptom.

Departures from the publication:

- An epoch is represented by its last sampled iteration, not by the first batch of the data.
- Saturation is measured on outputs: of a sigmoid beyond 0.02 and 0.98, or of a tanh beyond 0.98, instead of inputs
  beyond 5.
- Root mean squares replace the means of weights and gradients, and the variance of a weight, whose mean is close to
  zero. In the callback the variance is that of a single number, so no weight is ever poor.
- A layer's step is its learning rate times the norm of its gradient, divided by the norm of its weight; the callback
  divides by the mean of the weight.
- PyTorch's `cross_entropy` includes the softmax, and `binary_cross_entropy_with_logits` the sigmoid: they count as
  the last activation.
- Softmax is advised only for losses of classes; the callback's test for these is always true.
- All layers with a weight are checked, not only dense ones, except layers that nothing trains. A NaN gradient leads to
  the question about the loss in the last layer too, for which the callback has no advice.
- Each advice has a word of our taxonomy for the fault. "Learning rate" has two, depending on which bound the step
  violates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from epochzero.run.watch.history import Iteration, TrainingHistory
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult
from epochzero.study.training_faults.training_view import CalledLayer, Epoch, Recent, epochs, layers

EPOCHS, EPOCHS_OF_ACCURACY = 5, 20
DEAD, SATURATED = 0.7, 0.5
VANISHED = 1e-7
LEAST_VARIANCE, MOST_VARIANCE = 1e-5, 10.0
LEAST_STEP, MOST_STEP = 1e-5, 1e-1
MOST_SPREAD = 10.0
"""The outputs of a linear layer may span this many times the range of the labels."""
_RANGES = {
    "elu": (-1.0, math.inf), "relu": (0.0, math.inf), "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0),
}  # fmt: skip
_OWN = {"cross_entropy": "softmax", "binary_cross_entropy_with_logits": "sigmoid"}
_OF_CLASSES = ("cross_entropy", "nll_loss")

_UNCHANGED = ("weight", "rate", "optimizer")
_NOT_BETTER = ("loss_not_falling", "weight", "input", "rate", "optimizer")
_INVALID = ("loss_not_a_number", "linear", "rate", "optimizer")
_SYMPTOMS = {
    "out of range": ("constant_output", "softmax", "last activation"),
    "numerical error in forward": (
        "activation_not_finite",
        "weight",
        "input",
        "rate",
        "activation",
    ),
    "numerical error in weights": ("loss_not_a_number", "weight", "input", "rate", "activation"),
    "numerical error in delta weights": ("zero_gradient", "loss", "activation"),
    "dead node": ("dead_units", "input", "weight", "rate", "missing activation"),
    "saturated activation": ("saturated_units", "input", "weight", "rate", "missing activation"),
    "unchanged tensor in forward": ("dead_units", *_UNCHANGED),
    "unchanged tensor in delta weights": ("zero_gradient", *_UNCHANGED),
    "unchanged tensor in weights": ("weights_unchanged", *_UNCHANGED),
    "invalid loss": _INVALID,
    "invalid accuracy": _INVALID,
    "loss not decreasing": _NOT_BETTER,
    "accuracy not increasing": _NOT_BETTER,
    "vanishing gradient": ("vanishing_gradient", "rate", "depth"),
}
"""The word of each symptom in our taxonomy, and its questions in order; the last is the advice if no other applies."""
_ADVICE = {
    "softmax": ("last_activation_wrong", "Change the activation function to softmax."),
    "last activation": ("last_activation_wrong", "Change the activation function of the last layer to one with the range of the labels."),
    "linear": ("last_activation_wrong", "Change the activation function of the last layer."),
    "weight": ("weight_init_wrong", "Poor weight: change the initialization."),
    "input": ("input_scale_wrong", "Normalize the data."),
    "rate": ("learning_rate_too_low", "Change the learning rate."),
    "activation": ("activation_wrong", "Change the activation function at this layer."),
    "missing activation": ("activation_missing", "Add a dropout layer, or a missing activation function."),
    "loss": ("loss_wrong", "Change the loss function, or the activation function at this layer."),
    "optimizer": ("optimizer_wrong", "Change the optimizer."),
    "depth": ("activation_wrong", "Add or delete a layer, or change the sigmoid activation."),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Symptom:
    name: str
    epoch: Epoch
    layer: CalledLayer | None = None

    @property
    def look(self) -> Iteration:
        return self.epoch.looks[-1]


def find(history: TrainingHistory) -> WatchResult:
    """Return the fault according to the tree as the root, with the symptom that led to it as evidence."""
    known = layers(history)
    seen = next(_symptoms(history, known), None)
    if seen is None:
        return WatchResult(history.count)
    word, fix, place = _advice(history, known, seen)
    where = f" layer {seen.layer.number}" if seen.layer else ""
    text = f"Epoch {seen.epoch.number}{where}: {seen.name}."
    layer, since = seen.layer.name if seen.layer else "", seen.look.number
    symptom = TrainingFinding(_SYMPTOMS[seen.name][0], since, text, layer=layer)
    root = replace(
        symptom, word=word, text=f"{text} {fix}", place=place, fix=fix, causes=(symptom.word,)
    )
    return WatchResult(history.count, root, (symptom,))


def _symptoms(history: TrainingHistory, known: tuple[CalledLayer, ...]) -> Iterator[_Symptom]:
    seen = epochs(history)
    recent, accuracies = Recent(EPOCHS), Recent(EPOCHS_OF_ACCURACY)
    for epoch in seen:
        is_last = history.ended and epoch is seen[-1]
        yield from _of_outputs(epoch, known, recent, is_last)
        yield from _of_metrics(epoch, recent, accuracies)
        yield from _of_parameters(epoch, known, recent)


def _of_outputs(
    epoch: Epoch, known: tuple[CalledLayer, ...], recent: Recent, is_last: bool
) -> Iterator[_Symptom]:
    look = epoch.looks[-1]
    outputs = ((layer, look.layers.get(layer.path, {})) for layer in known)
    shown = [(layer, output) for layer, output in outputs if "mean" in output]
    for layer, output in shown:
        if layer is known[-1] and epoch.number == 0 and _is_out_of_range(look, layer):
            yield _Symptom("out of range", epoch, layer)
        if output.get("nonfinite") or output["mean"] == 0:
            yield _Symptom("numerical error in forward", epoch, layer)
        if layer.activation == "relu" and is_last and output.get("zeros", 0) >= DEAD:
            yield _Symptom("dead node", epoch, layer)
        saturates = layer.activation in ("sigmoid", "tanh") and (epoch.number + 1) % EPOCHS == 0
        if saturates and output.get("low", 0) + output.get("high", 0) > SATURATED:
            yield _Symptom("saturated activation", epoch, layer)
    for layer, output in shown:
        recent.add(("forward", layer.path), output["mean"])
        same = recent.unchanged(("forward", layer.path))
        if same and layer is not known[-1] and not layer.reshapes:
            yield _Symptom("unchanged tensor in forward", epoch, layer)


def _of_metrics(epoch: Epoch, recent: Recent, accuracies: Recent) -> Iterator[_Symptom]:
    if epoch.loss is not None:
        if not math.isfinite(epoch.loss):
            yield _Symptom("invalid loss", epoch)
        recent.add("loss", epoch.loss)
        if recent.unchanged("loss"):
            yield _Symptom("loss not decreasing", epoch)
    if epoch.accuracy is not None:
        if epoch.accuracy == 0:
            yield _Symptom("invalid accuracy", epoch)
        accuracies.add("accuracy", epoch.accuracy)
        if accuracies.unchanged("accuracy"):
            yield _Symptom("accuracy not increasing", epoch)


def _of_parameters(
    epoch: Epoch, known: tuple[CalledLayer, ...], recent: Recent
) -> Iterator[_Symptom]:
    look = epoch.looks[-1]
    shown = [
        (layer, look.parameters[layer.weight])
        for layer in reversed(known)
        if layer.trained and layer.weight in look.parameters
    ]
    for layer, statistics in shown:
        gradient, weight = statistics.get("gradient"), statistics.get("weight")
        if gradient:
            if gradient["nonfinite"] or gradient["rms"] == 0:
                yield _Symptom("numerical error in delta weights", epoch, layer)
            if gradient["rms"] < VANISHED:
                yield _Symptom("vanishing gradient", epoch, layer)
            recent.add(("delta weights", layer.path), gradient["rms"])
        if weight:
            if weight["nonfinite"] or weight["rms"] == 0:
                yield _Symptom("numerical error in weights", epoch, layer)
            recent.add(("weights", layer.path), weight["rms"])
    for layer, _ in shown:
        for what in ("delta weights", "weights"):
            if recent.unchanged((what, layer.path)):
                yield _Symptom(f"unchanged tensor in {what}", epoch, layer)


def _is_out_of_range(look: Iteration, last: CalledLayer) -> bool:
    """Whether labels are outside the range of the last activation, or outputs far beyond the labels."""
    function = _last_activation(look, last)
    if "min" not in look.target or function == "softmax":
        return False
    lowest, highest = look.target["min"], look.target["max"]
    if function in _RANGES:
        low, high = _RANGES[function]
        return bool(look.loss_function in _OF_CLASSES or lowest < low or highest > high)
    if look.loss_function in _OF_CLASSES:
        return True
    spread = abs(look.output["max"] - look.output["min"])
    return bool(spread > MOST_SPREAD * abs(highest - lowest))


def _last_activation(look: Iteration, last: CalledLayer) -> str:
    return _OWN.get(look.loss_function) or last.activation or "linear"


def _advice(
    history: TrainingHistory, known: tuple[CalledLayer, ...], seen: _Symptom
) -> tuple[str, str, SourceLine | None]:
    """Return word, advice and line of the first question that applies, otherwise of the last."""
    _, *questions, otherwise = _SYMPTOMS[seen.name]
    name = next((question for question in questions if _holds(question, known, seen)), otherwise)
    word, fix = _ADVICE[name]
    made = place_of(history.optimizers[0]) if history.optimizers else None
    if name == "rate":
        if not all(step <= MOST_STEP for step in _steps(known, seen.look)):
            word = "learning_rate_too_high"
        return word, fix, setting_place(made, "lr", 1)
    if name == "optimizer":
        return word, fix, made
    if name == "loss":
        return word, fix, place_of(history.losses[0]) if history.losses else None
    if name == "weight":
        return word, fix, next((layer.place for layer in known if _is_poor(seen.look, layer)), None)
    if name == "input":
        return word, fix, None
    return word, fix, (seen.layer or known[-1]).place


def _holds(question: str, known: tuple[CalledLayer, ...], seen: _Symptom) -> bool:
    look = seen.look
    if question == "softmax":
        return look.loss_function in _OF_CLASSES
    if question == "linear":
        return bool(known) and _last_activation(look, known[-1]) == "linear"
    if question == "weight":
        return any(_is_poor(look, layer) for layer in known)
    if question == "input":
        return any(of.get("min", 0) < -1 or of.get("max", 0) > 1 for of in look.inputs)
    if question == "loss":
        return seen.layer is not None and seen.layer.number + 2 >= len(known)
    return any(not LEAST_STEP <= step <= MOST_STEP for step in _steps(known, look))


def _is_poor(look: Iteration, layer: CalledLayer) -> bool:
    weight = look.parameters.get(layer.weight, {}).get("weight")
    return weight is not None and not LEAST_VARIANCE <= weight["rms"] ** 2 <= MOST_VARIANCE


def _steps(known: tuple[CalledLayer, ...], look: Iteration) -> list[float]:
    """Return the size of a step relative to the weight, for each layer."""
    rate = max(look.rates, default=0.0)
    found = []
    for layer in known:
        statistics = look.parameters.get(layer.weight, {})
        gradient, weight = statistics.get("gradient"), statistics.get("weight")
        if gradient and weight and weight["rms"] > 0:
            found.append(rate * gradient["rms"] / weight["rms"])
    return found
