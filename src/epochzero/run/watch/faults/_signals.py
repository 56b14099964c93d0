"""What several faults ask of a history: how the loss went, how far weights moved, what the labels are like.

All of it is computed from numbers that were sampled; what cannot be computed is None or empty.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from epochzero.run.watch.faults._table import percent
from epochzero.run.watch.history import (
    EvaluationPass,
    Iteration,
    ModelLayer,
    Parameter,
    Record,
    Series,
    TrainingHistory,
)

_Answer = TypeVar("_Answer")
MOST_CLASSES = 200
_WORSE = 0.1
_SURE = 3.0
"""Standard errors beyond which a difference is no accident of the batches."""
_ENOUGH = 64
_LONG, _FAR = 100, 0.5
"""Iterations, and a distance of the weights relative to their size, in which something is learned if there is anything."""
_NORMAL = np.array([NormalDist().inv_cdf((n + 0.5) / 200) for n in range(200)])
"""Numbers that lie as a normal distribution does."""
OF_CLASSES = (
    "cross_entropy", "nll_loss", "SparseCategoricalCrossentropy", "CategoricalCrossentropy",
)  # fmt: skip
"""Losses for one class of several, of torch and of Keras."""
NUMERIC = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
"""Losses for numbers."""
_OF_TWO = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
ADAPTIVE = (
    "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Lion", "Adadelta",
)  # fmt: skip
"""Optimizers whose steps have a size of their own."""
NORMALIZATIONS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")


_ROUNDING = 1e-3
"""Of the size of a parameter: a fingerprint is a sum of up to 256 of its elements."""


@dataclass(frozen=True, slots=True)
class LossCourse:
    """How a loss went.

    Attributes:
        count: values so far.
        first: the very first value.
        start, end: medians of the first and the last values.
        best: the smallest smoothed value.
        worst: the largest smoothed value after the start.
        roughness: mean size of a jump from value to value relative to the loss, over its later half.
        finite: whether all values are.
        slope: what the loss falls over its last fifth, as a share of what it fell in all.
        noise: by how much ``start`` and ``end`` differ where only the batches do: one standard error.
    """

    count: int
    first: float
    start: float
    end: float
    best: float
    worst: float
    roughness: float
    finite: bool
    slope: float
    noise: float = 0.0

    @property
    def rise(self) -> float:
        """What the loss has grown beyond what batches differ by; 0 where it has not."""
        return max(0.0, self.end - self.start - _SURE * self.noise)

    @property
    def fall(self) -> float:
        """The share of the first loss that is gone; below zero where it has grown."""
        return (self.start - self.end) / max(abs(self.start), 1e-12)


def _once(function: Callable[[TrainingHistory], _Answer]) -> Callable[[TrainingHistory], _Answer]:
    """Many faults ask the same of one history."""
    return lru_cache(maxsize=4)(function)


@_once
def course(history: TrainingHistory) -> LossCourse | None:
    """How the training loss went; None while there are too few values."""
    loss = history.loss[:, 1]
    good = loss[np.isfinite(loss)]
    # A loss that is no number at once has a course too.
    if len(good) < (1 if len(good) < len(loss) else 4):
        return None
    edge = max(2, min(len(good) // 10, 20))
    # Half a dozen values of the very beginning: a loss may fall fast.
    start = float(np.median(good[: min(edge, 3)]))
    end = float(np.median(good[-edge:]))
    # One batch is no trend: of a few dozen values at least five make one.
    width = max(1, len(good) // 20, min(5, len(good) // 4))
    smooth = np.convolve(good, np.ones(width) / width, mode="valid")
    later = good[len(good) // 2 :]
    jumps = np.abs(np.diff(later)).mean() if len(later) > 1 else 0.0
    fifth = max(4, len(smooth) // 5)
    fallen = max(start - float(smooth.min()), 1e-12)
    late = smooth[-fifth:]
    trend = (
        float(np.polyfit(np.arange(len(late)), late, 1)[0] * len(late)) if len(late) > 2 else 0.0
    )
    return LossCourse(
        count=len(loss),
        first=float(good[0]),
        start=start,
        end=end,
        best=float(smooth.min()),
        worst=float(smooth.max()),
        roughness=float(jumps / max(abs(float(np.mean(later))), 1e-12)),
        finite=len(good) == len(loss),
        slope=-trend / fallen,
        noise=_noise(good) * math.sqrt(1 / min(edge, 3) + 1 / edge),
    )


def _noise(loss: npt.NDArray[np.float64]) -> float:
    """The standard deviation of a loss about its trend, from the jumps between neighbors."""
    jumps = np.abs(np.diff(loss))
    # The median of jumps between independent normal values is 0.95 standard deviations.
    return float(np.median(jumps)) / 0.95 if len(jumps) else 0.0


@_once
def classes(history: TrainingHistory) -> Mapping[int, float]:
    """The share of each label in the training, where labels are a few whole numbers."""
    counts: dict[int, float] = {}
    for iteration in history.iterations:
        for label, count in iteration.target.get("classes", {}).items():
            if int(label) >= 0:
                counts[int(label)] = counts.get(int(label), 0.0) + count
    total = sum(counts.values())
    if not total or len(counts) > MOST_CLASSES:
        return {}
    # Where several losses are computed, as of real and of generated examples, one label in all of one loss is the
    # program's own word for it, not a label of the data.
    if len(counts) == 1 and (len(history.loss_by_line) > 1 or len(history.optimizers) > 1):
        return {}
    return {label: count / total for label, count in sorted(counts.items())}


def is_classifier(history: TrainingHistory) -> bool:
    """Whether the loss is one for classes."""
    return bool(_functions(history) & {*OF_CLASSES, *_OF_TWO})


def _functions(history: TrainingHistory) -> set[str]:
    return {iteration.loss_function for iteration in history.iterations if iteration.loss_function}


@_once
def chance_loss(history: TrainingHistory) -> float | None:
    """The loss of a model that knows the shares of the classes, or the mean of the targets, and no more.

    Where gradients are gathered over several passes, and the loss is divided by their number, so is this; where examples are
    added up, this is for all of them.
    """
    chance, found = _whole_chance(history), course(history)
    if not chance or found is None or found.first <= 0:
        return chance
    sizes = [math.prod(it.target["shape"]) for it in history.iterations if it.target.get("shape")]
    if sizes and is_summed(history):
        chance *= float(np.median(sizes))
    passes = max(1.0, float(np.median([sum(o.backwards.values()) for o in history.iterations])))
    divided = abs(math.log(found.first * passes / chance)) < abs(math.log(found.first / chance))
    return chance / passes if divided else chance


def is_summed(history: TrainingHistory) -> bool:
    """Whether a loss of the training adds up its examples, by its ``reduction``."""
    trained = [loss for loss in history.losses if not loss.get("evaluating")]
    return any(loss.get("reduction") == "sum" for loss in trained)


def _whole_chance(history: TrainingHistory) -> float | None:
    functions = _functions(history)
    found = classes(history)
    if functions & set(OF_CLASSES) and len(found) > 1:
        return -sum(p * math.log(p) for p in found.values())
    if functions & set(_OF_TWO) and set(found) <= {0, 1} and found:
        p = found.get(1, 0.0)
        return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)
    # What is multiplied with weights afterwards is of another size.
    if history.losses and all(loss.get("reduction") == "none" for loss in history.losses):
        return None
    spread = [it.target["std"] for it in history.iterations if "std" in it.target]
    if functions == {"mse_loss"} and spread:
        return float(np.mean(spread)) ** 2
    if functions == {"l1_loss"} and spread:
        return 0.8 * float(np.mean(spread))
    if functions and functions <= {"huber_loss", "smooth_l1_loss"} and spread:
        off = float(np.mean(spread)) * _NORMAL
        return float(np.mean(np.where(abs(off) < 1, off**2 / 2, abs(off) - 0.5)))
    return None


@_once
def learns_nothing(history: TrainingHistory) -> bool:
    """Whether weights move, and after all of it the loss is that of a model that knows no input."""
    found, chance = course(history), chance_loss(history)
    if not history.ended or found is None or chance is None or not found.finite:
        return False
    if found.count < _LONG or max(moved(history).values(), default=0.0) < _FAR:
        return False
    alone = max((layer.model for layer in history.layers), default=0) == 0
    return alone and 0.97 * chance < found.end < 1.2 * chance and found.best > 0.93 * chance


@_once
def train_accuracy(history: TrainingHistory) -> float | None:
    """The share of right classes in the last batches looked at."""
    shares = [batch.accuracy for batch in _last_batches(history) if batch.accuracy is not None]
    return float(np.mean(shares)) if shares else None


@_once
def _last_batches(history: TrainingHistory) -> Sequence[Iteration]:
    """Inspected iterations at the end whose accuracy is known: enough of them for a share that says something."""
    found = [iteration for iteration in history.iterations if iteration.accuracy is not None]
    last = found[-max(3, len(found) // 10) :]
    while len(last) < len(found) and sum(map(_examples, last)) < _ENOUGH:
        last = found[-2 * len(last) :]
    return last


def _examples(iteration: Iteration) -> int:
    return int(next(iter(iteration.target.get("shape", ())), 1))


@_once
def evaluations(history: TrainingHistory) -> tuple[EvaluationPass, ...]:
    """Those that are more than a call in passing, in a network that plays or teaches."""
    found = history.evaluations
    inline = (
        len(found) > 50 and len(found) > 0.5 * history.count and all(e.calls == 1 for e in found)
    )
    return () if inline else found


def first_accuracy(evaluation: EvaluationPass) -> float | None:
    """The accuracy of an evaluation, as the loss or a comparison shows it."""
    return evaluation.accuracy if evaluation.accuracy is not None else evaluation.agreement


def tested_accuracies(history: TrainingHistory) -> list[float]:
    """The accuracies of the evaluations that have one."""
    return [a for ev in evaluations(history) if (a := first_accuracy(ev)) is not None]


def _tested_losses(history: TrainingHistory) -> list[tuple[int, float]]:
    """The losses of the evaluations that have one, with their iterations."""
    return [(ev.iteration, ev.loss) for ev in evaluations(history) if ev.loss is not None]


def _tested_loss(history: TrainingHistory) -> float | None:
    """The mean loss of the last two evaluations."""
    losses = [loss for _, loss in _tested_losses(history)[-2:]]
    return float(np.mean(losses)) if losses else None


@_once
def accuracy_gap(history: TrainingHistory) -> float | None:
    """How much better the model does on its training data than in evaluations, in accuracy."""
    trained, tested = train_accuracy(history), tested_accuracies(history)
    if trained is None or not tested:
        return None
    return trained - float(np.mean(tested[-2:]))


@_once
def evaluations_are_worse(history: TrainingHistory) -> bool | None:
    """Whether the model does clearly worse there than in the training; None if unknown."""
    found, gap = course(history), accuracy_gap(history)
    if gap is not None:
        return gap > _WORSE
    tested = _tested_loss(history)
    if tested is None or found is None or not found.finite:
        return None
    return tested > found.end + 0.5 * abs(found.end)


@_once
def apart_at_once(history: TrainingHistory) -> float | None:
    """How much more accurate the training was before any example came again; None if unknown.

    What has been seen only once cannot be known by heart: a model that is better on it than in evaluations
    has seen it before, or is evaluated otherwise.
    """
    first = next(
        (loader for loader in history.loaders if loader["examples"] and loader["batch_size"]), None
    )
    if first is None:
        return None
    once = first["examples"] // first["batch_size"]
    tested = [evaluation for evaluation in evaluations(history) if evaluation.iteration <= once]
    reached = first_accuracy(tested[-1]) if tested else None
    if reached is None:
        return None
    trained = [
        (iteration.accuracy, _examples(iteration))
        for iteration in history.iterations
        if iteration.accuracy is not None and 0.5 * tested[-1].iteration <= iteration.number < once
    ]
    count = sum(examples for _, examples in trained)
    if count < 2 * _ENOUGH:
        return None
    return sum(share * examples for share, examples in trained) / count - reached


# -- What was recorded -------------------------------------------------------------------------


def first_forward(history: TrainingHistory) -> Iteration | None:
    """The first inspected iteration whose layers were seen."""
    return next((iteration for iteration in history.iterations if iteration.layers), None)


def kinds_of(history: TrainingHistory) -> Mapping[str, str]:
    """The kind of each layer, by its path."""
    return {layer.path: layer.kind for layer in history.layers}


def gradients(iterations: Iterable[Iteration]) -> list[Mapping[str, float]]:
    """The gradients of all parameters in these iterations."""
    found = (of for iteration in iterations for of in iteration.parameters.values())
    return [of["gradient"] for of in found if "gradient" in of]


def moves(history: TrainingHistory, path: str = "") -> bool:
    """Whether the parameters under a path are being changed."""
    return any(
        of.get("update", {}).get("rms", 0.0) > 0
        for iteration in history.iterations
        for name, of in iteration.parameters.items()
        if is_within(name, path)
    )


def is_within(name: str, path: str) -> bool:
    """Whether a parameter belongs to the module at a path."""
    return not path or name.startswith(f"{path}.")


def fingerprints(history: TrainingHistory) -> list[Mapping[str, float]]:
    """Those of parameters that no optimizer holds, of all iterations and evaluations that were inspected."""
    tested = [evaluation.others for evaluation in history.evaluations]
    return [*tested, *(iteration.others for iteration in history.iterations)]


def has_changed(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether a parameter that no optimizer holds was changed by other means, by more than rounding."""
    name = parameter.name
    values = [others[name] for others in fingerprints(history) if name in others]
    return bool(values) and max(values) - min(values) > _ROUNDING * parameter.values.get("rms", 0.0)


