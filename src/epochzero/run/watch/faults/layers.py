"""Layers and their parameters: what is missing between them, how they begin, and which are not trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile

from epochzero.run.watch.faults._signals import (
    NORMALIZATIONS,
    batch_size,
    chance_loss,
    course,
    does_well,
    fan_in,
    feeding,
    first_forward,
    goes_wrong,
    gradient_ratio,
    has_changed,
    is_classifier,
    is_harmed,
    is_known_loss,
    kinds_of,
    looks_untrained,
    normalizations,
    saturation,
    weights,
)
from epochzero.run.watch.faults._table import Row, Sign, percent
from epochzero.run.watch.faults.calls import STEPS_WITHOUT
from epochzero.run.watch.history import Iteration, ModelLayer, Parameter, TrainingHistory
from epochzero.run.watch.lines.contracts import bootstrapped_place
from epochzero.run.watch.lines.layers import (
    activation_place,
    call_place,
    frozen_place,
    ignores_an_argument,
    initialization_place,
    omission_place,
    step_function_place,
)
from epochzero.run.watch.lines.settings import place_of, width_place
from epochzero.run.watch.model import EvidenceKind

# -- Activations -------------------------------------------------------------------------------

_LINEAR = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Dense", "Conv1D", "Conv2D", "Conv3D")
_THROUGH = (
    "Dropout", "Identity", "Flatten", "BatchNorm", "LayerNorm", "AvgPool", "AdaptiveAvgPool", "AveragePooling", "GlobalAveragePooling", "Reshape",
    "SpatialDropout", "ZeroPadding",
)  # fmt: skip
_SATURATING = ("Sigmoid", "sigmoid", "Tanh", "tanh", "Hardtanh", "hardtanh", "Softsign", "Softmax",
               "softmax", "Hardsigmoid", "LogSigmoid")  # fmt: skip
_SHRUNK = 0.15
"""Gradient of the first layer compared with the last: two layers of tanh whose gradient arrives are a usual model."""


def _no_activation(history: TrainingHistory, *, whole: bool) -> Sign | None:
    """A layer whose input is another one's output, with what is linear between them at most; of the ``whole`` model, and to its harm."""
    seen, found = first_forward(history), course(history)
    if seen is None or found is None or not found.finite or does_well(history):
        return None
    kinds = dict(history.order)
    hidden = [path for path, kind in history.order if kind in _LINEAR]
    pairs = [(source, path) for path in hidden if (source := _source(seen, path, kinds)) and kinds.get(source) in _LINEAR]  # fmt: skip
    # A narrow layer between two is an intended factorization.
    pairs = [pair for pair in pairs if not _is_narrow(history, *pair)]
    if not pairs:
        return None
    source, path = pairs[0]
    all_linear = len(pairs) >= len(hidden) - 1
    if whole and not (all_linear and is_harmed(history)):
        return None
    # Blocks that begin with an activation lie in modules of their own.
    siblings = source.rpartition(".")[0] == path.rpartition(".")[0]
    effect = "the whole model is linear." if all_linear else "together they are one linear layer."
    return Sign(
        f"{path} takes the output of {source}, with no activation between: {effect}",
        call_place(history.layer(source)),
        layer=source,
        confidence=0.78 if all_linear else 0.62 if siblings else 0.4,
        fix=f"Put a ReLU between {source} and {path}.",
    )


def _source(seen: Iteration, path: str, kinds: Mapping[str, str]) -> str:
    """The layer whose output a layer takes, through what does not bend it."""
    source = str(seen.layers.get(path, {}).get("source", ""))
    for _ in range(8):
        if not source or not kinds.get(source, "").startswith(_THROUGH):
            break
        source = str(seen.layers.get(source, {}).get("source", ""))
    return source


def _is_narrow(history: TrainingHistory, source: str, path: str) -> bool:
    """Whether what goes from one to the other is less than what comes in and what goes out."""
    first, second = history.layer(source), history.layer(path)
    if first is None or second is None:
        return False
    before, between = _sizes(first)
    return between < 0.5 * min(before, _sizes(second)[1])


