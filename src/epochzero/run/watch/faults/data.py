"""What the model is given: inputs, their order, their split, and how many there are of each kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from epochzero.run.watch.faults._experiments import repairs
from epochzero.run.watch.faults._signals import (
    NORMALIZATIONS,
    OF_CLASSES,
    accuracy_gap,
    apart_at_once,
    classes,
    course,
    does_well,
    evaluations,
    evaluations_are_worse,
    examples_in,
    first_inputs,
    is_augmented,
    is_classifier,
    is_harmed,
    is_known_loss,
    mean_and_spread,
    neighbors,
    overfits,
    rows_of,
)
from epochzero.run.watch.faults._table import Row, Sign, Test, in_iterations, percent
from epochzero.run.watch.faults.labels import SAME, share_at_least
from epochzero.run.watch.history import EvaluationPass, Iteration, Record, TrainingHistory
from epochzero.run.watch.lines.contracts import CONTRACTS, violations
from epochzero.run.watch.lines.data import (
    classes_place,
    drawn_place,
    duplication_place,
    input_place,
    mask_place,
    masking_place,
    order_place,
    preprocessing_place,
    size_place,
    split_place,
)
from epochzero.run.watch.lines.settings import place_of
from epochzero.run.watch.model import EvidenceKind

# -- Inputs ------------------------------------------------------------------------------------

_AHEAD, _ONLY, _PADDED = 0.05, 0.99, 0.1
_BATCHES = 5
_SYMBOLS, _OF_SYMBOLS = 8, 8
"""Rows of a table, and iterations in which one of them was used."""
_ZERO_ROWS = 0.2
_BY_CHANCE = 0.05
"""Rows of zeros that are to be expected among others in a batch."""
_LOOKS = 3
_MOST_CONSTANT = 0.5
"""Share of columns. A column that never varies does no harm, as the border of an image: the others must be few."""
_LARGE, _APART, _SMALL = 10.0, 100.0, 0.02


def _attends_ahead(history: TrainingHistory, iteration: Iteration) -> Test:
    """A model that predicts the next token sees it: an attention without a causal mask, or a recurrent layer of both directions."""
    lags = iteration.relations.get("lags")
    if not lags or lags[2] < SAME:
        return None
    length = iteration.inputs[0]["shape"][-1] if iteration.inputs else 0
    seen = [s for s in iteration.softmaxes if "future" in s and s["shape"][-1] == length]
    both = [of for of in history.layers if of.called and of.settings.get("bidirectional")]
    if both and not seen:
        text = f"{both[0].path} reads sequences in both directions, and the target of a position is the token after it."
        return Sign(text, both[0].place, layer=both[0].path)
    # Weights of an attention that failed are no numbers.
    if not seen or not all(s["future"] >= _AHEAD for s in seen):
        return True
    share = min(s["future"] for s in seen)
    text = f"{percent(share)} of the attention is on later positions, and the target of a position is the token after it."
    return Sign(text, place_of(seen[0]), evidence={"share": share})


def _attends_padding(history: TrainingHistory, iteration: Iteration) -> Test:
    """A mask of an attention that excludes words and leaves padding."""
    seen = [s for s in iteration.softmaxes if s.get("padded", 0.0) > _PADDED / 2]
    if not seen:
        return None
    # The attentions of an encoder have another mask than those of its decoder.
    wrong = next((s for s in seen if s["padding"] >= _ONLY), None)
    if wrong is None:
        return True
    text = f"{percent(wrong['padding'])} of the attention of tokens goes to padding: the mask is inverted."
    place = masking_place(place_of(wrong)) or mask_place(history) or place_of(wrong)
    return Sign(text, place, evidence={"share": wrong["padding"]})


def _one_symbol(history: TrainingHistory) -> Sign | None:
    """A table of many symbols of which all examples use the same one."""
    seen = history.iterations if len(history.iterations) >= _OF_SYMBOLS else ()
    codes = [{(of["name"], of["mean"]) for of in i.inputs if _is_constant_code(of)} for i in seen]
    constant = set[tuple[str, float]].intersection(*codes) if codes else set()
    for layer in history.layers if constant else ():
        rows = int(layer.settings.get("num_embeddings") or 0)
        gradients = [i.parameters.get(f"{layer.path}.weight", {}).get("gradient", {}) for i in seen]
        zeros = [of["zeros"] for of in gradients if of.get("largest")]
        if layer.kind == "Embedding" and rows >= _SYMBOLS and zeros and min(zeros) > 1 - 1.5 / rows:
            text = f"{layer.path} has {rows} rows, and all inputs are {min(constant)[1]:g}: it cannot distinguish the examples."
            return Sign(text, layer.place, layer=layer.path)
    return None


def _is_constant_code(tensor: Record) -> bool:
    """Whether an input is one whole number for several examples."""
    whole = str(tensor.get("dtype")).startswith("int")
    return whole and tensor["std"] == 0 and tensor["shape"][:1] > [1]


def _zero_rows(history: TrainingHistory, iteration: Iteration) -> Test:
    """A block of examples at one end of the batch is zero."""
    first = next(iter(iteration.inputs), None)
    if first is None or "float" not in first["dtype"] or len(first["shape"]) < 2:
        return None
    zero = [row in ("0", "-0") for row in first.get("rows", ())]
    count = sum(zero)
    if len(zero) < 4 or not _ZERO_ROWS * len(zero) <= count < len(zero):
        return True
    if not (all(zero[:count]) or all(zero[-count:])):
        return True
    # Among rows of a few numbers that are often zero, one is zero by chance.
    others = max(0.0, first.get("zeros", 0.0) - count / len(zero)) / (1 - count / len(zero))
    if len(zero) * others ** math.prod(first["shape"][1:]) > _BY_CHANCE:
        return True
    text = f"{count} of the first {len(zero)} examples of a batch are all zero, in one block."
    return Sign(text, input_place(history), evidence={"examples": float(count)})


def _no_numbers(history: TrainingHistory) -> Sign | None:
    """NaN or infinity among the inputs."""
    for iteration in history.iterations:
        for share in (tensor.get("nonfinite", 0) for tensor in iteration.inputs):
            if share > 0:
                text = f"{percent(share)} of the input values of iteration {iteration.number} are not finite."
                evidence = {"not finite": share}
                return Sign(text, input_place(history), iteration.number, evidence=evidence)
    return None


def _constant_inputs(history: TrainingHistory) -> Sign | None:
    """One value in all of a batch, or columns that never vary."""
    place = input_place(history)
    looked = first_inputs(history.iterations)
    if len(looked) < _LOOKS or not all("float" in record["dtype"] for record in looked):
        return None
    value, share = looked[0]["min"], looked[0].get("constant_columns", 0)
    if all(record["min"] == record["max"] for record in looked):
        text = f"All input values are equal: {value:g}."
        return Sign(text, place, evidence={"value": value}, confidence=0.95)
    if not all(record.get("constant_columns", 0) > _MOST_CONSTANT for record in looked):
        return None
    text, evidence = (
        f"{percent(share)} of the input columns never vary",
        {"constant columns": share},
    )
    if _learns_nothing(history):
        text = f"{text}, and the loss stays at its initial value."
        return Sign(text, place, evidence=evidence, confidence=0.78)
    if does_well(history):
        return None
    confidence = 0.6 if all(record["zeros"] > 0.9 for record in looked) else 0.45
    return Sign(f"{text}.", place, evidence=evidence, confidence=confidence)


def _learns_nothing(history: TrainingHistory) -> bool:
    found = course(history)
    return found is not None and is_known_loss(history) and history.ended and found.fall < 0.03


def _input_scale(history: TrainingHistory) -> Sign | None:
    """Large or shifted inputs, columns of very different width, or next to nothing."""
    looked = [
        of for of in first_inputs(history.iterations) if "float" in of["dtype"] and of["std"] > 0
    ]
    if len(looked) < 3 or _is_normalized_first(history):
        return None
    first = looked[len(looked) // 2]
    spread, mean, widest = first["std"], abs(first["mean"]), first.get("widest", 0.0)
    # Beside the usual column, not the narrowest: pixels at a border hardly vary in any data set.
    apart = widest / max(first.get("usual_width", 1.0), 1e-12)
    if max(spread, mean) > _LARGE and (widest == 0 or widest > _LARGE or mean > _LARGE):
        text = f"The inputs have a mean of {first['mean']:.4g} and a standard deviation of {spread:.4g}"
        certain = 0.9 if max(spread, mean) > 30 else 0.7
    elif apart > _APART and widest > 3:
        text = (
            f"The standard deviation of the input's widest column is {apart:,.0f} times the median"
        )
        certain = 0.7
    elif spread < _SMALL and mean < _SMALL:
        text, certain = f"The inputs are tiny: a standard deviation of {spread:.2g}", 0.75
    elif spread * 5 < mean:
        text = f"The mean of the inputs, {first['mean']:.3g}, is large compared with their standard deviation, {spread:.3g}"
        certain = 0.55
    else:
        return None
    # Rewards and positions have a scale of their own.
    harmless = does_well(history) or is_harmed(history) is None
    text += "; layers expect a mean of about 0 and a standard deviation of about 1."
    evidence, weaker = {"mean": first["mean"], "spread": spread}, 0.45 if harmless else 0.0
    return Sign(text, input_place(history), evidence=evidence, confidence=certain, weaker=weaker)


def _is_normalized_first(history: TrainingHistory) -> bool:
    """Whether the first layer that is called brings the inputs to scale itself."""
    kinds = (kind for _, kind in history.order if not kind.startswith("Random"))
    return next(kinds, "").startswith((*NORMALIZATIONS, "Embedding", "Normalization", "Rescaling"))


# -- Which examples, and in which order --------------------------------------------------------

_PAIRS = 200
_LEAST_EXAMPLES, _FEW_EXAMPLES = 64, 100
_SEEN_AGAIN = 0.3
_LOOKS_OF_ORDER, _BATCH = 6, 4
_MOST = 0.85


def _same_batch(history: TrainingHistory) -> Sign | None:
    """Every inspected batch is the same, since the generator that draws it begins anew each time."""
    batches = [str([of.get("rows") for of in iteration.inputs]) for iteration in history.iterations]
    if len(batches) < _BATCHES or len(set(batches)) > 1:
        return None
    found = next(violations(history, CONTRACTS[0]), None)
    return Sign(f"All batches are the same. {found[0]}", found[1]) if found else None


def _copies(history: TrainingHistory) -> Sign | None:
    """Distinct rows before an epoch can have ended; where rows are not known, what they taught by then."""
    size = max((loader["examples"] or 0 for loader in history.loaders), default=0)
    rows: list[str] = []
    for tensor in first_inputs(history.iterations):
        if tensor["shape"]:
            rows += examples_in(tensor)
        if len(rows) >= max(_LEAST_EXAMPLES, min(size, 512)):
            break
    if len(rows) >= _LEAST_EXAMPLES:
        return _alike(history, rows, size)
    # A model that is better in its first pass over the data than in an evaluation has seen them before.
    gap = apart_at_once(history)
    if gap is None or gap <= 0.15:
        return None
    text = (
        f"In the first epoch, training accuracy is {percent(gap)} higher than in the evaluation during that epoch, although no example "
        "was seen before: the data set must contain duplicates."
    )
    return Sign(text, duplication_place(history), evidence={"gap": gap}, confidence=0.7)


def _alike(history: TrainingHistory, rows: list[str], size: int) -> Sign | None:
    if size < len(rows):
        return None
    sampled = any("Weighted" in str(loader["sampler"]) for loader in history.loaders)
    # Some are drawn more often on purpose, and some data are of few kinds.
    if sampled or _are_alike(examples_in(tensor) for tensor in first_inputs(history.evaluations)):
        return None
    counts = Counter(rows).values()
    distinct = len(counts)
    # Repeats that are nearly all of a few examples are frequent kinds, as short sentences are; copies come equally often.
    uneven = max(counts) > 6 * len(rows) / distinct and sum(n == 1 for n in counts) > distinct / 2
    if distinct > 0.6 * len(rows) or uneven:
        return None
    text = f"Only {distinct} of the first {len(rows)} examples are distinct, although the data set has {size}."
    evidence = {"examples": float(len(rows)), "different": float(distinct)}
    return Sign(text, duplication_place(history), evidence=evidence)


def _are_alike(batches: Iterable[Sequence[str]]) -> bool:
    """Whether examples of one batch are alike."""
    return any(len(set(batch)) < 0.8 * len(batch) for batch in batches)


def _leaked(history: TrainingHistory) -> Sign | None:
    """Rows of the evaluations, by their fingerprints, that were trained on."""
    trained = {row for tensor in first_inputs(history.iterations) for row in examples_in(tensor)}
    tested = evaluations(history)
    # A graph is given whole in training and in evaluations: what is measured of it is not seen here.
    whole = {tuple(rows_of(iteration)) for iteration in history.iterations}
    # A loader that begins twice between two steps gives the examples of the training to an evaluation too, on purpose.
    begun = Counter((epoch["loader"], epoch["iteration"]) for epoch in history.epochs)
    of_training = {loader for (loader, at), times in begun.items() if at and times > 1}
    measured = [
        evaluation
        for evaluation in tested
        if not _is_looked_up_in(evaluation)
        and evaluation.loader not in of_training
        and whole != {tuple(rows_of(evaluation))}
    ]
    batches = [examples_in(tensor) for tensor in first_inputs(measured)]
    distinct = {row for batch in batches for row in batch}
    # Where examples of one batch are alike, those of two parts may be as well.
    if len(history.iterations) < _LOOKS or len(distinct) < 16 or _are_alike(batches):
        return None
    common = len(distinct & trained) / len(distinct)
    # An evaluation on training data next to another one is no leak.
    apart = any(
        rows_of(evaluation) and not trained & set(rows_of(evaluation)) for evaluation in tested
    )
    if common < _SEEN_AGAIN or apart:
        return None
    text = f"{percent(common)} of the evaluation examples were seen in training."
    evidence = {"share": common, "examples": float(len(distinct))}
    return Sign(text, split_place(history), tested[0].iteration, evidence=evidence)


def _is_looked_up_in(evaluation: EvaluationPass) -> bool:
    """Whether fewer examples are measured than the first batch has: neighbors are looked up among these."""
    size = (evaluation.inputs[0]["shape"] or [0])[0] if evaluation.inputs else 0
    return 0 < evaluation.examples < size


def _few_examples(history: TrainingHistory) -> Sign | None:
    """A gap to the evaluations, with few examples that are different, and many parameters."""
    gap = overfits(history)
    rows = {row for iteration in history.iterations for row in rows_of(iteration)}
    sizes = [loader["examples"] for loader in history.loaders if loader["examples"]]
    count = sizes[0] if sizes else len(rows)
    if gap is None or not 0 < count <= _FEW_EXAMPLES or len(history.iterations) < 10:
        return None
    parameters = sum(math.prod(param.shape) for param in history.parameters if param.trainable)
    text = f"{count} examples for {parameters:,} parameters: {gap.text}"
    evidence = {"examples": float(count), "parameters": float(parameters)}
    return Sign(text, size_place(history), gap.since, evidence=evidence)


def _sorted_by_label(history: TrainingHistory) -> Sign | None:
    """How often the label changes from example to example, compared with chance."""
    looked = [
        it.target
        for it in history.iterations
        if it.target.get("changes") is not None and (it.target["shape"] or [0])[0] >= _BATCH
    ]
    shares = classes(history)
    if len(looked) < _LOOKS_OF_ORDER or len(shares) < 2:
        return None
    if len(looked[0]["shape"]) > 1 < looked[0]["shape"][-1]:
        return None
    expected = 1 - sum(share * share for share in shares.values())
    changes = float(np.mean([record["changes"] for record in looked]))
    if expected < 0.1 or changes > 0.35 * expected or _variety(looked) > 0.7 * expected:
        return None
    text = f"The label changes from one example to the next in {percent(changes)} of cases; in shuffled data it would in {percent(expected)}."
    evidence = {"changes": changes, "expected": expected}
    return Sign(text, order_place(history), evidence=evidence)


def _variety(looked: Sequence[Record]) -> float:
    """How often two examples of one batch have different labels: such a batch teaches all of them."""
    found = []
    for record in looked:
        counts = np.array(list(record.get("classes", {}).values()), dtype=float)
        if counts.sum():
            found.append(1 - float(((counts / counts.sum()) ** 2).sum()))
    return float(np.mean(found)) if found else 0.0


def _class_never_seen(history: TrainingHistory, *, tested: bool) -> Sign | None:
    """Classes that the model has outputs for and the training no examples, and evaluations that fail: ``tested`` on them, or perhaps.

    Words that only separate others are outputs that are never a target, of evaluations neither.
    """
    seen = [iteration for iteration in history.iterations if iteration.loss_function in OF_CLASSES]
    shares, gap = classes(history), accuracy_gap(history)
    if len(seen) < _LOOKS_OF_ORDER or len(seen[0].output.get("shape", ())) != 2:
        return None
    outputs = seen[0].output["shape"][1]
    examples = sum(sum(iteration.target.get("classes", {}).values()) for iteration in seen)
    absent = sorted(set(range(outputs)) - set(shares))
    if tested:
        labels = {
            int(label) for of in evaluations(history) for label in of.target.get("classes", {})
        }
        absent = [label for label in absent if label in labels]
    rows = {row for iteration in seen for row in rows_of(iteration)}
    few = examples < 20 * outputs or len(rows) < 20 * outputs
    if gap is None or gap < 0.2 or not absent or outputs > 50 or few:
        return None
    text = (
        f"The training data have no example of class {absent[0]} of {outputs}, and evaluations are {percent(gap)} worse: data sorted by "
        "label were split without shuffling."
    )
    evidence = {"classes": float(outputs), "absent": float(len(absent))}
    return Sign(text, order_place(history), evidence=evidence)


def _one_class(history: TrainingHistory) -> Sign | None:
    """The share of the largest class, unless the loss weighs the classes or a sampler draws them."""
    shares = classes(history)
    looked = [iteration for iteration in history.iterations if iteration.target]
    if len(shares) < 2 or len(looked) < 5 or not is_classifier(history):
        return None
    most = max(shares, key=lambda label: shares[label])
    many = len(shares) > 2 and shares[most] > 0.7 and shares[most] * len(shares) > 3
    if shares[most] < max(_MOST, 1 / len(shares)) and not many:
        return None
    drawn = any(loader["sampler"] == "WeightedRandomSampler" for loader in history.loaders)
    if drawn or any(loss.get("weight") for loss in history.losses):
        return None
    # Rare classes are a fault where they are not learned, or where evaluations have more of them.
    hurts = is_harmed(history) or evaluations_are_worse(history)
    # Where labels are pixels or words most of them are background; a loss of one's own may know that.
    dense = any(len(it.target["shape"]) > 1 and it.target["shape"][-1] > 1 for it in looked)
    text = f"{percent(shares[most])} of the labels are class {most}: always predicting it has the same accuracy."
    evidence = {f"share of class {label}": share for label, share in list(shares.items())[:8]}
    weak = dense or not hurts
    return Sign(text, classes_place(history), evidence=evidence, confidence=0.4 if weak else None)


# -- Training compared with evaluations --------------------------------------------------------

_NARROWER, _FAR = 2.5, 10.0
_SURELY_OTHER, _WORSE = 0.9, 2.0
"""The confidence of a difference that the loss must show, and how many times higher that is."""
_OTHER_SHARE = 0.4
"""A class that is this much more frequent in the inspected batches than in the training."""


def _augmented_beyond_recognition(history: TrainingHistory) -> Sign | None:
    """Examples that never come again as they were, and neighbors that agree in evaluations only."""
    pairs, agreement, chance = neighbors(history.iterations)
    if pairs < _PAIRS or not is_augmented(history):
        return None
    gain = (agreement - chance) / max(1e-6, 1 - chance)
    others, tested, by_chance = neighbors(evaluations(history))
    if others and tested - by_chance <= 3 * gain + 0.1:
        return None
    if not others and (gain > 0.1 or does_well(history)):
        return None
    text = (
        f"No example repeats in {history.count} iterations, and the nearest neighbor has the same label in {percent(agreement)} of cases; "
        f"by chance it would in {percent(chance)}."
    )
    return Sign(text, drawn_place(history), evidence={"agreement": agreement, "chance": chance})


def _prepared_differently(history: TrainingHistory) -> Sign | None:
    """Mean and spread of the inputs in training and in evaluations."""
    # What trains may be a part of what evaluates, which prepares its inputs itself.
    called = {_kind_called(history, iteration.model) for iteration in history.iterations}
    same = [of for of in evaluations(history) if _kind_called(history, of.model) in called]
    trained, tested = (
        [record for record in first_inputs(of) if "float" in record["dtype"]]
        for of in (history.iterations, same)
    )
    tested = [of for of in tested if trained and of["shape"][1:] == trained[0]["shape"][1:]]
    if len(trained) < 3 or len(tested) < 2 or not _are_comparable(history):
        return None
    (mean, spread), (other, width) = mean_and_spread(trained), mean_and_spread(tested)
    # Batches differ among themselves: what differs no more is no other preprocessing.
    usual = float(np.std([record["mean"] for record in trained])) + 1e-9
    shift = abs(mean - other) / max(spread, width, 1e-9)
    shifted = shift > 0.5 and abs(mean - other) > 4 * usual
    ratio = max(spread, 1e-9) / max(width, 1e-9)
    narrower = ratio >= _NARROWER and not is_augmented(history)
    if not shifted and not narrower and ratio > 1 / _NARROWER:
        return None
    return Sign(
        f"Training inputs have mean {mean:.3g} and standard deviation {spread:.3g}, evaluation inputs have {other:.3g} and {width:.3g}.",
        preprocessing_place(history),
        same[0].iteration,
        evidence={"training mean": mean, "evaluation mean": other, "training spread": spread, "evaluation spread": width},
        confidence=_confidence_of_difference(history, shift, ratio),
    )  # fmt: skip


def _kind_called(history: TrainingHistory, model: str) -> str:
    """The class of what is called; a copy of the model has the same."""
    number, _, path = model.partition("/")
    paths = (layer.path for layer in history.layers if str(layer.model) == number)
    layer = history.layer(".".join(filter(None, (min(paths, key=len, default=""), path))))
    return layer.kind if layer else ""


def _proved_different(history: TrainingHistory) -> Sign | None:
    """Inputs of evaluations are far from those of the training, and the loss of training batches with such inputs is far higher."""
    sign, found = _prepared_differently(history), repairs(history, "as_evaluated")
    if sign is None or not found or (sign.confidence or 0) < _SURELY_OTHER:
        return None
    if any(of["corrected"] < _WORSE * of["as_is"] for of in found):
        return None
    as_is, corrected = (f"{found[0][name]:.4g}" for name in ("as_is", "corrected"))
    text = f"{sign.text} A training batch with the latter has a loss of {corrected} instead of {as_is}."
    return replace(sign, text=text, confidence=None)


def _are_comparable(history: TrainingHistory) -> bool:
    """Whether the inspected batches of the evaluations have the classes of the training: the first one of sorted data
    has one of them only, whose examples differ from the others.
    """
    shares = classes(history)
    tested = [
        {int(label): count for label, count in counts.items()}
        for evaluation in evaluations(history)
        if (counts := evaluation.target.get("classes"))
    ]
    if len(shares) < 2 or not tested:
        return True
    total = sum(sum(counts.values()) for counts in tested)
    return all(
        abs(sum(counts.get(label, 0.0) for counts in tested) / total - share) < _OTHER_SHARE
        for label, share in shares.items()
    )


def _confidence_of_difference(history: TrainingHistory, shift: float, ratio: float) -> float:
    """Other data are no other preparation: it must be far apart, or do harm."""
    worse, far = evaluations_are_worse(history), shift > 1 or not 0.4 < ratio < 2.5
    if worse is False:
        return 0.55 if not 1 / _FAR < ratio < _FAR else 0.4
    if worse is None and not far:
        return 0.4
    return 0.9 if far else 0.72


RELATIONS: Sequence[Row] = (
    Row("data_leaked", in_iterations(_attends_ahead), 0.93, "Give the attention a causal mask (is_causal=True), or read in one direction."),
    Row("data_leaked", in_iterations(partial(share_at_least, name="given", least=1, place=input_place,
        text="One value of each input is its target: the model only has to copy it.")), 0.9,
        "Leave the target out of the inputs; if an input is a window of a series, start the window one step earlier."),
    Row("input_invalid", in_iterations(_attends_padding), 0.94,
        "Invert the mask: torch.nn.MultiheadAttention excludes positions that are True, scaled_dot_product_attention positions "
        "that are False."),
    Row("data_duplicated", _same_batch, 0.95, "Create the generator once."),
    Row("input_invalid", _one_symbol, 0.9, "Print the codes before the model: each kind needs its own."),
    Row("input_invalid", in_iterations(_zero_rows, 3), 0.93, "Wait for transfers (non_blocking, shared memory) and fill the whole batch."),
)  # fmt: skip
CURVES: Sequence[Row] = (
    Row("input_invalid", _no_numbers, 0.97,
        "Find the source of NaN in data loading: a division, a logarithm or a missing value. Drop or fill these examples."),
    Row("input_invalid", _constant_inputs, 0.45, "Check the preprocessing of the data.", kind=EvidenceKind.EFFECT),
    Row("input_scale_wrong", _input_scale, 0.55,
        "Subtract the training data's mean from each column or channel and divide by the standard deviation; use the same values for training "
        "and evaluation.", kind=EvidenceKind.EFFECT),
    Row("data_duplicated", _copies, 0.85, "Check how the data set is built: a constant index, a repeated list, or sampling with replacement.", kind=EvidenceKind.STATE),
    Row("data_leaked", _leaked, 0.8, "Split by an ID of the examples before any sampling or copying, and test that the splits are disjoint.", kind=EvidenceKind.STATE),
    Row("data_too_small", _few_examples, 0.72,
        "Collect or augment examples, start from a pretrained model, or use a much smaller one with dropout and weight decay.", kind=EvidenceKind.ESTIMATE),
    Row("not_shuffled", partial(_class_never_seen, tested=True), 0.92, "Shuffle before the split, or use a stratified split."),
    Row("not_shuffled", partial(_class_never_seen, tested=False), 0.92, "Shuffle before the split, or use a stratified split.", kind=EvidenceKind.ESTIMATE),
    Row("not_shuffled", _sorted_by_label, 0.93, "Shuffle the training examples in each epoch: DataLoader(..., shuffle=True)."),
    Row("classes_unbalanced", _one_class, 0.8,
        "Weight the classes in the loss (weight=, pos_weight=), sample rare ones more often (WeightedRandomSampler), and evaluate with balanced "
        "accuracy or F1.", kind=EvidenceKind.EFFECT),
    Row("augmentation_wrong", _augmented_beyond_recognition, 0.8, "Inspect a dozen augmented examples: a person must still recognize their class.", kind=EvidenceKind.EFFECT),
    Row("preprocessing_mismatch", _proved_different, 0.93, "Preprocess both with the same function and the statistics of the training data."),
    Row("preprocessing_mismatch", _prepared_differently, 0.72, "Preprocess both with the same function and the statistics of the training data.", kind=EvidenceKind.ESTIMATE),
)  # fmt: skip