def looks_untrained(parameter: Parameter, within: float = 1.1) -> bool:
    """Whether its values lie as evenly as an initialization draws them: what was trained has outliers."""
    values = parameter.values
    return values.get("largest", 0.0) <= within * math.sqrt(3) * values.get("rms", 0.0)


def first_inputs(moments: Iterable[Iteration | EvaluationPass]) -> list[Record]:
    """The first tensor that the model is given in each of them, where there is one."""
    return [moment.inputs[0] for moment in moments if moment.inputs]


def batch_size(history: TrainingHistory) -> float | None:
    """The median of the first dimension of the inputs."""
    sizes = [of["shape"][0] for of in first_inputs(history.iterations) if of["shape"]]
    return float(np.median(sizes)) if sizes else None


def mean_and_spread(tensors: Iterable[Record]) -> tuple[float, float]:
    """The medians of their means and of their standard deviations."""
    tensors = list(tensors)
    mean, spread = (float(np.median([of[what] for of in tensors])) for what in ("mean", "std"))
    return mean, spread


def neighbors(moments: Iterable[Iteration | EvaluationPass]) -> tuple[int, float, float]:
    """Pairs of nearest examples, the share of them with the same label, and that share by chance."""
    looked = [moment.likeness for moment in moments if moment.likeness.get("pairs")]
    pairs = sum(of["pairs"] for of in looked)
    same, chance = (
        sum(of[what] * of["pairs"] for of in looked) for what in ("agreement", "chance")
    )
    return pairs, same / max(1, pairs), chance / max(1, pairs)