def _sizes(layer: ModelLayer) -> tuple[int, int]:
    """How many features or channels go in and out."""
    of = layer.settings
    return (
        of.get("in_features") or of.get("in_channels") or 0,
        of.get("out_features") or of.get("out_channels") or 0,
    )


def _flat_activation(history: TrainingHistory) -> Sign | None:
    """Saturating activations within a model whose gradients vanish toward its first layers."""
    if len(history.iterations) < 5:
        return None
    flat = _without_gradient(history)
    if flat:
        text = f"{flat} passes no gradient: layers before it get a gradient of exactly zero, layers after it are trained."
        fix = "Use an activation with a nonzero gradient: ReLU, GELU, or a soft threshold."
        return _of_activation(history, flat, text, 0.88, fix)
    used, found = feeding(history), course(history)
    # What an attention or a mixture does with its softmax is no layer: weights of zero are what a mask makes.
    inside = [
        (path, kind)
        for path, kind in history.order[:-1]
        if kind in _SATURATING and (kind.lower() != "softmax" or path in used)
    ]
    softmax = [path for path, kind in inside if kind.lower() == "softmax"]
    if found is None or not inside or (not softmax and (found.fall > 0.7 or does_well(history))):
        return None
    (path, kind), shrink = inside[0], gradient_ratio(history)
    full = {path: saturation(history, path) for path, _ in inside}
    worst = max(full, key=lambda path: full[path])
    evidence = {"saturated": full[worst]}
    if softmax:
        path, certain = softmax[0], 0.55 if does_well(history) else 0.7
        text = f"{path} is a softmax in the middle of the model: its outputs add up to 1."
    elif len(inside) >= 3 and shrink is not None and shrink < 0.02:
        certain = 0.8
        text = (
            f"{len(inside)} saturating activations ({kind}) follow one another, and the gradient of the first layer is {shrink:.1e} of "
            "the last one's."
        )
    elif full[worst] > 0.6:
        path, certain = worst, 0.62
        text = f"{percent(full[worst])} of the outputs of {worst} are in the saturated range of {dict(inside)[worst]}."
    elif len(inside) >= 2 and found.fall < 0.3 and _hardly_learns(history, shrink):
        text, certain = f"{len(inside)} layers end in {kind}, and the loss hardly decreases.", 0.55
    else:
        return None
    return _of_activation(
        history, path, text, certain, "Use ReLU or GELU between layers.", evidence
    )


def _hardly_learns(history: TrainingHistory, shrink: float | None) -> bool:
    # A target that is computed by the model itself moves, and with it the loss.
    moving = bootstrapped_place(history) is not None
    return not moving and is_known_loss(history) and shrink is not None and shrink < _SHRUNK


def _of_activation(
    history: TrainingHistory,
    path: str,
    text: str,
    confidence: float,
    fix: str,
    evidence: Mapping[str, float] | None = None,
) -> Sign:
    place = activation_place(history.layer(path), path)
    layer = path.partition(":")[0]
    return Sign(text, place, 0, layer, evidence or {}, confidence=confidence, fix=fix)


def _without_gradient(history: TrainingHistory) -> str:
    """A function between a layer whose gradient is always zero and one that is trained; empty for none."""
    first = first_forward(history)
    source = {p: str(of.get("source", "")) for p, of in first.layers.items()} if first else {}
    for path, kind in history.order:
        before, layer = source.get(path, ""), history.layer(path)
        plain = layer is None or not layer.parameters
        # Units of a ReLU may all be dead, for other reasons.
        relu = "ReLU" in kind or kind == "relu"
        if not plain or not before or relu or path not in feeding(history):
            continue
        after = [to for to, _ in history.order if source.get(to) == path]
        trained = any(_largest(history, to) for to in after)
        # Of a layer with scales only, `_largest` sees nothing.
        held = any(of.trainable and of.held for of in _matrices(history, before))
        if trained and held and not _largest(history, before):
            return path
    return ""


