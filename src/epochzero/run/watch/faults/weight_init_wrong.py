"""Weights that begin equal, at zero, far too large or far too small."""

from __future__ import annotations

import math
from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, fan_in, weights
from epochzero.run.watch.history import Parameter, TrainingHistory
from epochzero.run.watch.lines.layers import initialization_place
from epochzero.run.watch.model import TrainingFinding

_LARGE = 4.0
_SMALL = 0.05
_MANY = 64
_FAR_APART = 10.0
_GROWN = 3.0
_NOTHING = 1e-6


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The values of weights at the start, compared with the number of inputs of a unit."""
    known = [weight for weight in weights(history) if weight.trainable and "std" in weight.values]
    # Low-rank additions and gates start at zero on purpose, next to weights that do not.
    resting = [parameter for parameter in known if not _has_grown(history, parameter)]
    known = resting or known
    if course(history) is None or does_well(history):
        return
    # The first values were taken after a step: what was equal may differ by that step.
    equal = [param for param in known if param.values["std"] <= 0.02 * param.values["rms"] + 1e-9]
    large = [param for param in known if _scale(param) > _LARGE] or _large_embeddings(history)
    small = [param for param in known if _scale(param) < _SMALL and param not in equal]
    # Of a few numbers the mean lies anywhere.
    lopsided = [
        parameter
        for parameter in known
        if abs(parameter.values["mean"]) > 0.5 * parameter.values["rms"]
        and parameter not in equal
        and math.prod(parameter.shape) >= _MANY
    ]
    for found, text, certain in (
        (
            equal,
            "is initialized with {n} equal weights of {rms:.2g}: its units stay identical",
            0.9,
        ),
        (
            large,
            "is initialized with weights of {rms:.2g}, {scale:.0f} times the suitable size for {fan} inputs",
            0.86,
        ),
        (lopsided, "is initialized with weights around {mean:.2g} instead of zero", 0.84),
        (
            small,
            "is initialized with weights of {rms:.1g}, {scale:.3f} of the suitable size for {fan} inputs",
            0.7,
        ),
    ):
        # One layer at zero is a way to begin gently; several are not.
        if not found or (found is not large and len(found) < max(1, 0.4 * len(known))):
            continue
        parameter = found[0]
        values = text.format(
            n=math.prod(parameter.shape),
            rms=parameter.values["rms"],
            mean=parameter.values["mean"],
            scale=_scale(parameter),
            fan=fan_in(parameter),
        )
        yield TrainingFinding(
            "weight_init_wrong",
            0,
            f"{parameter.name} {values}.",
            layer=parameter.layer,
            place=initialization_place(history, parameter),
            confidence=certain,
            fix="Use the layer's default initialization or torch.nn.init.kaiming_uniform_.",
            evidence={"rms": parameter.values["rms"], "layers": float(len(found))},
        )
        return


def _has_grown(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether weights that started near zero have left it."""
    series = history.parameter_series(parameter.name, "weight", "rms")
    if len(series) < 2 or _scale(parameter) >= _SMALL:
        return False
    return float(series[-1, 1]) > max(_GROWN * parameter.values["rms"], _NOTHING)


def _scale(parameter: Parameter) -> float:
    """Size of the weights relative to one over the root of the inputs."""
    return parameter.values["rms"] * math.sqrt(fan_in(parameter))


def _large_embeddings(history: TrainingHistory) -> list[Parameter]:
    """Tables of vectors; usual ones begin with a spread of at most 1."""
    kinds = {layer.path: layer.kind for layer in history.layers}
    return [
        parameter
        for parameter in history.parameters
        if parameter.trainable
        and kinds.get(parameter.layer, "").startswith("Embedding")
        and parameter.values.get("rms", 0.0) > _FAR_APART
    ]
