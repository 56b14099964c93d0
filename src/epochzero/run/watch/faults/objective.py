"""The loss, what it is given, and how much each example counts in it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from epochzero.run.watch.faults._signals import (
    NUMERIC,
    OF_CLASSES,
    chance_loss,
    classes,
    course,
    does_well,
    is_classifier,
    is_summed,
    judged,
    train_accuracy,
)
from epochzero.run.watch.faults._table import (
    LEAST,
    Row,
    Sign,
    Test,
    in_cycles,
    in_iterations,
    percent,
)
from epochzero.run.watch.faults.calls import called_place
from epochzero.run.watch.faults.labels import share_at_least
from epochzero.run.watch.history import Cycle, Iteration, Record, TrainingHistory
from epochzero.run.watch.lines.contracts import CONTRACTS, Contract, bootstrapped_place, violations
from epochzero.run.watch.lines.direction import minimized_terms
from epochzero.run.watch.lines.layers import output_place
from epochzero.run.watch.lines.loss import loss_place, own_loss_place
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import EvidenceKind

# -- The loss ----------------------------------------------------------------------------------

_PADDED = 0.1
_WITHOUT_BOUND = 1000.0
"""Times the loss at the start: a critic without a bound drifts far less."""
_BELOW_ZERO = ("CosineSimilarity", "gaussian_nll_loss", "poisson_nll_loss", "kl_div", "nll_loss", "ctc_loss")  # fmt: skip
"""Losses that may be below zero; a known one that may not is negated."""
_UNBOUNDED = "The loss decreases below zero without bound."


def _negated(history: TrainingHistory, cycle: Cycle) -> Test:
    """What is minimized is the negative of the only loss."""
    passes = [call for call in cycle.calls if call.kind == "backward"]
    losses = [call for call in cycle.calls if call.kind == "loss"]
    if len(passes) != 1 or len(losses) != 1 or passes[0].flag or len(history.optimizers) != 1:
        return None
    value, loss = passes[0].value, losses[0].value
    if value is None or not loss or any(g.get("maximize") for g in history.optimizers[0]["groups"]):
        return None
    if not np.isclose(value, -loss, rtol=1e-5):
        return True
    text = f"{losses[0].flag.split()[0]} is {loss:.4g}, and the training minimizes its negative."
    return Sign(text, called_place(history, losses[0]))


def _minimizes_what_should_grow(history: TrainingHistory) -> Sign | None:
    """A likelihood, a reward, an overlap or the value of an action that is minimized, by the signs in the source."""
    if any(group.get("maximize") for o in history.optimizers for group in o["groups"]):
        return None
    for terms in minimized_terms(history):
        first, grows = terms[0], terms[0].sign > 0
        text = (
            f"{first.name} should grow, and the training minimizes it: a minus sign or maximize=True is missing."
            if all(term.grows for term in terms)
            else f"The loss falls as {terms[1].name} gains on {terms[0].name}: the wrong one is preferred."
            if grows
            else f"{first.name} should fall, and is subtracted: the loss falls as it grows."
        )
        return Sign(text, first.place)
    return None


def _is_bootstrapped(history: TrainingHistory, iteration: Iteration) -> Test:
    """A target of the next state's value that gradients pass through."""
    if "pairs" not in iteration.relations and not iteration.relations.get("differentiable"):
        return None if not iteration.relations else True
    place = bootstrapped_place(history) if iteration.relations.get("differentiable") else None
    if place is None:
        return True
    text = (
        "Gradients pass through the value of the next state: the target moves with the prediction."
    )
    return Sign(text, place)


def _is_exchanged(history: TrainingHistory, iteration: Iteration) -> Test:
    """A loss of probabilities that is given labels as its input and the output of the model as its target."""
    if not iteration.relations.get("exchanged"):
        return True if iteration.relations else None
    function = iteration.loss_function
    text = f"Gradients pass only through the target of {function}: its input has none."
    return Sign(text, loss_place(history, function=function))