def _largest(history: TrainingHistory, path: str) -> float | None:
    """The largest gradient that the weights of a layer ever had; None where none was seen."""
    for parameter in _matrices(history, path):
        series = history.parameter_series(parameter.name, "gradient", "largest")
        return float(series[:, 1].max()) if len(series) >= 5 else None
    return None


def _matrices(history: TrainingHistory, path: str) -> list[Parameter]:
    return [of for of in history.parameters if of.layer == path and len(of.shape) > 1]


# -- Width and normalization -------------------------------------------------------------------

_NARROW = 3
_DEEP, _SOON = 6, 50
_FEW = 3
_WIDTHS = ("out_features", "out_channels", "hidden_size", "embedding_dim")


def _too_narrow(history: TrainingHistory) -> Sign | None:
    """A hidden layer far narrower than what is before and after it, in a model that does not fit."""
    found, used = course(history), feeding(history)
    if found is None or does_well(history) or not history.ended or not found.finite:
        return None
    layers = [
        layer for path, _ in history.order if ":" not in path and (layer := history.layer(path))
    ]
    widths = [
        (next(filter(None, map(layer.settings.get, _WIDTHS)), None), layer) for layer in layers
    ]
    known = [(width, layer) for width, layer in widths if isinstance(width, int)]
    hidden = [pair for pair in known[:-1] if pair[1].path in used or pair[1].kind not in _LINEAR]
    if (
        not hidden
        or _repeats(history)
        or found.slope > 0.1
        or any(of.model for of in history.layers)
    ):
        return None
    (width, layer), out = min(hidden, key=lambda pair: pair[0]), known[-1][0]
    # Separating this many classes takes at least as many units as the digits of their numbers.
    if width > max(_NARROW, math.log2(out) if is_classifier(history) else 0):
        return None
    text = f"{layer.path} has {width} units, the output {out}; the training loss stays at {found.end:.3g}."
    fix, evidence = f"Use at least {max(16, 4 * out)} units.", {"units": float(width)}
    return Sign(text, width_place(layer), layer=layer.path, evidence=evidence, fix=fix)


def _repeats(history: TrainingHistory) -> bool:
    """Whether the model is to give its input again: a narrow layer is what it is made for."""
    return any(
        iteration.inputs
        and iteration.target
        and "float" in iteration.inputs[0]["dtype"]
        and iteration.inputs[0]["shape"] == iteration.target.get("shape")
        for iteration in history.iterations
    )


