"""Weights that begin equal, at zero, far too large or far too small."""

from __future__ import annotations

import math
from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, fan_in, weights
from epochzero.run.watch.history import Parameter, TrainingHistory
from epochzero.run.watch.lines import initialization_place
from epochzero.run.watch.model import TrainingFinding

_LARGE = 4.0
_SMALL = 0.05
_MANY = 64
_FAR_APART = 10.0
_GROWN = 3.0
_NOTHING = 1e-6


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The values of weights at the start, compared with the number of inputs of a unit."""
    known = [one for one in weights(history) if one.trainable and "std" in one.values]
    # Low-rank additions and gates start at zero on purpose, next to weights that do not.
    resting = [one for one in known if not _has_grown(history, one)]
    known = resting or known
    if course(history) is None or does_well(history):
        return
    # The first values were taken after a step: what was equal may differ by that step.
    equal = [one for one in known if one.values["std"] <= 0.02 * one.values["rms"] + 1e-9]
    large = [one for one in known if _scale(one) > _LARGE] or _large_embeddings(history)
    small = [one for one in known if _scale(one) < _SMALL and one not in equal]
    # Of a few numbers the mean lies anywhere.
    lopsided = [
        one
        for one in known
        if abs(one.values["mean"]) > 0.5 * one.values["rms"]
        and one not in equal
        and math.prod(one.shape) >= _MANY
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
        one = found[0]
        values = text.format(
            n=math.prod(one.shape),
            rms=one.values["rms"],
            mean=one.values["mean"],
            scale=_scale(one),
            fan=fan_in(one),
        )
        yield TrainingFinding(
            "weight_init_wrong",
            0,
            f"{one.name} {values}.",
            layer=one.layer,
            place=initialization_place(history, one),
            confidence=certain,
            fix="Use the layer's default initialization or torch.nn.init.kaiming_uniform_.",
            evidence={"rms": one.values["rms"], "layers": float(len(found))},
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
        one
        for one in history.parameters
        if one.trainable
        and kinds.get(one.layer, "").startswith("Embedding")
        and one.values.get("rms", 0.0) > _FAR_APART
    ]