def _breach(contract: Contract) -> Callable[[TrainingHistory], Sign | None]:
    """The first statement that breaks a contract of the training loop."""
    return lambda history: next((Sign(*found) for found in violations(history, contract)), None)


def _padded(history: TrainingHistory, iteration: Iteration) -> Test:
    """Padding at the ends of sequences is counted in the loss."""
    if not iteration.relations.get("lags") and not iteration.relations.get("padding"):
        return None
    share = iteration.relations.get("padding", 0.0)
    if share < _PADDED:
        return True
    text = f"{percent(share)} of the targets are padding at the ends of sequences, and count in the loss."
    weaker = 0.25 if does_well(history) else 0.0
    return Sign(
        text, loss_place(history, "ignore_index"), evidence={"padding": share}, weaker=weaker
    )


def _is_spread_out(history: TrainingHistory, iteration: Iteration) -> Test:
    """Output and target have as many numbers, and their difference has more."""
    if iteration.loss_function not in NUMERIC or not iteration.target:
        return None
    output, target = iteration.output["shape"], iteration.target["shape"]
    alike = math.prod(output) == math.prod(target) and len(output) != len(target)
    if not alike or math.prod(np.broadcast_shapes(output, target)) == math.prod(output):
        return True
    text = f"Output {output} and target {target} are broadcast against each other: each output is compared with all targets."
    return Sign(text, next(map(place_of, history.losses), None) or loss_place(history))


def _loss_unlike_task(history: TrainingHistory) -> Sign | None:
    """The arguments of the loss compared with what it expects."""
    looked, found = judged(history), course(history)
    if found is None:
        return None
    function = looked[0].loss_function if looked else ""
    place = loss_place(history, "reduction", function=function)
    sign_fix = "Check the sign: the loss must be minimized."
    if found.end < -_WITHOUT_BOUND * max(abs(found.start), 1.0):
        fix = "Check the sign of each term: the loss must be minimized."
        return Sign(_UNBOUNDED, own_loss_place(history), confidence=0.88, fix=fix)
    if not looked:
        if found.start > 0 > found.end and found.end < -10 * abs(found.start):
            return Sign(_UNBOUNDED, place, confidence=0.6, fix=sign_fix)
        return None
    mismatch = next((sign for applies, sign in _mismatches(history, looked) if applies()), None)
    if mismatch is not None:
        return mismatch
    negated = bool(function) and function not in _BELOW_ZERO and found.first < 0
    if negated and found.end < min(0.0, found.start):
        return Sign(_UNBOUNDED, place, confidence=0.85, fix=sign_fix)
    return None


def _mismatches(
    history: TrainingHistory, looked: Sequence[Iteration]
) -> Sequence[tuple[Callable[[], bool], Sign]]:
    """How a loss may not fit its arguments: a test, and the sign of the first that holds."""
    function, output, target = looked[0].loss_function, looked[0].output, looked[0].target
    shape, numbers, well = output["shape"], function in NUMERIC, does_well(history)
    outputs = shape[-1] if shape else 0
    place = loss_place(history, "reduction", function=function)
    return (
        (lambda: function in OF_CLASSES and len(shape) > 1 and shape[1] == 1,
         Sign(f"{function} over one output is always zero.", place, confidence=0.95, fix="Use binary_cross_entropy_with_logits, or two outputs.")),
        (lambda: numbers and _is_one_hot(looked) and not well,
         Sign(f"{function} between {outputs} outputs and one-hot labels.", place, confidence=0.82, fix="Use cross_entropy with class indices.")),
        (lambda: numbers and bool(target.get("whole")) and _are_classes(history, target) and not well,
         Sign(f"{function} with class indices as labels.", place, confidence=0.7, fix="Use cross_entropy.")),
        (lambda: function == "kl_div" and max(iteration.output["max"] for iteration in looked) > 1e-4,
         Sign("kl_div expects log-probabilities as its first argument.", place, confidence=0.85,
              fix="Pass log_softmax of the output first, then the probabilities.")),
        (lambda: function.startswith("binary_cross_entropy") and _is_one_hot(looked) and not well,
         Sign(f"{function} over {outputs} classes of which exactly one is right.", place, confidence=0.62, fix="Use cross_entropy with class indices.")),
        (lambda: _sums(history) and not well,
         Sign("The loss is a sum over the batch: gradients grow with the batch size.", place, confidence=0.87, fix='Leave reduction="mean".')),
    )  # fmt: skip


