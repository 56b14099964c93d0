"""Parameters that should be trained ask for no gradient, are held by no optimizer, or are cut off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from epochzero.run.watch.faults._relations import has_changed
from epochzero.run.watch.faults._signals import does_well
from epochzero.run.watch.history import Parameter, TrainingHistory
from epochzero.run.watch.lines.layers import frozen_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Weights that nothing changes while others are trained, and that were not trained before."""
    if len(history.iterations) < 4 or not history.optimizers:
        return
    own = [parameter for parameter in history.parameters if math.prod(parameter.shape) > 1]
    model = {layer.path: layer.model for layer in history.layers}
    learning = {
        model.get(param.layer) for param in own if param.held and _is_called(history, param)
    }
    left_out = [
        parameter
        for parameter in own
        if parameter.trainable
        and not parameter.held
        and _is_called(history, parameter)
        # Another network that is only asked, as a teacher or a target, gets no gradient.
        and (
            not learning
            or model.get(parameter.layer) in learning
            or _has_gradient(history, parameter)
            # A trained network may be part of a loss, and get a gradient that nothing uses.
            or (_looks_untrained(parameter) and _has_unused_gradient(history, parameter))
        )
    ]
    asked = {
        name: [it.parameters[name] for it in history.iterations if name in it.parameters]
        for name in {parameter.name for parameter in own if parameter.trainable and parameter.held}
    }
    cut = [
        parameter
        for parameter in own
        if asked.get(parameter.name)
        and _is_called(history, parameter)
        and all(_is_nothing(of.get("gradient")) for of in asked[parameter.name])
    ]
    # Where a layer has a gradient at all it is not cut off; and units that are dead pass none on.
    alive = {parameter.layer for parameter in own if parameter not in cut and parameter.trainable}
    cut = [parameter for parameter in cut if parameter.layer not in alive]
    never = [param for param in cut if all("gradient" not in of for of in asked[param.name])]
    frozen = [
        parameter
        for parameter in own
        if not parameter.trainable
        and _is_called(history, parameter)
        and _looks_untrained(parameter)
        and not has_changed(history, parameter)
    ]
    well = does_well(history)
    for found, text, certain in (
        (left_out, "belongs to no optimizer: it never changes", 0.9),
        (never, "gets no gradient: it is detached from the loss", 0.86),
        (cut, "gets a gradient of zero", 0.5),
        (frozen, "does not require a gradient (requires_grad=False)", 0.75),
    ):
        if not found or (len(found) == len(own) and found is not left_out):
            continue
        if (found is frozen and well) or _was_trained(history, found):
            continue
        parameter = found[0]
        more = f", as do {len(found) - 1} others" if len(found) > 1 else ""
        yield TrainingFinding(
            "parameters_frozen",
            0,
            f"{parameter.name} {text}{more}.",
            layer=parameter.layer,
            place=frozen_place(history, parameter),
            confidence=certain - (0.4 if well else 0.0),
            fix="Pass model.parameters() to the optimizer after the whole model is built; check for detach(), .data, "
"no_grad() and requires_grad=False.",
            evidence={"parameters": float(len(found)), "of": float(len(own))},
        )  # fmt: skip
        return


def _is_called(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether its layer takes part in the training; a copy for evaluations does not."""
    return any(parameter.layer in iteration.layers for iteration in history.iterations[:50])


def _is_nothing(gradient: Mapping[str, float] | None) -> bool:
    return gradient is None or gradient.get("largest", 0.0) == 0


def _was_trained(history: TrainingHistory, frozen: list[Parameter]) -> bool:
    """Whether they changed earlier in this very process, or do not look like a beginning."""
    return any(
        iteration.parameters.get(parameter.name, {}).get("update", {}).get("rms", 0.0) > 0
        for iteration in history.iterations
        for parameter in frozen[:4]
    )


def _has_gradient(history: TrainingHistory, parameter: Parameter) -> bool:
    return any(
        not _is_nothing(iteration.parameters.get(parameter.name, {}).get("gradient"))
        for iteration in history.iterations
    )


def _has_unused_gradient(history: TrainingHistory, parameter: Parameter) -> bool:
    found = sum(parameter.name in iteration.unheld for iteration in history.iterations)
    return found >= 0.2 * len(history.iterations) > 0


def _looks_untrained(parameter: Parameter) -> bool:
    """Whether its values lie as evenly as an initialization draws them: what was trained has outliers."""
    values = parameter.values
    even = math.sqrt(3) * values.get("rms", 0.0)
    return values.get("largest", 0.0) <= 1.1 * even
