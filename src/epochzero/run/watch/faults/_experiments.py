"""What experiments on the running model have shown: facts, each with the operator and the line where it begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from epochzero.run.watch.faults._signals import is_harmed
from epochzero.run.watch.faults._table import SHARE, Row, Search, Sign, in_experiments, percent
from epochzero.run.watch.faults.labels import SAME
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.contracts import CONTRACTS, violations
from epochzero.run.watch.lines.data import drawn_place, input_place
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.lines.training import step_place
from epochzero.run.watch.model import EvidenceKind, SourceLine

_LEAST_STEPS = 2
_MORE, _LESS, _SURE = 0.1, 1e-3, 1e-6
"""Relative changes of a loss: of a step that is too large, of ten steps that are too small, and beyond rounding."""
_FAR = 10.0
"""How many times higher the loss is than with standardized inputs."""
_SOFTMAXES = ("_softmax", "_log_softmax", "_safe_softmax", "exp")


def _mixes_examples(history: TrainingHistory, fact: Record, *, softmax: bool) -> Sign | None:
    # With a target for each position, the first dimension may be that of positions.
    unclear = fact["by_position"] and not _predicts_next(history)
    if (fact["operator"] in _SOFTMAXES) != softmax or unclear:
        return None
    layer = history.layer(fact["layer"])
    takes_batch_second = layer is not None and layer.settings.get("batch_first") is False
    reshaped = place_of({"place": fact.get("reshaped")})
    place = layer.place if takes_batch_second and layer else reshaped
    text = f"Changing one example of a batch changes the output of others: {_at(fact)} computes across examples."
    if takes_batch_second:
        text += " The layer has batch_first=False."
    evidence = {"share": fact["share"]}
    return Sign(text, place or place_of(fact), layer=fact["layer"], evidence=evidence)


def _in_facts(name: str, text: str, *, of_loss: bool = False) -> Search:
    """The search for a fact, whose fields the text may name; ``{at}`` is the operator where the effect begins or ends.

    What is computed from the loss itself lies in no layer.
    """

    def sign(_: TrainingHistory, fact: Record) -> Sign:
        fields = {**fact, "at": _at(fact), "number": int(fact.get("input", 0)) + 1}
        layer = "" if of_loss else fact.get("layer", "")
        return Sign(text.format_map(fields), place_of(fact), layer=layer)

    return in_experiments(name, sign)


def _sees_ahead(history: TrainingHistory, fact: Record) -> Sign | None:
    if not _predicts_next(history):
        return None
    text = (
        "Changing later tokens changes the predictions at earlier positions, and the target of a position is the token after it: "
        f"{_at(fact)} looks ahead."
    )
    evidence = {"share": fact["share"]}
    return Sign(text, place_of(fact), layer=fact.get("layer", ""), evidence=evidence)


def _steps(history: TrainingHistory) -> list[tuple[int, list[float]]]:
    """Of each step that was tried in other sizes: its iteration, and the relative change of the loss by each size."""
    found = []
    for of in history.experiments:
        for fact in of["facts"]:
            if fact["name"] == "step" and fact["before"]:
                before = float(fact["before"])
                changes = [(float(loss) - before) / abs(before) for loss in fact["losses"]]
                found.append((int(of["iteration"]), changes))
    return found if len(found) >= _LEAST_STEPS else []


def _rate_place(history: TrainingHistory) -> SourceLine | None:
    return setting_place(place_of(next(iter(history.optimizers), None)), "lr", 1)


def _in_steps(
    test: Callable[[list[float]], bool],
    text: Callable[[int, list[float]], str],
    place: Callable[[TrainingHistory], SourceLine | None] = _rate_place,
) -> Search:
    """The search for what all steps that were tried in other sizes have shown: no more than a note, unless the training comes to harm."""

    def search(history: TrainingHistory) -> Sign | None:
        steps = _steps(history)
        if not steps or not all(test(changes) for _, changes in steps):
            return None
        since, changes = steps[0]
        weaker = 0.0 if is_harmed(history) else 0.45
        return Sign(text(since, changes), place(history), since, weaker=weaker)

    return search


def repairs(history: TrainingHistory, correction: str) -> list[Record]:
    """What experiments have shown of a correction; nothing where a loss is not above zero."""
    facts = (fact for of in history.experiments for fact in of["facts"])
    all_of = [f for f in facts if f["name"] == "repair" and f["correction"] == correction]
    return all_of if all(fact["as_is"] > 0 for fact in all_of) else []


def _unscaled(history: TrainingHistory) -> Sign | None:
    """The loss of weights that are hardly trained is far lower with standardized inputs, and little is learned."""
    found = repairs(history, "standardized")
    if not found or not is_harmed(history):
        return None
    if any(of["as_is"] < _FAR * of["corrected"] for of in found):
        return None
    text = (
        f"The loss of a batch is {found[0]['as_is']:.4g}; with mean 0 and standard deviation 1 in each column of the inputs, it is "
        f"{found[0]['corrected']:.4g}."
    )
    return Sign(text, input_place(history))


def augmentation_place(history: TrainingHistory) -> SourceLine | None:
    """The line that draws views alike, or moves an image alone; else that which augments examples."""
    contracts = (contract for contract in CONTRACTS if contract.fault == "augmentation_wrong")
    seen = (place for contract in contracts for _, place in violations(history, contract))
    return next(seen, None) or drawn_place(history)


def _same_views(history: TrainingHistory, fact: Record) -> Sign:
    text = f"{_at(fact)} gets two tensors with the same values in each iteration: both views of an example are the same."
    return Sign(text, augmentation_place(history) or place_of(fact))


def _chooses_filled(_: TrainingHistory, fact: Record, *, inside: bool) -> Sign | None:
    if fact["inside"] != inside:
        return None
    text = f"{_at(fact)} chooses elements that the mask should exclude: the value that they are filled with does not exclude them."
    return Sign(text, place_of({"place": fact["filled"]}), layer=fact["layer"])


def _predicts_next(history: TrainingHistory) -> bool:
    """Whether the target of each position is the token after it."""
    lags = [of.relations["lags"] for of in history.iterations if of.relations.get("lags")]
    return bool(lags) and min(lag[2] for lag in lags) >= SAME


def _at(fact: Record) -> str:
    operator = str(fact.get("operator", "an operator")).strip("_")
    return f"{operator} in {fact['layer']}" if fact.get("layer") else operator


_FILL = "Fill with -inf before a maximum or a softmax and with inf before a minimum, and check the sign of the mask."
EXPERIMENTS: Sequence[Row] = (
    Row("input_invalid", in_experiments("mixes_examples", lambda h, f: _mixes_examples(h, f, softmax=False)), 0.94,
        "Give the layer the batch in the dimension that it expects (batch_first=True), and swap dimensions with transpose, not view."),
    Row("activation_wrong", in_experiments("mixes_examples", lambda h, f: _mixes_examples(h, f, softmax=True)), 0.94,
        "Take the softmax over the dimension of the classes or keys."),
    Row("layer_unused", _in_facts("ignores_input",
        "Changing input {number} of the model changes neither its output nor the loss: its influence ends at {at}."), 0.92,
        "Use its result in the rest of the computation."),
    Row("loss_wrong", _in_facts("compares_all_pairs",
        "Changing the target of one example changes the loss terms of all examples: {at} has shape {shape}, because a column is "
        "broadcast against a row.",
        of_loss=True), 0.95, "Give both the same shape, for example with squeeze(1)."),
    Row("labels_wrong", _in_facts("pairs_others",
        "The loss compares the target of each example with the output of another example: {at}.", of_loss=True), 0.93,
        "Keep outputs and targets in the same order when they are reshaped."),
    Row("loss_wrong", _in_facts("ignores_targets",
        "Changing all targets does not change the loss: their influence ends at {at}.", of_loss=True), 0.92, "Use the targets in the loss."),
    Row("parameters_frozen", _in_facts("cuts_gradients",
        "Changing {parameters} parameters of the optimizer changes the loss, but they get no gradient: {at} cuts it."), 0.95,
        "Keep the computation in the graph: no detach(), .data or no_grad() between these parameters and the loss."),
    Row("data_leaked", in_experiments("sees_ahead", _sees_ahead), 0.94,
        "Give the attention a causal mask (is_causal=True), or read in one direction."),
    Row("loss_wrong", in_experiments("chooses_filled", partial(_chooses_filled, inside=False), SHARE), 0.94, _FILL),
    Row("input_invalid", in_experiments("chooses_filled", partial(_chooses_filled, inside=True), SHARE), 0.94, _FILL),
    Row("augmentation_wrong", in_experiments("same_views", _same_views), 0.94, "Create the generator once, and draw each view anew."),
    Row("input_scale_wrong", _unscaled, 0.93,
        "Subtract the training data's mean from each column or channel and divide by the standard deviation; use the same values for evaluation."),
    Row("learning_rate_too_high", _in_steps(lambda by: by[0] < 0 and by[2] > _MORE, lambda since, by:
        f"The step of iteration {since} raises the loss of its own batch by {percent(by[2])}; one hundredth of that step lowers the loss by "
        f"{-100 * by[0]:.2g} %."), 0.9, "Divide the learning rate by ten.", "rate"),
    Row("learning_rate_too_low", _in_steps(lambda by: by[0] <= 0 and -_LESS < by[3] < 0, lambda since, by:
        f"Ten times the step of iteration {since} would lower the loss of its own batch by {-100 * by[3]:.2g} % only."), 0.9,
        "Multiply the learning rate by ten to a hundred.", "rate", EvidenceKind.EFFECT),
    Row("optimizer_wrong", _in_steps(lambda by: _SURE < by[0] < by[1], lambda since, by:
        f"A tenth of the step of iteration {since} raises the loss of its own batch by {100 * by[1]:.2g} %: it goes uphill.", step_place),
        0.85, "Check the sign of the update, and that gradients are cleared before each backward pass.", kind=EvidenceKind.EFFECT),
)  # fmt: skip
"""All facts that show a fault."""