def _is_one_hot(looked: Sequence[Iteration]) -> bool:
    shape = looked[0].target.get("shape", ())
    if len(shape) < 2 or shape[1] < 3:
        return False
    targets = [iteration.target for iteration in looked[:20] if iteration.target]
    return all(
        of.get("whole") and abs(of["mean"] - 1 / of["shape"][1]) < 1e-3 and 0 <= of["min"] <= of["max"] <= 1 for of in targets
    )  # fmt: skip


def _are_classes(history: TrainingHistory, target: Record) -> bool:
    found = classes(history)
    # Several whole numbers a row are positions or counts.
    several = len(target["shape"]) == 2 and target["shape"][1] > 1
    if not 3 <= len(found) <= 50 or target["min"] < 0 or several:
        return False
    return min(found) >= 0 and max(found) < 2 * len(found)


def _sums(history: TrainingHistory) -> bool:
    """Whether what is differentiated is as large as a sum: it may have been divided afterwards."""
    found, chance = course(history), chance_loss(history)
    return is_summed(history) and bool(found and chance and found.first > 0.3 * chance)


# -- What comes out of the last layer ----------------------------------------------------------

_PROBABILITY = 1e-3
_LOGARITHM_OF_RELU = re.compile(
    r"\bLog(2|10)?( (Clone|Squeeze|Unsqueeze|View|Clamp\w*|Select|Slice|Maximum))* Relu\b"
)
_BOUNDED = ("Sigmoid", "sigmoid", "Tanh", "tanh", "Softmax", "softmax", "ReLU", "relu",
            "Hardtanh", "hardtanh", "ReLU6", "relu6", "Softsign", "LogSigmoid")  # fmt: skip
_BOUNDS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "relu": (0.0, math.inf), "softmax": (0.0, 1.0),
           "hardtanh": (-1.0, 1.0), "relu6": (0.0, 6.0)}  # fmt: skip
_OF_PROBABILITIES = ("SparseCategoricalCrossentropy", "CategoricalCrossentropy", "binary_cross_entropy")  # fmt: skip
_ROUNDED = 5e-3
"""How far probabilities in bfloat16 add up to something else than 1: each is off by 1/256 of itself at most."""


def _no_logarithms(history: TrainingHistory) -> Sign | None:
    """Numbers above 0 where the loss takes logarithms of probabilities."""
    functions = ("nll_loss", "ctc_loss")  # What kl_div is given, loss_wrong compares.
    above = [
        iteration
        for iteration in history.iterations
        if iteration.loss_function in functions and iteration.output.get("max", 0.0) > _PROBABILITY
    ]
    if len(above) < LEAST:
        return None
    text = (
        f"{above[0].loss_function} expects log-probabilities, which are at most 0, but receives values up to "
        f"{above[0].output['max']:.3g}."
    )
    return Sign(text, output_place(history, "") or loss_place(history), above[0].number)


def _logarithm_of_relu(history: TrainingHistory) -> Sign | None:
    """A loss that takes the logarithm of what a ReLU returns, as of a variance: where it is 0 there is no gradient."""
    for record in history.backwards:
        heads = " ".join(name.partition("Backward")[0] for name in record.get("graph", ()))
        if _LOGARITHM_OF_RELU.search(heads):
            path = next(
                (path for path, kind in reversed(history.order) if kind.lower() == "relu"), ""
            )
            text = "The loss takes the logarithm of the output of a ReLU: where that is 0, it has no gradient and stays 0."
            return Sign(text, output_place(history, path), layer=path.partition(":")[0])
    return None