def rows_of(moment: Iteration | EvaluationPass) -> Sequence[str]:
    """Fingerprints of the rows of the first tensor that the model is given."""
    return moment.inputs[0].get("rows", ()) if moment.inputs else ()


def examples_in(tensor: Record) -> Sequence[str]:
    """Fingerprints of the examples of a batch, where each says which example it is.

    Of short rows of symbols or words one is often like another.
    """
    known = len(tensor["shape"]) > 1 and ("float" in tensor["dtype"] or tensor["std"] > 3)
    return tensor.get("rows", ()) if known else ()


@_once
def feeding(history: TrainingHistory) -> frozenset[str]:
    """Paths whose output a layer with weights takes, also through others; the rest are outputs or gates."""
    first = first_forward(history)
    if first is None:
        # Where outputs are not seen it can be any but the last.
        return frozenset(layer.path for layer in history.layers[:-1])
    source = {path: str(layer.get("source", "")) for path, layer in first.layers.items()}
    found: set[str] = set()
    for path in (layer.path for layer in history.layers if layer.parameters):
        at = source.get(path, "")
        while at and at not in found:
            found.add(at)
            at = source.get(at, "")
    return frozenset(found)


@_once
def does_well(history: TrainingHistory) -> bool:
    """Whether the training does what it should: a judge of effects must then be silent."""
    found = course(history)
    if found is None or not found.finite or found.end > abs(found.first):
        return False
    trained, gap = train_accuracy(history), accuracy_gap(history)
    if gap is not None and gap > 0.15:
        return False
    shares = classes(history)
    if trained is not None and is_classifier(history) and shares:
        most = max(shares.values())
        return trained > most + 0.6 * (1 - most)
    chance, tested = chance_loss(history), _tested_loss(history)
    if chance is not None:
        return (found.end if tested is None else tested) < 0.5 * chance
    agreed = [ev.agreement for ev in evaluations(history) if ev.agreement is not None]
    if len(agreed) > 1 and agreed[-1] < 0.6 and agreed[-1] < agreed[0] + 0.3:
        return False
    return found.fall > 0.7 and found.end <= found.best + 0.2 * (found.start - found.best)


