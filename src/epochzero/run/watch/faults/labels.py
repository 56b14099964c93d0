"""Labels and targets: whether they belong to their inputs, and whether the output can reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from epochzero.run.watch.faults._signals import (
    NUMERIC,
    OF_CLASSES,
    chance_loss,
    classes,
    course,
    does_well,
    evaluations,
    evaluations_are_worse,
    is_classifier,
    is_harmed,
    judged,
    learns_nothing,
    mean_and_spread,
    neighbors,
    tested_accuracies,
)
from epochzero.run.watch.faults._table import SHARE, Row, Sign, Test, in_iterations, percent
from epochzero.run.watch.history import Iteration, TrainingHistory
from epochzero.run.watch.lines.contracts import reordered
from epochzero.run.watch.lines.data import label_place, noise_place, target_place
from epochzero.run.watch.lines.loss import loss_place
from epochzero.run.watch.lines.settings import place_of
from epochzero.run.watch.model import EvidenceKind, SourceLine

SAME = 0.999
"""Share of targets that are the token at a fixed distance, from which on they are meant to be it."""
INDEXED = ("cross_entropy", "nll_loss")
_ONE_CLASS = 12
_NEIGHBORS = 48
_REPEATED = 32
_AS_BY_CHANCE = 0.85
"""Of what labels that are independent of their examples would differ."""
_MOST_ALIKE = 0.8
"""Share of pairs with the same label by chance: with hardly more than one class nothing is known."""

# -- Relations ---------------------------------------------------------------------------------


def share_at_least(
    history: TrainingHistory,
    iteration: Iteration,
    *,
    name: str,
    least: float,
    text: str,
    place: Callable[[TrainingHistory], SourceLine | None],
    functions: Sequence[str] = (),
) -> Test:
    """A relation that is recorded as a share, for which no target of these losses may reach a limit."""
    if not iteration.target or (functions and iteration.loss_function not in functions):
        return None
    share = float(iteration.relations.get(name) or 0)
    text = text.format(percent(share))
    return Sign(text, place(history), evidence={"share": share}) if share >= least else True


def _lagging(history: TrainingHistory, iteration: Iteration) -> Test:
    """The target of each position is its own input, the one before, or the next but one."""
    lags = iteration.relations.get("lags")
    if not lags:
        return None
    before, same, following, second = lags
    if following >= SAME or max(before, same, second) < SAME:
        return True
    what = (
        "the input at its own position: the model only has to copy"
        if same >= SAME
        else "the input before it, which the model has seen"
        if before >= SAME
        else "the input two positions ahead: targets are shifted twice"
    )
    return Sign(f"Each target is {what}.", target_place(history))


def _unrelated_noise(history: TrainingHistory) -> Sign | None:
    """The target is noise that is not in the input."""
    found = [
        (float(iteration.relations["noise"]), int(iteration.relations["pairs"]))
        for iteration in history.iterations
        if "noise" in iteration.relations
    ]
    pairs = sum(count for _, count in found)
    if len(found) < 5 or pairs < 1000 or len(found) < SHARE * len(history.iterations):
        return None
    mean = sum(value * count for value, count in found) / pairs
    if abs(mean) > 5 / pairs**0.5:
        return None
    text = (
        f"The target is noise that is independent of the input (correlation {mean:.3f} over {pairs} values): it cannot be "
        "predicted."
    )
    return Sign(text, target_place(history) or loss_place(history), evidence={"correlation": mean})


def _one_label(history: TrainingHistory, *, binary: bool) -> Sign | None:
    """All labels are the same, of a loss for two classes or of one for as many as the model has outputs."""
    seen = [i for i in history.iterations if i.target and i.loss_function]
    # Each part of an adversarial loss may have one class.
    parts = any(sum(call.kind == "loss" for call in cycle.calls) > 1 for cycle in history.cycles)
    early = len(history.epochs) < 2 and not history.ended
    if len(seen) < max(_ONE_CLASS, SHARE * len(history.iterations)) or parts or early:
        return None
    values = {iteration.target[end] for iteration in seen for end in ("min", "max")}
    label = f"All labels are {min(values):g}"
    if binary:
        of_two = all(i.loss_function.startswith("binary_cross_entropy") for i in seen)
        if (
            len(values) > 1
            or not of_two
            or not len(history.optimizers) == len(history.loss_by_line) == 1
        ):
            return None
        place = target_place(history) or label_place(history)
        return Sign(f"{label}: the loss demands the same output for every example.", place)
    rows, classes = [*seen[0].output["shape"], 0, 0][:2]
    indexed = all(iteration.loss_function in INDEXED for iteration in seen)
    # Each example compared with all of the batch: one label for all would be a column, as of a memory bank.
    pairs = rows == classes and list(seen[0].target["shape"]) == [rows]
    if len(values) > 1 or classes < 2 or not indexed:
        return None
    if all(iteration.direct for iteration in seen):
        text = f"{label}, and the model has {classes} outputs: it learns to ignore its input."
        return Sign(text, label_place(history))
    text = f"{label}, and the loss compares {rows} examples with each other: the label of each must be its row number."
    return Sign(text, label_place(history), fix="Use torch.arange(batch_size).") if pairs else None


def _pairs_apart(history: TrainingHistory) -> Sign | None:
    """The two inputs of each example belong together, since their row number is the label, and come with others the next time."""
    # Of the same class each is right for the other, and something is learned.
    if not learns_nothing(history):
        return None
    seen: dict[tuple[int, str], str] = {}
    again, different = [0, 0], [0, 0]
    for iteration in filter(_are_pairs, history.iterations):
        left, right = (tensor.get("rows", ()) for tensor in iteration.inputs[:2])
        for pair in zip(left, right, strict=False):
            for side, (own, other) in enumerate((pair, pair[::-1])):
                again[side] += (side, own) in seen
                different[side] += seen.get((side, own), other) != other
                seen[side, own] = other
    share = min(d / a if a >= _REPEATED else 0.0 for d, a in zip(different, again, strict=True))
    if share < _AS_BY_CHANCE:
        return None
    text = (
        f"The loss expects the two inputs of each row to belong together, and in {percent(share)} of the cases in which an example comes "
        "again, it comes with another one."
    )
    several = len(history.loaders) > 1
    place = place_of(history.loaders[0]) if several else label_place(history, order=True)
    return Sign(text, place, evidence={"different": share})


def _are_pairs(iteration: Iteration) -> bool:
    """Whether the label of each example is its row number: it belongs to the other input of its row."""
    labels = iteration.row_labels
    return len(iteration.inputs) > 1 < len(labels) and labels == tuple(range(len(labels)))


def _denoises_nothing(history: TrainingHistory, iteration: Iteration) -> Test:
    """The target is the input with the noise that the program has added to it."""
    if iteration.loss_function not in NUMERIC:
        return None
    if not iteration.relations.get("identical"):
        return True
    noise = noise_place(history)
    if noise is None:
        return True
    text = "The target is the noisy input itself: the model only has to copy it."
    return Sign(text, noise)


# -- Curves ------------------------------------------------------------------------------------

_PAIRS = 200
_MORE, _LEAST_CHANCE = 0.08, 0.01
_EARLY = 200
_RARE_ARE_OTHERS = 0.85
_FAR = 8.0


def _contradictions(history: TrainingHistory) -> Sign | None:
    """The same example comes with different labels."""
    seen: dict[str, int] = {}
    again = different = since = 0
    for iteration in history.iterations:
        tensor = next(iter(iteration.inputs), {})
        is_number = "float" in tensor.get("dtype", "")
        if not iteration.row_labels or not is_number or _are_pairs(iteration):
            continue
        for row, label in zip(tensor.get("rows", ()), iteration.row_labels, strict=False):
            again += row in seen
            if seen.get(row, label) != label:
                different += 1
                since = since or iteration.number
            seen[row] = label
    by_chance = 1 - sum(share * share for share in classes(history).values())
    # Labels that people gave, words near a word, or actions in one state, differ as well, but less than by chance.
    least = _AS_BY_CHANCE * max(by_chance, 0.2) * again
    if again < _REPEATED or different <= least or does_well(history):
        return None
    text = f"Repeated examples have a different label in {percent(different / again)} of cases."
    evidence = {"again": float(again), "different": float(different)}
    return Sign(text, label_place(history, order=True), since, evidence=evidence)


def _unlike_neighbors(history: TrainingHistory) -> Iterator[Sign]:
    """Neighbors agree no more than by chance."""
    pairs, agreement, chance = neighbors(history.iterations)
    if _are_incomparable(pairs, chance):
        return
    if agreement > chance + _MORE * (1 - chance) or does_well(history):
        return
    most, tested = max(classes(history).values(), default=1.0), tested_accuracies(history)
    # Of rare classes neither neighbors nor accuracy show that they are learned, but the loss does.
    harmed = is_harmed(history)
    if harmed is False or (harmed is None and most > _RARE_ARE_OTHERS):
        return
    # Early a loss lies above that of chance, whatever the labels are.
    if not history.ended and (len(tested) < 5 or history.count < _EARLY):
        return
    # Raw inputs may hide a class that a network finds: what it generalizes decides.
    if tested and max(tested) > most + 0.15 * (1 - most):
        return
    yield Sign(
        f"The nearest neighbor has the same label in {percent(agreement)} of cases; by chance it would in {percent(chance)}. Evaluations "
        "are no better than chance.",
        label_place(history, order=True),
        evidence={"agreement": agreement, "chance": chance},
        confidence=0.7 if tested else 0.4,
        fix="Print inputs with their labels. Check whether only the inputs or only the labels are sorted, shuffled or truncated.",
    )


def _are_incomparable(pairs: int, chance: float) -> bool:
    """Whether there are few pairs, or no two examples have the same label, as in pairs of one batch."""
    return pairs < _PAIRS or chance < _LEAST_CHANCE


def _independent(history: TrainingHistory) -> Sign | None:
    """Where examples cannot be compared: nothing is learned, and whatever else is wrong has stronger signs."""
    pairs, _, by_chance = neighbors(history.iterations)
    found, chance = course(history), chance_loss(history)
    if not _are_incomparable(pairs, by_chance) or not learns_nothing(history) or found is None:
        return None
    text = (
        f"Weights change, but after {history.count} iterations the loss is {found.end:.4g}; if labels were independent of inputs, it would "
        f"be {chance:.4g}."
    )
    return Sign(text, label_place(history, order=True))


def _label_range(history: TrainingHistory) -> Sign | None:
    """Labels outside of what the loss takes, a class that never occurs at the end, or far targets."""
    looked = [iteration for iteration in judged(history) if iteration.target]
    if len(looked) < 3:
        return None
    function, place = looked[0].loss_function, label_place(history)
    low = min(iteration.target["min"] for iteration in looked)
    high = max(iteration.target["max"] for iteration in looked)
    found = course(history)
    if function == "ctc_loss" and low <= 0 and found is not None and found.end < 0:
        text = f"The CTC loss is negative, {found.end:.3g}: labels starting at {low:g} include the blank."
        fix = "Labels must start at 1 if the blank is 0."
        return Sign(text, place, confidence=0.9, fix=fix)
    if function.startswith("binary_cross_entropy") and (low < -0.01 or high > 1.01):
        text = f"{function} expects labels from 0 to 1, but they range from {low:g} to {high:g}."
        return Sign(text, place, confidence=0.95, fix="Map the labels to 0 and 1.")
    if does_well(history):
        return None
    if function in OF_CLASSES and len(looked[0].output["shape"]) > 1:
        shares, outputs = classes(history), looked[0].output["shape"][1]
        count = sum(sum(it.target.get("classes", {}).values()) for it in history.iterations)
        if set(shares) == set(range(1, outputs)) and count > 20 * outputs:
            text = f"Class 0 of {outputs} never occurs; the labels range from {min(shares)} to {max(shares)}."
            fix = "Labels must start at 0: subtract 1 and remove one output."
            return Sign(text, place, confidence=0.8, fix=fix)
    if function in NUMERIC:
        mean, spread = (
            float(np.mean([it.target[what] for it in looked])) for what in ("mean", "std")
        )
        begins, size = looked[0].output, max(abs(mean), spread)
        near = abs(begins["mean"] - mean) < spread and begins.get("std", 0.0) > 0.1 * spread
        if size > _FAR and not near:
            text = (
                f"The targets have a mean of {mean:.4g} and a standard deviation of {spread:.4g}; outputs start at about "
                f"{begins['mean']:.3g}."
            )
            fix = "Scale the targets to mean 0 and standard deviation 1, and invert the scaling for predictions."
            return Sign(text, place, confidence=0.72 if size > 30 else 0.6, fix=fix)
    return None


def _targets_of_evaluations(history: TrainingHistory) -> Sign | None:
    """Targets of the training that lie where those of the evaluations do not."""
    trained = [iteration.target for iteration in history.iterations if iteration.target]
    tested = [evaluation.target for evaluation in evaluations(history) if evaluation.target]
    judged_targets = [iteration for iteration in judged(history) if iteration.target]
    if min(len(trained), len(judged_targets)) < 3 or len(tested) < 2 or is_classifier(history):
        return None
    (mean, spread), (other, width) = mean_and_spread(trained), mean_and_spread(tested)
    wider, narrower = max(spread, width, 1e-12), max(min(spread, width), 1e-12)
    apart = abs(mean - other) > 1.5 * wider or wider > 4 * narrower
    if not apart or evaluations_are_worse(history) is False:
        return None
    text = f"Training targets have mean {mean:.3g} and standard deviation {spread:.3g}, evaluation targets have {other:.3g} and {width:.3g}."
    return Sign(text, label_place(history))


RELATIONS: Sequence[Row] = (
    Row("labels_wrong", in_iterations(_lagging), 0.95, "The target of a position is the token after it: shift once, here or in the model."),
    Row("labels_wrong", lambda history: Sign(*found) if (found := reordered(history)) else None, 0.9, "Put inputs and labels in order with the same permutation.", kind=EvidenceKind.SOURCE),
    Row("labels_wrong", in_iterations(partial(share_at_least, name="excluded", least=0.5, place=target_place, functions=INDEXED,
        text="The target of {} of the rows is a class that the mask excludes: the loss cannot fall."), 3), 0.93,
        "Use targets that are not masked: check offsets and the mask of the diagonal."),
    Row("labels_wrong", in_iterations(partial(share_at_least, name="ends", least=SAME, place=target_place, functions=INDEXED,
        text="{} of the padded texts end with the token of the padding, and the loss ignores it: the model never learns to end.")), 0.93,
        "Ignore labels where the attention mask is 0, not where the token is that of the padding."),
    Row("labels_wrong", _unrelated_noise, 0.95, "Use the noise that was added to the input as the target.", kind=EvidenceKind.ESTIMATE),
    Row("labels_wrong", _pairs_apart, 0.94, "Shuffle both inputs with the same permutation: one data set that has both, and one loader."),
    Row("label_range_wrong", partial(_one_label, binary=False), 0.94, "Print the labels before the loss. Do not scale them, and cast them only once."),
    Row("labels_wrong", partial(_one_label, binary=True), 0.93, "Print the labels before the loss: both answers must occur."),
    Row("labels_wrong", in_iterations(_denoises_nothing), 0.94, "Use the clean example, or the noise, as the target, and add noise to a copy."),
)  # fmt: skip
CURVES: Sequence[Row] = (
    Row("labels_wrong", _contradictions, 0.92, "Inputs and labels are shuffled separately: shuffle both with the same permutation.", kind=EvidenceKind.EFFECT),
    Row("labels_wrong", _unlike_neighbors, 0.7, kind=EvidenceKind.EFFECT),
    Row("labels_wrong", _independent, 0.54,
        "Print inputs with their labels. Check whether only the inputs or only the labels are sampled, sorted or truncated.", "loss", kind=EvidenceKind.ESTIMATE),
    Row("label_range_wrong", _targets_of_evaluations, 0.85, "Scale both with the mean and standard deviation of the training data.", kind=EvidenceKind.ESTIMATE),
    Row("label_range_wrong", _label_range, 0.9, kind=EvidenceKind.EFFECT),
)  # fmt: skip