def _other_dimension(history: TrainingHistory, iteration: Iteration) -> Test:
    """What the loss is given is normalized over another dimension than that of the classes."""
    normalized = iteration.relations.get("normalized")
    if not normalized:
        return None
    if 1 in normalized:
        return True
    softmax = next((s for s in iteration.softmaxes if s["dim"] == normalized[0]), None)
    place = place_of(softmax) if softmax else loss_place(history)
    text = (
        f"{iteration.loss_function} expects classes in dimension 1, but the probabilities that it receives add up to 1 over dimension "
        f"{normalized[0]}."
    )
    return Sign(text, place)


def _of_one_value(history: TrainingHistory, iteration: Iteration) -> Test:
    """A softmax over a dimension of size 1, which is 1 whatever the model computes."""
    for softmax in iteration.softmaxes:
        shape, dimension = softmax["shape"], softmax["dim"]
        # An attention may have one key only.
        is_attention = len(shape) > 2 and dimension == len(shape) - 1
        if shape and shape[dimension] == 1 and not is_attention:
            text = (
                f"{softmax['function']} over dimension {dimension} of {shape}: over a single value it is constant, and no "
                "gradient passes."
            )
            return Sign(text, place_of(softmax))
    return True if iteration.softmaxes else None


def _over_the_batch(history: TrainingHistory, iteration: Iteration, *, last: bool) -> Test:
    """A softmax over the examples of the batch, or over the queries of an attention; the last one, or one within the model."""
    if not iteration.softmaxes or not iteration.inputs:
        return None
    batch = iteration.inputs[0]["shape"][0] if iteration.inputs[0]["shape"] else 0
    # A model that answers once for a set may weigh its elements, which are the first dimension.
    by_example = iteration.output.get("shape", ())[:1] == [batch]
    for softmax in iteration.softmaxes:
        shape, dimension = softmax["shape"], softmax["dim"]
        over_first = by_example and len(shape) > 1 and dimension == 0
        over_batch = over_first and shape[0] == batch and batch not in shape[1:]
        square = len(shape) > 2 and shape[-1] == shape[-2] > 2 and dimension == len(shape) - 2
        alone = not any(s["shape"] == shape and s["dim"] != dimension for s in iteration.softmaxes)
        of_layers = [iteration.layers.get(path, {}).get("shape") for path, _ in history.order[-1:]]
        if (
            (over_batch or square)
            and alone
            and last == (shape in (iteration.output.get("shape"), *of_layers))
        ):
            what = "the examples of the batch" if over_batch else "queries instead of keys"
            text = f"{softmax['function']} over dimension {dimension} of {shape} normalizes over {what}."
            return Sign(text, place_of(softmax))
    return True


def _logarithm_of_no_probability(history: TrainingHistory) -> Sign | None:
    """A loss that is no number, since it takes the logarithm of what may be zero or less."""
    kind = _last(history)[1].lower()
    for record in history.nonfinite if kind not in ("softmax", "sigmoid") else ():
        for operator in record.get("operators", ()):
            values = operator["saved"].get("self", {})
            logs = operator["operator"] in ("LogBackward0", "Log2Backward0", "Log10Backward0")
            if logs and (values.get("negative") or values.get("zeros")):
                text = f"The loss takes the logarithm of the output, which is zero or less: {values['min']:.3g}."
                fix = "End the model with softmax or sigmoid, or better, use cross_entropy on its logits."
                return _of_output(history, text, 0.84, fix)
    return None