def goes_wrong(history: TrainingHistory) -> bool:
    """Whether a setting that is far from usual has come to harm, in the training or in evaluations alone."""
    return not does_well(history) or overfits(history) is not None


def weights(history: TrainingHistory) -> Iterable[Parameter]:
    """Parameters that are matrices or filters and belong to layers that scale what comes in."""
    kinds = kinds_of(history)
    for parameter in history.parameters:
        # The biases of a recurrent layer of Keras are a matrix.
        is_matrix = len(parameter.shape) >= 2 and not parameter.name.endswith("bias")
        if is_matrix and "Embedding" not in kinds.get(parameter.layer, ""):
            yield parameter


def fan_in(parameter: Parameter) -> int:
    """How many numbers a unit of the layer sums up."""
    return max(1, math.prod(parameter.shape[1:]))


@lru_cache(maxsize=4096)
def ratios(history: TrainingHistory, name: str) -> Series:
    """Update relative to the weight of a parameter, rms each, over the iterations looked at."""
    update = history.parameter_series(name, "update", "rms")
    weight = history.parameter_series(name, "weight", "rms")
    if len(update) != len(weight) or not len(update):
        return np.empty((0, 2))
    values = update[:, 1] / np.maximum(weight[:, 1], 1e-12)
    return np.column_stack([update[:, 0], values])