def _not_normalized(history: TrainingHistory) -> Sign | None:
    """The spread of outputs, and of gradients, from the first layers to the last."""
    found, first, shrink = course(history), first_forward(history), gradient_ratio(history)
    deep = [path for path, kind in history.order if kind.startswith(("Linear", "Dense", "Conv"))]
    if found is None or does_well(history) or len(deep) < _DEEP or normalizations(history):
        return None
    # A deep network may begin slowly.
    if first is None or (found.finite and (found.count < _SOON or found.fall > 0.1)):
        return None
    seen = [first.layers[path] for path in deep if path in first.layers]
    if len(seen) < _DEEP:
        return None
    begin, end = seen[0]["std"], seen[-2]["std"]
    uneven = shrink is not None and (shrink < 0.02 or shrink > 50)
    if 0.02 < end / max(begin, 1e-12) < 50 and not (uneven or seen[-1]["spread"] < 0.05):
        return None
    # Any of them may be the first without: the middle one is of the part that is repeated.
    layer = history.layer(deep[len(deep) // 2])
    text = f"Over {len(deep)} layers without normalization the standard deviation of activations changes from {begin:.2g} to {end:.2g}."
    evidence = {"first spread": begin, "last spread": end}
    path = deep[len(deep) // 2]
    return Sign(text, layer.place if layer else None, layer=path, evidence=evidence)


def _normalized_wrongly(history: TrainingHistory) -> Sign | None:
    """Settings of batch normalization, the size of its batches, and evaluations that break with it."""
    found, bad, size = normalizations(history), goes_wrong(history), batch_size(history)
    for layer in found:
        text, certain = _doubt(layer)
        if text:
            return _of_normalization(layer, text, certain if bad else 0.4)
    of_batch = [layer for layer in found if "Batch" in layer.kind or "Instance" in layer.kind]
    if of_batch and size is not None and size <= _FEW:
        seen = first_forward(history)
        shape = seen.layers.get(of_batch[0].path, {}).get("shape", ()) if seen else ()
        # Of images or signals each place is an example as well.
        certain = (0.86 if len(shape) == 2 else 0.55) if bad else 0.45
        text = f"Its statistics are computed from {int(size)} examples."
        return _of_normalization(of_batch[0], text, certain)
    order = [kind for _, kind in history.order]
    if len(order) > 2 and order[-1].startswith(NORMALIZATIONS) and bad and is_classifier(history):
        text = "It is the last layer: the loss receives only normalized values."
        return _of_normalization((of_batch or found)[-1], text, 0.72)
    return None


def _doubt(layer: ModelLayer) -> tuple[str, float]:
    momentum, eps = layer.settings.get("momentum"), layer.settings.get("eps")
    if isinstance(momentum, int | float) and not isinstance(momentum, bool):
        text = f"With a momentum of {momentum:g}, "
        if momentum >= 0.8:
            return text + "only the last batch counts.", 0.85
        if momentum <= 0.001:
            return text + "evaluations use statistics that never change.", 0.88
    if isinstance(eps, int | float) and eps >= 0.05:
        return f"An epsilon of {eps:g} is as large as the variance.", 0.85
    if layer.settings.get("track_running_stats") is False and "Batch" in layer.kind:
        return "It has no running statistics: evaluations depend on their batch.", 0.75
    return "", 0.0


def _of_normalization(layer: ModelLayer, text: str, confidence: float) -> Sign:
    text = f"{layer.kind} {layer.path}: {text}"
    return Sign(text, layer.place, layer=layer.path, confidence=confidence)


# -- Values at the start -----------------------------------------------------------------------

_LARGE, _SMALL = 4.0, 0.05
_MANY = 64
_FAR_APART = 10.0
_GROWN, _NOTHING = 3.0, 1e-6
_FAR = 0.9
_ENOUGH, _EVENLY = 256, 1.02


def _weights_at_start(history: TrainingHistory) -> Sign | None:
    """The values of weights at the start, compared with the number of inputs of a unit."""
    if course(history) is None or does_well(history):
        return None
    known = [weight for weight in weights(history) if weight.trainable and "std" in weight.values]
    # Low-rank additions and gates start at zero on purpose, next to weights that do not.
    known = [parameter for parameter in known if not _has_grown(history, parameter)] or known
    # The first values were taken after a step: what was equal may differ by that step.
    equal = [of for of in known if of.values["std"] <= 0.02 * of.values["rms"] + 1e-9]
    others = [parameter for parameter in known if parameter not in equal]
    # One unit is identical to no other, and targets tell those of the last layer apart.
    equal = [of for of in equal if of.shape[0] > 1 and of is not known[-1]]
    large = [of for of in known if _scale(of) > _LARGE] or _large_embeddings(history)
    small = [of for of in others if _scale(of) < _SMALL]
    # Of a few numbers the mean lies anywhere.
    lopsided = [
        of
        for of in others
        if abs(of.values["mean"]) > 0.5 * of.values["rms"] and math.prod(of.shape) >= _MANY
    ]
    for found, text, certain in (
        (equal, "{n} equal weights of {rms:.2g}: its units stay identical", 0.9),
        (large, "weights of {rms:.2g}, {scale:.0f} times the suitable size for {fan} inputs", 0.86),
        (lopsided, "weights around {mean:.2g} instead of zero", 0.84),
        (small, "weights of {rms:.1g}, {scale:.3f} of the suitable size for {fan} inputs", 0.7),
    ):
        # One layer at zero is a way to begin gently; several are not.
        if not found or (found is not large and len(found) < max(1, 0.4 * len(known))):
            continue
        of = found[0]
        values = {"rms": of.values["rms"], "mean": of.values["mean"], "scale": _scale(of)}
        text = text.format(n=math.prod(of.shape), fan=fan_in(of), **values)
        return Sign(
            f"{of.name} is initialized with {text}.",
            initialization_place(history, of),
            layer=of.layer,
            evidence={"rms": of.values["rms"], "layers": float(len(found))},
            confidence=certain,
        )
    return None


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
    kinds = kinds_of(history)
    return [
        of
        for of in history.parameters
        if of.trainable
        and kinds.get(of.layer, "").startswith("Embedding")
        and of.values.get("rms", 0.0) > _FAR_APART
    ]


def _biases_at_start(history: TrainingHistory) -> Sign | None:
    """Biases that begin far from zero, one for all units."""
    found, chance = course(history), chance_loss(history)
    if does_well(history) or found is None:
        return None
    begins_badly = bool(chance and found.first > 2 * chance)
    used, kinds = feeding(history), kinds_of(history)
    for of in history.parameters:
        if not of.name.endswith("bias") or len(of.shape) != 1:
            continue
        mean, spread = of.values.get("mean", 0.0), of.values.get("std", 0.0)
        scales = kinds.get(of.layer, "").startswith(NORMALIZATIONS)
        # Scaled numbers lie within a few units of zero.
        near = abs(mean) < (2.5 if scales else _FAR) or spread > 0.3 * abs(mean)
        # At the end of a model, or of a gate, it may be the right initial value.
        if near or (of.layer not in used and not begins_badly):
            continue
        text = f"{of.name} is initialized to {mean:.3g} for all {of.shape[0]} units."
        place, confidence = initialization_place(history, of), 0.91 if abs(mean) > 3 else 0.78
        return Sign(text, place, layer=of.layer, evidence={"mean": mean}, confidence=confidence)
    return None


# -- What is not trained -----------------------------------------------------------------------


def _waits_for_an_optimizer(history: TrainingHistory) -> Sign | None:
    """Parameters that get gradients, belong to no optimizer and never change, though they were made trainable or are as they were drawn.

    Of a pretrained network that is not to be trained, gradients are computed as well; its weights are not those of a beginning.
    """
    last = history.iterations[-STEPS_WITHOUT:]
    left = [
        of
        for of in history.parameters
        if of.trainable and not of.held and len(last) == STEPS_WITHOUT
        if all(of.name in iteration.unheld for iteration in last)
        if not has_changed(history, of) and not _is_copy(history, of)
    ]
    thawed = [of for of in left if of.thawed]
    drawn = [of for of in left if math.prod(of.shape) >= _ENOUGH and looks_untrained(of, _EVENLY)]
    found = thawed or drawn
    # What was trained before and is made trainable again is to be trained on.
    if not found or (not thawed and _was_trained(history, found)):
        return None
    first, layer = found[0], history.layer(found[0].layer)
    since = next(i.number for i in history.iterations if first.name in i.unheld)
    what, place = "has the random values that it was created with", frozen_place(history, first)
    if thawed:
        what = "was made trainable"
        place = next(map(place_of, history.optimizers[::-1]), None)
    elif layer is not None and layer.hidden:
        what, place = "belongs to no module that is part of the model", layer.place
    text = f"{first.name} {what} and gets gradients, but no optimizer holds it: it never changes"
    more = f", as do {len(found) - 1} others" if len(found) > 1 else ""
    return Sign(f"{text}{more}.", place, since, first.layer)


def _stuck_at_zero(history: TrainingHistory) -> Sign | None:
    """Weights that are zero and whose gradient is zero: each waits for another one that is zero as well."""
    for parameter in history.parameters:
        name = parameter.name
        seen = [i.parameters[name] for i in history.iterations if name in i.parameters]
        zero = [
            of
            for of in seen
            if not of.get("weight", {}).get("rms") and of.get("gradient", {}).get("largest") == 0
        ]
        if (
            parameter.held
            and len(parameter.shape) > 1
            and len(seen) >= STEPS_WITHOUT
            and len(zero) == len(seen)
        ):
            text = f"{name} is zero, and so is its gradient: the factor that it is multiplied by must not start at zero as well."
            return Sign(text, initialization_place(history, parameter), layer=parameter.layer)
    return None


def _rounded_away(history: TrainingHistory) -> Sign | None:
    """Weights whose gradient is always zero, in layers whose bias has one and whose input is not zero: it is lost on the way to them."""
    if len(history.iterations) < STEPS_WITHOUT:
        return None
    cut, place = _cut_off(history, history.parameters, alive=True), step_function_place(history)
    lost = next((of for of in cut if _is_fed(history, of) and _has_gradients(history, of)), None)
    if lost is None or place is None:
        return None
    text = (
        f"The gradient of {lost.name} is 0 in all {len(history.iterations)} inspected iterations, while that of its bias is not: an "
        "operator between these weights and the output, such as rounding, has no gradient."
    )
    return Sign(text, place, layer=lost.layer)


def _is_fed(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether it is the weight of a layer that another one gives values other than zero: that of a state may be always zero."""
    if parameter.name.rpartition(".")[2] != "weight" or len(parameter.shape) < 2:
        return False
    return any(
        seen.layers.get(source, {}).get("zeros", 1.0) < 1
        for seen in history.iterations
        for source in (seen.layers.get(parameter.layer, {}).get("source", ""),)
    )


def _stops(history: TrainingHistory) -> Sign | None:
    """Most parameters that were trained get no gradient from some iteration on."""
    stopped: dict[str, int] = {}
    names = {name for iteration in history.iterations for name in iteration.parameters}
    for name in names:
        seen = [
            (iteration.number, of["update"]["rms"] > 0 or "gradient" in of)
            for iteration in history.iterations
            if (of := iteration.parameters.get(name)) and "update" in of
        ]
        active = [number for number, changes in seen if changes]
        after = [number for number, _ in seen if active and number > active[-1]]
        if len(active) >= 3 and len(after) >= 3:
            stopped[name] = after[0]
    if len(stopped) < 0.5 * max(len(names), 2):
        return None
    name, since = min(stopped.items(), key=lambda pair: pair[1])
    parameter = next((p for p in history.parameters if p.name == name), None)
    place = frozen_place(history, parameter) if parameter else None
    text = f"From iteration {since} on, {len(stopped)} of {len(names)} parameters get no gradient and no longer change, including {name}."
    weaker = 0.3 if does_well(history) else 0.0
    return Sign(text, place, since, parameter.layer if parameter else "", weaker=weaker)


def _unused(history: TrainingHistory) -> Sign | None:
    """Leaves that no forward pass has called while their neighbors were."""
    if len(history.iterations) < 4:
        return None
    used = _with_gradient(history)
    for layer in history.layers:
        names = {f"{layer.path}.{name}" for name in layer.parameters}
        if layer.kind in ("ParameterList", "ParameterDict") or not layer.leaf or layer.called:
            continue
        if not names or names & used or not _gets_no_gradient(history, layer.path):
            continue
        parent = history.layer(layer.path.rpartition(".")[0])
        # A whole part that is not called may be for another task.
        if parent is None or parent.called or not parent.path:
            text = f"{layer.path} ({layer.kind}) is created, but no forward pass calls it."
            certain = 0.9 if ignores_an_argument(layer) else 0.56 if does_well(history) else 0.8
            fix = "Call it in forward, or remove it."
            place = omission_place(layer)
            return Sign(text, place, layer=layer.path, confidence=certain, fix=fix)
    return None


def _gone_around(history: TrainingHistory) -> Sign | None:
    """Layers without a gradient, and one that is trained and takes what they were given, not what they give."""
    first = first_forward(history)
    if first is None or len(history.iterations) < 4:
        return None
    source = {path: str(first.layers.get(path, {}).get("source", "")) for path, _ in history.order}
    used = _with_gradient(history)
    trained = [path for path in source if any(of.name in used for of in _matrices(history, path))]
    around = {source[path]: path for path in trained if source[path]}
    left = [
        layer
        for layer in history.layers
        if layer.parameters and around.get(source.get(layer.path, "")) and layer.path not in trained
    ]
    if not left or len(trained) < 2:
        return None
    if not all(_gets_no_gradient(history, layer.path) for layer in left):
        return None
    path = _common([layer.path for layer in left]) or left[0].path
    other = around[source[left[0].path]]
    text = f"{path} is called, but its output is discarded: {other} takes the same input."
    confidence = 0.56 if does_well(history) else 0.88
    evidence = {"layers": float(len(left))}
    return Sign(text, left[0].place, layer=path, evidence=evidence, confidence=confidence)


def _common(paths: Sequence[str]) -> str:
    """The module that holds all of them; empty for the model itself."""
    words = [path.split(".") for path in paths]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return ".".join(column[0] for column in shared)


def _with_gradient(history: TrainingHistory) -> set[str]:
    """Names of parameters that ever have a gradient above zero."""
    return {
        name
        for iteration in history.iterations
        for name, of in iteration.parameters.items()
        if of.get("gradient", {}).get("largest", 0.0) > 0
    }


def _gets_no_gradient(history: TrainingHistory, path: str) -> bool:
    """Whether an optimizer holds the weights of a layer, which ask for gradients and never get any."""
    own = _matrices(history, path)
    seen = {
        name for it in history.iterations for name, of in it.parameters.items() if "gradient" in of
    }
    return bool(own) and all(of.trainable and of.held and of.name not in seen for of in own)


def _not_trained(history: TrainingHistory) -> Sign | None:
    """Weights that nothing changes while others are trained, and that were not trained before."""
    if len(history.iterations) < 4 or not history.optimizers:
        return None
    own = [parameter for parameter in history.parameters if math.prod(parameter.shape) > 1]
    called = [parameter for parameter in own if _is_called(history, parameter)]
    cut = _cut_off(history, own)
    never = [of for of in cut if not _has_gradients(history, of)]
    frozen = [of for of in called if not of.trainable and looks_untrained(of) and not has_changed(history, of)]  # fmt: skip
    left_out, well = _left_out(history, called), does_well(history)
    for found, text, certain in (
        (left_out, "belongs to no optimizer: it never changes", 0.9),
        (never, "gets no gradient: it is detached from the loss", 0.86),
        (cut, "gets a gradient of zero", 0.5),
        (frozen, "does not require a gradient (requires_grad=False)", 0.75),
    ):
        everything = len(found) == len(own) and found is not left_out
        if not found or everything or (found is frozen and well) or _was_trained(history, found):
            continue
        more = f", as do {len(found) - 1} others" if len(found) > 1 else ""
        return Sign(
            f"{found[0].name} {text}{more}.",
            frozen_place(history, found[0]),
            layer=found[0].layer,
            evidence={"parameters": float(len(found)), "of": float(len(own))},
            confidence=certain,
            weaker=0.4 if well else 0.0,
        )
    return None


def _left_out(history: TrainingHistory, called: Sequence[Parameter]) -> list[Parameter]:
    """Those that belong to no optimizer, though they are of what is trained or nobody has trained them before."""
    model = {layer.path: layer.model for layer in history.layers}
    learning = {model.get(parameter.layer) for parameter in called if parameter.held}
    # Another network that is only asked, as a teacher or a target, gets no gradient. A trained network may be part of a loss, and get a
    # gradient that nothing uses.
    return [
        of
        for of in called
        if of.trainable
        and not of.held
        and not _is_copy(history, of)
        and (
            not learning
            or model.get(of.layer) in learning
            or _gets_gradient(history, of)
            or (looks_untrained(of) and _has_unused_gradient(history, of))
        )
    ]


def _is_copy(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether it is changed by other means, or began as a trained one did: a target network, an average."""
    trained = (of for of in history.parameters if of.held and of.shape == parameter.shape)
    began_alike = any(of.values == parameter.values for of in trained)
    return began_alike or has_changed(history, parameter)


def _cut_off(
    history: TrainingHistory, own: Sequence[Parameter], *, alive: bool = False
) -> list[Parameter]:
    """Those of an optimizer whose gradient is always missing or zero, in layers without any gradient or in those that are ``alive``."""
    cut = [
        of
        for of in own
        if of.trainable
        and of.held
        and any(of.name in it.parameters for it in history.iterations)
        and _is_called(history, of)
        and not _gets_gradient(history, of)
    ]
    # Where a layer has a gradient at all it is not cut off; and units that are dead pass none on.
    living = {parameter.layer for parameter in own if parameter not in cut and parameter.trainable}
    return [of for of in cut if (of.layer in living) is alive]


def _has_gradients(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether it ever has a gradient, be it zero."""
    return any("gradient" in it.parameters.get(parameter.name, {}) for it in history.iterations)


def _is_called(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether its layer takes part in the training; a copy for evaluations does not."""
    return any(parameter.layer in iteration.layers for iteration in history.iterations[:50])


def _gets_gradient(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether it ever has a gradient that is not zero, be it no number."""
    return any(
        iteration.parameters.get(parameter.name, {}).get("gradient", {}).get("largest", 0.0) != 0
        for iteration in history.iterations
    )


def _was_trained(history: TrainingHistory, frozen: Sequence[Parameter]) -> bool:
    """Whether they changed earlier in this very process, or do not look like a beginning."""
    return any(
        iteration.parameters.get(parameter.name, {}).get("update", {}).get("rms", 0.0) > 0
        for iteration in history.iterations
        for parameter in frozen[:4]
    )


def _has_unused_gradient(history: TrainingHistory, parameter: Parameter) -> bool:
    found = sum(parameter.name in iteration.unheld for iteration in history.iterations)
    return found >= 0.2 * len(history.iterations) > 0


RELATIONS: Sequence[Row] = (
    Row("parameters_frozen", _waits_for_an_optimizer, 0.94, "Call optimizer.add_param_group for them, or create the optimizer afterwards."),
    Row("weight_init_wrong", _stuck_at_zero, 0.94, "Initialize one of the factors with random values."),
    Row("parameters_frozen", _rounded_away, 0.94, "Let the gradient pass: w + (rounded - w).detach()."),
    Row("parameters_frozen", _stops, 0.85, "Check requires_grad, detach() and no_grad() from this iteration on.", kind=EvidenceKind.STATE),
)  # fmt: skip
CURVES: Sequence[Row] = (
    Row("activation_missing", partial(_no_activation, whole=True), 0.4),
    Row("activation_missing", partial(_no_activation, whole=False), 0.4, kind=EvidenceKind.EFFECT),
    Row("activation_wrong", _flat_activation, 0.55, kind=EvidenceKind.ESTIMATE),
    Row("capacity_too_small", _too_narrow, 0.68, kind=EvidenceKind.EFFECT),
    Row("normalization_missing", _not_normalized, 0.66, "Put BatchNorm or LayerNorm after each layer, or add residual connections.", kind=EvidenceKind.EFFECT),
    Row("normalization_wrong", _normalized_wrongly, 0.4,
        "Use batches of at least 16, or GroupNorm or LayerNorm; use a momentum of 0.1 and an epsilon of 1e-5.", kind=EvidenceKind.EFFECT),
    Row("weight_init_wrong", _weights_at_start, 0.7, "Use the layer's default initialization or torch.nn.init.kaiming_uniform_.", kind=EvidenceKind.EFFECT),
    Row("bias_init_wrong", _biases_at_start, 0.78, "Initialize biases to zero.", kind=EvidenceKind.EFFECT),
    Row("layer_unused", _gone_around, 0.88, "Pass its output to the next layer, or remove it.", kind=EvidenceKind.STATE),
    Row("layer_unused", _unused, 0.8, "Call it in forward, or remove it.", kind=EvidenceKind.STATE),
    Row("parameters_frozen", _not_trained, 0.9,
        "Pass model.parameters() to the optimizer after the whole model is built; check for detach(), .data, no_grad() and requires_grad=False.", kind=EvidenceKind.STATE),
)  # fmt: skip