def _output_unlike_loss(history: TrainingHistory) -> Sign | None:
    """The output that the loss receives, compared with the loss function and the labels."""
    looked = [iteration for iteration in judged(history) if iteration.target]
    if len(looked) < 3:
        return None
    function, kind = looked[0].loss_function, _last(history)[1].lower()
    low = min(iteration.output["min"] for iteration in looked)
    high = max(iteration.output["max"] for iteration in looked)
    if function == "cross_entropy":
        return _of_classes(history, looked, low, kind)
    if kind == "softmax" and looked[0].output["shape"][-1:] == [1]:
        fix = "End the model with a sigmoid, or use one output per class."
        return _of_output(history, "A softmax over one value is always 1.", 0.93, fix)
    if function in _OF_PROBABILITIES and (low < -1e-4 or high > 1 + 1e-4):
        text = (
            f"{function} expects probabilities, but receives values from {low:.3g} to {high:.3g}."
        )
        fix = "End the model with softmax (sigmoid for two classes), or pass from_logits=True to the loss."
        return _of_output(history, text, 0.9, fix)
    if function == "binary_cross_entropy_with_logits" and low >= 0 and high <= 1:
        certain = kind in ("sigmoid", "softmax")
        text = f"The loss applies a sigmoid itself, but receives probabilities ({low:.2g} to {high:.2g})."
        fix = "Remove the sigmoid from the model."
        is_sign = certain or high - low < 0.999
        return _of_output(history, text, 0.9 if certain else 0.5, fix) if is_sign else None
    if function in NUMERIC:
        return _of_numbers(history, looked, low, high, kind)
    return None


def _of_classes(
    history: TrainingHistory, looked: list[Iteration], low: float, kind: str
) -> Sign | None:
    sums = [iteration.output for iteration in looked if "sums" in iteration.output]
    even = all(abs(of["sums"] - 1) < _ROUNDED and of["sums_spread"] < _ROUNDED for of in sums)
    if sums and low >= 0 and even:
        text = "cross_entropy applies softmax itself, but receives probabilities: the rows add up to 1."
        fix = "Remove the softmax from the model, or use log_softmax and nll_loss."
        return _of_output(history, text, 0.95, fix)
    # What is computed after the activation, by no layer, has other bounds.
    if kind == "softmax" or low < _BOUNDS.get(kind, (math.inf,))[0] - _ROUNDED:
        return None
    zeros = max(iteration.output.get("zeros", 0.0) for iteration in looked)
    certain = 0.86 if kind != "relu" or zeros > 0.2 else 0.6
    text = f"The logits for cross_entropy pass through {kind}, which restricts their range ({low:.2g} and more)."
    # With a sigmoid no class can ever be more than e times as likely as another.
    weaker = 0.45 if kind != "sigmoid" and does_well(history) else 0.0
    fix = "Remove the activation after the last layer."
    return _of_output(history, text, certain - weaker, fix)


def _of_numbers(
    history: TrainingHistory, looked: list[Iteration], low: float, high: float, kind: str
) -> Sign | None:
    bounds = _BOUNDS.get(kind)
    if bounds is None or does_well(history):
        return None
    least = min(iteration.target["min"] for iteration in looked)
    most = max(iteration.target["max"] for iteration in looked)
    span = max(most - least, 1e-12)
    # What is scaled after its activation can reach more.
    if low < bounds[0] - 0.01 * span or high > bounds[1] + 0.01 * span:
        return None
    if max(bounds[0] - least, most - bounds[1]) / span <= 0.05:
        return None
    text = f"Targets range from {least:.3g} to {most:.3g}, but the final {kind} can only return {low:.3g} to {high:.3g}."
    return _of_output(history, text, 0.9, "Remove the last activation for regression.")


def _last(history: TrainingHistory) -> tuple[str, str]:
    """The last layer or function of a forward pass, when it is an activation; else empty."""
    for path, kind in reversed(history.order):
        if kind in _BOUNDED:
            return path, kind
        if not kind.startswith(("Flatten", "Unflatten", "Identity", "Dropout")):
            break
    return "", ""


def _of_output(history: TrainingHistory, text: str, confidence: float, fix: str) -> Sign:
    path = _last(history)[0]
    place = output_place(history, path)
    if not path or history.layer(path) is None:
        path = next((p for p, _ in reversed(history.order) if ":" not in p), "")
    layer = path.partition(":")[0]
    return Sign(text, place, layer=layer, confidence=confidence, fix=fix)