@_once
def relative_updates(history: TrainingHistory) -> Mapping[str, float]:
    """The median of `ratios` of each trained weight."""
    found = {}
    for weight in weights(history):
        series = ratios(history, weight.name)
        if len(series) >= 3:
            found[weight.name] = float(np.nanmedian(series[:, 1]))
    return found


@_once
def moved(history: TrainingHistory) -> Mapping[str, float]:
    """How far each weight went in all, relative to its size: the sum of its relative updates."""
    found = {}
    for weight in weights(history):
        series = ratios(history, weight.name)
        if len(series) >= 2:
            number, value = series[:, 0], np.nan_to_num(series[:, 1])
            gaps = np.diff(number, append=max(history.count, number[-1] + 1))
            found[weight.name] = float((gaps * value).sum())
    return found


def weight_decay(history: TrainingHistory) -> float:
    """The strongest weight decay: of an optimizer, or as the regularizer of a layer of Keras."""
    groups = [group for record in history.optimizers for group in record.get("groups", ())]
    settings = [*groups, *(layer.settings for layer in history.layers)]
    return max((float(setting.get("weight_decay") or 0) for setting in settings), default=0.0)


def normalizations(history: TrainingHistory) -> list[ModelLayer]:
    """The normalization layers."""
    return [layer for layer in history.layers if layer.kind.startswith(NORMALIZATIONS)]


