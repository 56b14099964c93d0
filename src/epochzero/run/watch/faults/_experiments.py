"""What experiments on the running model have shown: facts, each with the operator and the line where it begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from epochzero.run.watch.faults._table import Row, Sign
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.lines.training import step_place
from epochzero.run.watch.model import SourceLine

_NEXT = 0.999
"""Share of targets that are the token after their position, from which on a model predicts the next token."""
_LEAST_STEPS = 2
_MORE, _LESS, _SURE = 0.1, 1e-3, 1e-6
"""Relative changes of a loss: of a step that is too large, of ten steps that are too small, and beyond rounding."""
_SOFTMAXES = ("_softmax", "_log_softmax", "_safe_softmax", "exp")


def _always(
    name: str, sign: Callable[[TrainingHistory, Record], Sign | None]
) -> Callable[[TrainingHistory], Sign | None]:
    """The sign of a fact that every experiment has shown, at the same line."""

    def found(history: TrainingHistory) -> Sign | None:
        all_facts = [[f for f in of["facts"] if f["name"] == name] for of in _experiments(history)]
        if not all_facts or not all(all_facts):
            return None
        first, places = all_facts[0][0], {str(facts[0].get("place")) for facts in all_facts}
        return sign(history, first) if len(places) == 1 else None

    return found


def _experiments(history: TrainingHistory) -> Sequence[Record]:
    """Those of examples, targets and parameters that could be computed."""
    return [
        of
        for of in history.experiments
        if not of.get("problem") and not any(f["name"] == "step" for f in of["facts"])
    ]


def _mixes_examples(history: TrainingHistory, fact: Record, *, softmax: bool) -> Sign | None:
    # With a target for each position, the first dimension may be that of positions.
    unclear = fact["by_position"] and not _predicts_next(history)
    if (fact["operator"] in _SOFTMAXES) != softmax or unclear:
        return None
    layer = history.layer(fact["layer"])
    takes_batch_second = layer is not None and layer.settings.get("batch_first") is False
    place = (
        layer.place if takes_batch_second and layer else place_of({"place": fact.get("reshaped")})
    )
    text = f"Changing one example of a batch changes the output of others: {_at(fact)} computes across examples."
    if takes_batch_second:
        text += " The layer has batch_first=False."
    return Sign(
        text, place or place_of(fact), layer=fact["layer"], evidence={"share": fact["share"]}
    )


def _ignores_input(history: TrainingHistory, fact: Record) -> Sign | None:
    text = (
        f"Changing input {fact['input'] + 1} of the model changes neither its output nor the loss: its influence ends at "
        f"{_at(fact)}."
    )
    return Sign(text, place_of(fact), layer=fact.get("layer", ""))


def _compares_all_pairs(history: TrainingHistory, fact: Record) -> Sign | None:
    text = (
        f"Changing the target of one example changes the loss terms of all: {_at(fact)} has the shape {fact['shape']}, a column "
        "is broadcast against a row."
    )
    return Sign(text, place_of(fact))


def _pairs_others(history: TrainingHistory, fact: Record) -> Sign | None:
    text = (
        f"The loss compares the target of each example with the output of another one: {_at(fact)}."
    )
    return Sign(text, place_of(fact))


def _ignores_targets(history: TrainingHistory, fact: Record) -> Sign | None:
    text = f"Changing all targets does not change the loss: their influence ends at {_at(fact)}."
    return Sign(text, place_of(fact))


def _cuts_gradients(history: TrainingHistory, fact: Record) -> Sign | None:
    text = f"Changing {fact['parameters']} parameters of the optimizer changes the loss, but they get no gradient: {_at(fact)} cuts it."
    return Sign(text, place_of(fact), layer=fact["layer"])


def _sees_ahead(history: TrainingHistory, fact: Record) -> Sign | None:
    if not _predicts_next(history):
        return None
    text = (
        f"Changing later tokens changes the prediction of earlier ones, and the target of a position is the token after it: "
        f"{_at(fact)} looks ahead."
    )
    return Sign(
        text, place_of(fact), layer=fact.get("layer", ""), evidence={"share": fact["share"]}
    )


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


def _overshoots(history: TrainingHistory) -> Sign | None:
    steps = _steps(history)
    if not steps or not all(by[0] < 0 and by[2] > _MORE for _, by in steps):
        return None
    since, (hundredth, _, whole, _) = steps[0]
    text = (
        f"The step of iteration {since} raises the loss of its own batch by {percent(whole)}; a hundredth of it lowers the loss "
        f"by {-100 * hundredth:.2g} %."
    )
    return Sign(text, _rate_place(history), since)


def _does_nothing(history: TrainingHistory) -> Sign | None:
    steps = _steps(history)
    if not steps or not all(by[0] <= 0 and -_LESS < by[3] < 0 for _, by in steps):
        return None
    since, (*_, tenfold) = steps[0]
    text = f"Ten times the step of iteration {since} would lower the loss of its own batch by {-100 * tenfold:.2g} % only."
    return Sign(text, _rate_place(history), since)


def _climbs(history: TrainingHistory) -> Sign | None:
    steps = _steps(history)
    if not steps or not all(_SURE < by[0] < by[1] for _, by in steps):
        return None
    since, (_, tenth, _, _) = steps[0]
    text = f"A tenth of the step of iteration {since} raises the loss of its own batch by {100 * tenth:.2g} %: it goes uphill."
    return Sign(text, step_place(history), since)


def _predicts_next(history: TrainingHistory) -> bool:
    """Whether the target of each position is the token after it."""
    lags = [of.relations["lags"] for of in history.iterations if of.relations.get("lags")]
    return bool(lags) and min(lag[2] for lag in lags) >= _NEXT


def _at(fact: Record) -> str:
    operator = str(fact.get("operator", "an operator")).strip("_")
    return f"{operator} in {fact['layer']}" if fact.get("layer") else operator


EXPERIMENTS: Sequence[Row] = (
    Row("input_invalid", _always("mixes_examples", lambda h, f: _mixes_examples(h, f, softmax=False)), 0.94,
        "Give the layer the batch in the dimension that it expects (batch_first=True), and swap dimensions with transpose, not view."),
    Row("activation_wrong", _always("mixes_examples", lambda h, f: _mixes_examples(h, f, softmax=True)), 0.94,
        "Take the softmax over the dimension of the classes or keys."),
    Row("layer_unused", _always("ignores_input", _ignores_input), 0.92, "Use the result in what follows."),
    Row("loss_wrong", _always("compares_all_pairs", _compares_all_pairs), 0.95, "Give both the same shape, such as with squeeze(1)."),
    Row("labels_wrong", _always("pairs_others", _pairs_others), 0.93, "Keep outputs and targets in the same order when they are reshaped."),
    Row("loss_wrong", _always("ignores_targets", _ignores_targets), 0.92, "Use the targets in the loss."),
    Row("parameters_frozen", _always("cuts_gradients", _cuts_gradients), 0.95,
        "Keep the computation in the graph: no detach(), .data or no_grad() between these parameters and the loss."),
    Row("data_leaked", _always("sees_ahead", _sees_ahead), 0.94, "Give the attention a causal mask (is_causal=True), or read in one direction."),
    Row("learning_rate_too_high", _overshoots, 0.9, "Divide the learning rate by ten.", "rate"),
    Row("learning_rate_too_low", _does_nothing, 0.9, "Multiply the learning rate by ten to a hundred.", "rate"),
    Row("optimizer_wrong", _climbs, 0.85, "Check the sign of the update, and that gradients are cleared before each backward pass."),
)  # fmt: skip
"""All facts that show a fault."""