# -- How much each example counts --------------------------------------------------------------

_APART = 1000.0
_LABELS = 100
_KINDS_FIT = 0.2
"""Natural logarithm by which the ratio of two weights may differ from that of frequencies."""


def _weights_follow_classes(history: TrainingHistory) -> Sign | None:
    """The frequent class has the large weight, and the rare one the small."""
    shares = classes(history)
    for loss in history.losses:
        weights = dict(enumerate(loss.get("weight") or ()))
        if len(weights) == 1 and set(shares) == {0, 1}:
            weights = {0: 1.0, 1: weights[0]}  # ``pos_weight``
        if len(weights) < 2 or set(shares) - set(weights) or len(shares) < 2:
            continue
        if sum(sum(i.target.get("classes", {}).values()) for i in history.iterations) < _LABELS:
            continue
        often = max(shares, key=lambda c: shares[c])
        # Of several rare classes none may be much rarer than another.
        rare = [c for c in shares if shares[often] > 2 * shares[c]]
        if rare and all(weights[often] > 1.5 * weights[c] > 0 for c in rare):
            least = min(rare, key=lambda c: shares[c])
            text = (
                f"Class {often}, {percent(shares[often])} of the labels, has the weight {weights[often]:.3g}, and class {least}, "
                f"{percent(shares[least])} of them, {weights[least]:.3g}: the weights are those of the frequencies, not their inverse."
            )
            return Sign(text, loss_place(history, "weight", "pos_weight"))
    return None


def _weights_apart(history: TrainingHistory) -> Sign | None:
    """Class weights that are zero or far apart."""
    for loss in history.losses:
        numbers = [float(value) for value in loss.get("weight") or ()]
        if numbers and (min(numbers) <= 0 or max(numbers) > _APART * min(numbers)):
            text = f"The class weights range from {min(numbers):g} to {max(numbers):g}."
            place = loss_place(history, "weight", "pos_weight")
            return Sign(text, place, weaker=0.45 if does_well(history) else 0.0)
    return None


def _divided_by_nothing(history: TrainingHistory) -> Sign | None:
    """A loss that is no number, since the weights by whose sum it is divided are all zero."""
    for record in history.nonfinite:
        for operator in record.get("operators", ()):
            zeros = operator["saved"].get("other", {}).get("zeros", 0)
            if operator["operator"] == "DivBackward0" and zeros > 0 and operator["depth"] <= 3:
                text = "The loss is divided by a sum of zero: all example weights are zero."
                return Sign(text, place_of(record), int(record["iteration"]))
    return None


def _loss_without_examples(history: TrainingHistory) -> Sign | None:
    """A loss that is zero or far below that of guessing, while most examples are classified wrongly."""
    found, accuracy, chance = course(history), train_accuracy(history), chance_loss(history)
    most = max(classes(history).values(), default=1.0)
    # Of several losses the accuracy may be that of another one.
    several = any(sum(call.kind == "loss" for call in cycle.calls) > 1 for cycle in history.cycles)
    place = loss_place(history, "weight", "pos_weight")
    if found and found.start == found.end == 0 and (accuracy is None or accuracy < 0.9):
        return Sign("The loss is exactly zero from the first iteration on.", place, weaker=0.24)
    if not found or not chance or accuracy is None or not is_classifier(history) or several:
        return None
    if found.end >= 0.3 * chance or found.fall <= 0.5 or accuracy >= min(0.8, most + 0.05):
        return None
    text = (
        f"The loss is {found.end:.3g}, far below the {chance:.3g} of guessing, but only {percent(accuracy)} "
        "of the examples are classified correctly: most examples have almost no weight."
    )
    return Sign(text, place, evidence={"loss": found.end, "accuracy": accuracy})