def first_bad(history: TrainingHistory) -> int:
    """The first iteration whose loss is no number, or above all of the beginning."""
    loss = history.loss
    if len(loss) < 4:
        return 0
    bound = 2 * abs(float(np.nanmedian(loss[:3, 1]))) + 1e-12
    bad = ~np.isfinite(loss[:, 1]) | (np.abs(loss[:, 1]) > bound)
    return int(loss[int(np.argmax(bad)), 0]) if bad.any() else 0


@_once
def is_augmented(history: TrainingHistory) -> bool:
    """Whether no example comes again as it was, though each should by now."""
    rows = [row for iteration in history.iterations for row in rows_of(iteration)]
    sizes = [loader["examples"] for loader in history.loaders if loader["examples"]]
    if not rows or not sizes:
        return False
    size = max(sizes)
    batch = len(history.iterations[0].inputs[0]["rows"]) if history.iterations[0].inputs else 0
    # Of so many rows this many pairs would be the same.
    expected = len(rows) ** 2 / 2 / size
    again = len(rows) - len(set(rows))
    return bool(expected > 20 and again < 0.05 * expected and history.count * batch > 1.5 * size)


def is_known_loss(history: TrainingHistory) -> bool:
    """Whether the loss is a function of torch: the size of others has no known meaning."""
    return bool(_functions(history))


@_once
def judged(history: TrainingHistory) -> tuple[Iteration, ...]:
    """The iterations with an output, of the loss function that is there most often.

    A program may measure a trivial answer before the training, or have a smaller loss next to it.
    """
    found = [iteration for iteration in history.iterations if iteration.output]
    functions = Counter(iteration.loss_function for iteration in found)
    if not functions:
        return ()
    function, _ = functions.most_common(1)[0]
    return tuple(iteration for iteration in found if iteration.loss_function == function)


@dataclass(frozen=True, slots=True)
class Overfit:
    """How much better a model does on what it has seen.

    Attributes:
        since: iteration from which on.
        text: in a sentence.
        turned: the share of the training after which the evaluations became worse; None if they did not.
        loss_ratio: the last evaluation loss relative to the best one.
    """

    since: int
    text: str
    turned: float | None
    loss_ratio: float


@_once
def overfits(history: TrainingHistory) -> Overfit | None:
    """Whether evaluations say so; None also where there are none."""
    found, losses = course(history), _tested_losses(history)
    gap = accuracy_gap(history)
    if found is None or not found.finite or not evaluations(history):
        return None
    best_at, best = min(losses, key=lambda pair: pair[1], default=(0, math.nan))
    end = float(np.mean([loss for _, loss in losses[-2:]])) if losses else math.nan
    fitted = found.fall > 0.4 or found.end < 0.5 * (chance_loss(history) or 0.0)
    worse = bool(losses) and len(losses) >= 3 and end > 1.25 * best and end > 2 * found.end
    # What is far better than guessing both times is well.
    worse = worse and end > 0.25 * (chance_loss(history) or 0.0)
    apart = gap is not None and gap > 0.18 + _gap_error(history, gap)
    if not fitted or not _comes_again(history) or not (worse or apart):
        return None
    turned = best_at / max(1, history.count) if worse else None
    if worse:
        text = f"the evaluation loss is {end:.3g}, up from {best:.3g} at iteration {best_at}; the training loss is {found.end:.3g}."
    else:
        text = f"accuracy is {percent(gap or 0.0)} higher on training data than in evaluations."
    return Overfit(best_at, text, turned, end / best if best and worse else 1.0)


def _comes_again(history: TrainingHistory) -> bool:
    """Whether the training has gone on long enough to know examples by heart."""
    rows = [row for iteration in history.iterations for row in rows_of(iteration)]
    return len(set(rows)) < len(rows) or history.count >= _LONG


def _gap_error(history: TrainingHistory, gap: float) -> float:
    """The standard error of `accuracy_gap`."""
    trained = train_accuracy(history) or 0.0
    # Evaluations one after another are of the same examples.
    tested = max(evaluation.examples for evaluation in evaluations(history)[-2:])
    return math.hypot(
        _share_error(trained, sum(map(_examples, _last_batches(history)))),
        _share_error(trained - gap, tested),
    )


