"""DeepLocalize: the first numerical error of a training, with its layer and phase.

Wardat, Le, Rajan: "DeepLocalize: Fault Localization for Deep Neural Networks", ICSE 2021 (arXiv 2103.03376), as
implemented by the callback that the authors published. After each batch it checks, in this order, the outputs of the
layers from first to last (forward), the weights from last to first, loss and accuracy, the gradients of the weights
(delta weights) and of the outputs (output gradient) from last to first. It stops at the first value that is NaN or
infinite, that was zero in half of the batches so far, or that has not changed in five batches. Loss and accuracy may
be zero. If they have not changed, it reports "MDL": the model does not learn.

Departures from the publication:

- A batch is a sampled iteration.
- The callback uses the mean of a weight or gradient, this module its root mean square: both are NaN, zero or unchanged
  together, except for values that cancel out.
- Gradients of outputs are not recorded. The gradient of a layer's bias, which is the sum of its output's gradients
  over the batch, is used instead; a layer without bias is skipped.
- All layers with a weight must change, not only dense ones, except layers that nothing trains.
- Each error gets a word of our taxonomy. The callback has none: it returns layer and phase.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from epochzero.run.watch.history import Iteration, TrainingHistory
from epochzero.run.watch.model import TrainingFinding, WatchResult
from epochzero.study.training_faults.training_view import CalledLayer, Recent, layers

BATCHES = 5
_INVALID, _ZERO, _UNCHANGED = "invalid", "zero", "unchanged"
_METRICS = ("loss", "accuracy")
_WORDS = {
    "forward": {_INVALID: "activation_not_finite", _ZERO: "dead_units", _UNCHANGED: "dead_units"},
    "weights": {_INVALID: "loss_not_a_number", _ZERO: "weight_init_wrong", _UNCHANGED: "weights_unchanged"},
    "loss": {_INVALID: "loss_not_a_number", _UNCHANGED: "loss_not_falling"},
    "accuracy": {_INVALID: "loss_not_a_number", _UNCHANGED: "loss_not_falling"},
    "delta weights": {_INVALID: "exploding_gradient", _ZERO: "zero_gradient", _UNCHANGED: "zero_gradient"},
    "output gradient": {_INVALID: "exploding_gradient", _ZERO: "zero_gradient", _UNCHANGED: "zero_gradient"},
}  # fmt: skip

_Value = tuple[CalledLayer | None, float]


def find(history: TrainingHistory) -> WatchResult:
    """Return the first error as the root, with its layer and, in the evidence, its phase."""
    return WatchResult(history.count, next(_errors(history), None))


def _errors(history: TrainingHistory) -> Iterator[TrainingFinding]:
    known = layers(history)
    losses = dict(history.loss.tolist())
    recent = Recent(BATCHES)
    zeros: Counter[tuple[str, str]] = Counter()
    for count, look in enumerate(history.iterations, 1):
        for phase, values in _phases(look, known, losses.get(look.number)):
            for layer, value in values:
                key = (phase, layer.path if layer else "")
                zeros[key] += value == 0 and phase not in _METRICS
                if not math.isfinite(value):
                    yield _finding(look, phase, _INVALID, layer, known)
                elif value == 0 and zeros[key] >= count / 2 and phase not in _METRICS:
                    yield _finding(look, phase, _ZERO, layer, known)
                recent.add(key, value)
            for layer, _ in values:
                key = (phase, layer.path if layer else "")
                if recent.unchanged(key) and not (layer and layer.reshapes):
                    yield _finding(look, phase, _UNCHANGED, layer, known)


def _phases(
    look: Iteration, known: tuple[CalledLayer, ...], loss: float | None
) -> Iterator[tuple[str, list[_Value]]]:
    outputs = ((layer, look.layers.get(layer.path, {})) for layer in known)
    yield "forward", [(layer, _value(seen, "mean")) for layer, seen in outputs if "mean" in seen]
    trained = [layer for layer in reversed(known) if layer.trained]
    yield "weights", _of_parameters(look, "weight", ((layer, layer.weight) for layer in trained))
    for name, value in zip(_METRICS, (loss, look.accuracy), strict=True):
        yield name, [] if value is None else [(None, value)]
    for name, of in (("delta weights", "weight"), ("output gradient", "bias")):
        yield name, _of_parameters(look, "gradient", ((x, getattr(x, of)) for x in trained))


def _of_parameters(
    look: Iteration, what: str, named: Iterable[tuple[CalledLayer, str]]
) -> list[_Value]:
    records = ((layer, look.parameters.get(name, {}).get(what)) for layer, name in named)
    return [(layer, _value(seen, "rms")) for layer, seen in records if seen]


def _value(seen: Mapping[str, Any], name: str) -> float:
    return math.nan if seen.get("nonfinite") else float(seen[name])


def _finding(
    look: Iteration,
    phase: str,
    error: str,
    layer: CalledLayer | None,
    known: tuple[CalledLayer, ...],
) -> TrainingFinding:
    word = _WORDS[phase][error]
    if word == "dead_units" and layer is known[-1]:
        word = "constant_output"
    if layer is not None:
        text = f"Batch {look.number} layer {layer.number}: error in {phase}."
    elif error == _UNCHANGED:
        text = f"Batch {look.number}: MDL."
    else:
        text = f"Batch {look.number}: invalid {phase}."
    return TrainingFinding(
        word,
        look.number,
        text,
        layer=layer.name if layer else "",
        place=layer.place if layer else None,
        evidence={"phase": phase, "error": error},
    )