def _draws_follow_classes(history: TrainingHistory) -> Sign | None:
    """A sampler whose weights are proportional to how many examples have them: the frequent kind is drawn still more often."""
    for loader in history.loaders:
        kinds = sorted((count, weight) for weight, count in loader.get("drawn") or ())
        if len(kinds) < 2 or kinds[-1][0] < 2 * kinds[0][0] or kinds[0][1] <= 0:
            continue
        ratios = [np.log(weight / count) for count, weight in kinds]
        if max(ratios) - min(ratios) < _KINDS_FIT:
            (rare, low), (often, high) = kinds[0], kinds[-1]
            text = (
                f"The sampler draws each of the {often} examples of the largest kind {high / low:.3g} times as often as each of "
                f"the {rare} of the smallest: the weights follow the frequencies, not their inverses."
            )
            return Sign(text, setting_place(place_of(loader), "sampler", 3, "DataLoader"))
    return None


RELATIONS: Sequence[Row] = (
    Row("loss_wrong", in_cycles(_negated), 0.92, "Minimize the loss, not its negative."),
    Row("loss_wrong", _minimizes_what_should_grow, 0.92, "Minimize its negative, or pass maximize=True to the optimizer.", kind=EvidenceKind.SOURCE),
    Row("loss_wrong", in_iterations(_is_bootstrapped), 0.9, "Compute the target within torch.no_grad(), or detach() it."),
    Row("loss_wrong", in_iterations(_is_exchanged), 0.95, "Pass the output of the model first, and the target second."),
    Row("last_activation_wrong", _no_logarithms, 0.93, "Apply log_softmax first."),
    *(Row(contract.fault, _breach(contract), 0.9, contract.fix, kind=EvidenceKind.SOURCE) for contract in CONTRACTS),
    Row("last_activation_wrong", _logarithm_of_relu, 0.93, "Use softplus or exp: they are above 0 and have a gradient everywhere."),
    Row("loss_wrong", in_iterations(_padded), 0.88, "Pass ignore_index, or mask padding before the mean."),
    Row("last_activation_wrong", in_iterations(_other_dimension), 0.96, "Take the softmax over the dimension of the classes."),
    Row("last_activation_wrong", in_iterations(_of_one_value, 3), 0.95, "Use a sigmoid for one output, or give softmax the dimension of the classes."),
    Row("activation_wrong", in_iterations(partial(_over_the_batch, last=False)), 0.9, "Take the softmax over the last dimension, that of the keys."),
    Row("last_activation_wrong", in_iterations(partial(_over_the_batch, last=True)), 0.9, "Take the softmax over the dimension of the classes."),
    Row("loss_wrong", in_iterations(_is_spread_out), 0.95, "Give both the same shape, for example with squeeze(1)."),
    Row("loss_wrong", in_iterations(partial(share_at_least, name="blank", least=1e-9, place=lambda history: loss_place(history, "blank"),
        functions=("ctc_loss",), text="{} of the labels are the blank of the CTC loss, which is not a valid label.")), 0.95,
        "Reserve for the blank an index that is not a label."),
    Row("sample_weights_wrong", _weights_follow_classes, 0.92, "Weight each class by the inverse of its frequency."),
    Row("sample_weights_wrong", _weights_apart, 0.9, "Weight each class by the inverse of its frequency, and none by zero."),
    Row("sample_weights_wrong", _divided_by_nothing, 0.82, "Check the weights and masks of the examples; skip batches whose weights sum to zero."),
    Row("sample_weights_wrong", _loss_without_examples, 0.84, "Check the weights and masks that the loss is multiplied by.", kind=EvidenceKind.ESTIMATE),
    Row("sample_weights_wrong", _draws_follow_classes, 0.92, "Weight each example by the inverse of the frequency of its class."),
)  # fmt: skip
CURVES: Sequence[Row] = (
    Row("loss_wrong", _loss_unlike_task, 0.6, kind=EvidenceKind.EFFECT),
    Row("last_activation_wrong", _logarithm_of_no_probability, 0.84),
    Row("last_activation_wrong", _output_unlike_loss, 0.9),
)  # fmt: skip