def _share_error(share: float, count: float) -> float:
    """The standard error of a share of so many examples, by the rule of succession: also all of a few are no certainty."""
    likely = (share * count + 1) / (count + 2)
    return math.sqrt(likely * (1 - likely) / max(count, 1.0))


@_once
def is_harmed(history: TrainingHistory) -> bool | None:
    """Whether the training came out worse than a trivial answer, or than its own best; None if unknown."""
    found, chance = course(history), chance_loss(history)
    if found is None:
        return True if len(history.loss) and not np.isfinite(history.loss[:, 1]).any() else None
    if not found.finite or overfits(history) is not None:
        return True
    if _has_other_aims(history):
        return None
    known = _beats_a_trivial_answer(history, found, chance)
    if known is not None:
        return not known
    lost = found.end - found.best
    beyond = 0.5 * abs(found.start - found.best) + _SURE * found.noise
    return True if lost > beyond + 1e-12 else None


def _has_other_aims(history: TrainingHistory) -> bool:
    """Whether a loss may rise in a training that goes well: another player gains on it, or its targets move with the model."""
    if len(history.optimizers) > 1 or len(history.loss_by_line) > 1:
        return True
    targets = [i.target for i in history.iterations if i.target and i.loss_function in NUMERIC]
    if len(targets) < 9:
        return False
    (mean, spread), (later, width) = (
        mean_and_spread(part)
        for part in (targets[: len(targets) // 3], targets[-len(targets) // 3 :])
    )
    return abs(later - mean) > max(spread, width) or not 0.5 < spread / max(width, 1e-12) < 2


def _beats_a_trivial_answer(
    history: TrainingHistory, found: LossCourse, chance: float | None
) -> bool | None:
    """Whether it is right more often than the largest class, or its loss clearly below that of the mean."""
    shares, trained, tested = classes(history), train_accuracy(history), tested_accuracies(history)
    if shares and is_classifier(history) and (tested or trained is not None):
        most = max(shares.values())
        reached = float(np.mean(tested[-2:])) if tested else trained or 0.0
        if reached > most + 0.25 * (1 - most):
            return True
    if chance is None:
        return None
    measured = _tested_loss(history)
    reached = found.end if measured is None else measured
    # Of rare or noisy events a good model can predict little: just below chance is neither.
    return None if 0.95 * chance <= reached < chance else reached < chance


@_once
def early_updates(history: TrainingHistory) -> Mapping[str, float]:
    """The median of `ratios` of each weight over the first three iterations looked at."""
    found = {}
    for weight in weights(history):
        series = ratios(history, weight.name)
        values = series[:3, 1] if len(series) else np.empty(0)
        if len(values) and np.isfinite(values).any() and weight.values.get("rms", 0.0) > 1e-6:
            found[weight.name] = float(np.nanmedian(values))
    return found


@_once
def gradient_ratio(history: TrainingHistory) -> float | None:
    """The gradient of the first layer relative to that of the last, as medians of their rms."""
    medians = []
    for weight in weights(history):
        series = history.parameter_series(weight.name, "gradient", "rms")
        if len(series) >= 3:
            medians.append(float(np.nanmedian(series[:, 1])))
    if len(medians) < 3 or medians[-1] <= 0:
        return None
    return medians[0] / medians[-1]


def saturation(history: TrainingHistory, path: str) -> float:
    """The share of a layer's output that lies at the flat ends of its function, at the end."""
    low, high = history.layer_series(path, "low"), history.layer_series(path, "high")
    if not len(low):
        return 0.0
    return float(np.median(low[-5:, 1] + high[-5:, 1]))


@_once
def peak_updates(history: TrainingHistory) -> Mapping[str, float]:
    """The ninth decile of `ratios` of each weight, once it is not at the very beginning."""
    found = {}
    for weight in weights(history):
        series = ratios(history, weight.name)
        values = series[3:, 1][np.isfinite(series[3:, 1])] if len(series) else np.empty(0)
        if len(values) >= 5:
            found[weight.name] = float(np.quantile(values, 0.9))
    return found
