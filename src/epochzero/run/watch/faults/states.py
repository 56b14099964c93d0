"""Relations after training steps: which states a program restores and evaluates, and with which codes and examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from epochzero.run.watch.child.states import MOST_STATES
from epochzero.run.watch.faults._signals import evaluations, first_accuracy, moves, train_accuracy
from epochzero.run.watch.faults._table import Row, Sign, percent
from epochzero.run.watch.history import EvaluationPass, Record, TrainingHistory
from epochzero.run.watch.lines.settings import place_of
from epochzero.run.watch.lines.states import choice_place, overwriting_place, repeating_place
from epochzero.run.watch.model import SourceLine

_SKIPPED = 6
"""Iterations that may not be counted yet when a state is restored; most short steps are not observed."""
_LEAST = 3
_APART, _OF_PROGRESS = 0.02, 0.2
"""How much worse than the median the restored state is: in accuracy, and as a share of the progress of the loss."""
_CONTINUED, _LOSSES = 10, 20
_RENAMED, _AGREES, _MOST_WRONG = 0.8, 0.4, 0.3
_UNITS = 5.0

Weights = Sequence[float]


def _same(one: Weights, other: Weights) -> bool:
    return len(one) == len(other) > 0 and bool(np.allclose(one, other, rtol=1e-5, atol=1e-7))


def _of_models(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.get("what") == "model" and record["weights"]]


def _described(history: TrainingHistory, before: Record | None = None) -> list[EvaluationPass]:
    """Return the evaluations whose weights are known, only those before a load if one is given."""
    count = before.get("evaluations") if before is not None else None
    return [of for of in evaluations(history)[:count] if of.weights]


def _final_loads(history: TrainingHistory) -> list[Record]:
    """Return the states that were restored after the last step."""
    since = history.count - _SKIPPED
    loads = _of_models(history.loads) if history.ended else []
    return [load for load in loads if 0 < load["iteration"] >= since]


def _not_what_was_taken(history: TrainingHistory) -> Sign | None:
    """The restored weights are not those that were stored, but those that the model has reached since."""
    takes = _of_models(history.takes)
    if len(takes) + 2 * len(history.loads) >= MOST_STATES:
        return None
    for load in _of_models(history.loads):
        earlier = _described(history, load)
        taken = [of for of in takes if of["iteration"] <= load["iteration"]]
        known = [of for of in taken if len(of["weights"]) == len(load["weights"])]
        if not earlier or not known or not _same(load["weights"], earlier[-1].weights):
            continue
        trained = any(not _same(of.weights, load["weights"]) for of in earlier)
        if trained and not any(_same(of["weights"], load["weights"]) for of in known):
            text = (
                f"The state of the model was last stored at iteration {known[-1]['iteration']}, but the restored weights are those of "
                f"iteration {load['iteration']}. The stored state was not a copy, so it changed with the model."
            )
            return Sign(text, place_of(known[-1]), int(load["iteration"]))
    return None


def _restores_the_worst(history: TrainingHistory) -> Sign | None:
    """The state that is restored after the training is the worst of all evaluated states."""
    signs = [_worst(history, load) for load in _final_loads(history)]
    return signs[-1] if signs and all(signs) else None


def _worst(history: TrainingHistory, load: Record) -> Sign | None:
    tested = _described(history, load)
    restored = next((of for of in tested if _same(of.weights, load["weights"])), None)
    if restored is None or _same(tested[-1].weights, restored.weights):
        return None
    alike = [o for o in tested if (o.place, o.examples) == (restored.place, restored.examples)]
    losses = [-of.loss for of in alike if of.loss is not None]
    accuracies = [share for of in alike if (share := first_accuracy(of)) is not None]
    known = [scores for scores in (accuracies, losses) if len(scores) == len(alike) > _LEAST]
    own = alike.index(restored)
    is_worst = any(of[own] == min(of) for of in known)
    if not is_worst or not all(_is_bad(of, own, share=of is accuracies) for of in known):
        return None
    what, scores = ("accuracy", accuracies) if known[0] is accuracies else ("loss", losses)
    worst, best = (abs(scores[at]) for at in (own, int(np.argmax(scores))))
    text = (
        f"After the training, the weights of iteration {restored.iteration} are restored. They are the worst of {len(alike)} evaluations, "
        f"with {'an' if what == 'accuracy' else 'a'} {what} of {worst:.4g}; the best has {best:.4g}."
    )
    return Sign(text, choice_place(place_of(load)), int(load["iteration"]))


def _is_bad(scores: Sequence[float], own: int, *, share: bool) -> bool:
    """Whether a score is far below the median."""
    below, progress = float(np.median(scores)) - scores[own], max(scores) - scores[own]
    enough = _APART if share else _OF_PROGRESS * progress
    return progress > 0.1 * abs(scores[own]) and below > enough


def _evaluates_a_stale_copy(history: TrainingHistory) -> Sign | None:
    """Evaluations repeatedly use weights that the model had earlier, while its training continues."""
    tested = _described(history)
    last = _same_at_the_end(tested)
    if len(last) < _LEAST or not moves(history):
        return None
    number = int(last[0].model.partition("/")[0] or 0)
    own = {layer.path for layer in history.layers if layer.model == number}
    held = any(p.held for p in history.parameters if p.layer in own)
    takes = [of for of in _of_models(history.takes) if _same(of["weights"], last[0].weights)]
    if held or not takes or last[-1].iteration <= last[0].iteration:
        return None
    text = (
        f"The model is evaluated with the weights that it had at iteration {takes[0]['iteration']}. These weights do not change in "
        f"{len(last)} evaluations, while the training continues."
    )
    return Sign(text, place_of(takes[0]), last[1].iteration)


def _same_at_the_end(tested: Sequence[EvaluationPass]) -> list[EvaluationPass]:
    """Return the last evaluations that all have the same weights, one for each iteration."""
    found: dict[int, EvaluationPass] = {}
    for of in reversed(tested):
        if not _same(of.weights, tested[-1].weights):
            break
        found[of.iteration] = of
    return list(found.values())[::-1]


def _resumed(history: TrainingHistory, what: str) -> Sign | None:
    """A training continues from stored weights without the stored state of its optimizer or schedule."""
    takes = [of for of in history.takes if of["what"] == what]
    records = history.optimizers if what == "optimizer" else history.schedulers
    for load in _of_models(history.loads):
        at = int(load["iteration"])
        stored = [of for of in takes if 0 < of["iteration"] <= at]
        restored = [of for of in history.loads if of["what"] == what and of["iteration"] >= at]
        taken = any(_same(of["weights"], load["weights"]) for of in _of_models(history.takes))
        if not stored or restored or not taken or _same(load["weights"], load.get("before", ())):
            continue
        old = next((of for of in records if of["number"] == stored[-1]["number"]), None)
        new = records[-1] if records else None
        if old is None or new is None or old is new or not _is_like(old, new):
            continue
        if _continues(history, at):
            text = (
                f"From iteration {at} on, the training continues with the stored weights, but with a new {what}. The stored state of the "
                f"{what} is not loaded."
            )
            return Sign(text, place_of(load), at)
    return None


def _is_like(old: Record, new: Record) -> bool:
    """Whether two optimizers or schedules have the same class and settings."""
    names = ("class", "place") if old["place"] == new["place"] else ("class", "groups", "settings")
    return all(old.get(name) == new.get(name) for name in names)


def _continues(history: TrainingHistory, at: int) -> bool:
    """Whether the loss continues at its previous value, so that the task is the same."""
    loss = history.loss
    before, after = (loss[part, 1] for part in (loss[:, 0] < at, loss[:, 0] >= at))
    if len(before) < _LOSSES or len(after) < _CONTINUED:
        return False
    low, high = np.min(before[-_LOSSES:]), np.max(before[-_LOSSES:])
    return bool(low <= after[0] <= high) and bool(after[0] < 0.8 * np.median(before[:3]))


def _loads_nothing(history: TrainingHistory) -> Sign | None:
    """No name in a stored state is a name in the model, but without a prefix some would be."""
    loads = _of_models(history.loads)
    for load in loads:
        again = any(of.get("matched") and of["place"] != load["place"] for of in loads)
        if load.get("astray", 0) >= 2 and not again:
            text = (
                f"load_state_dict loads nothing. No name in the state is a name in the model, but {load['astray']} would be without the part "
                "before the first dot."
            )
            return Sign(text, place_of(load), int(load["iteration"]))
    return None


def _overwritten(history: TrainingHistory) -> Sign | None:
    """The next call of the model does not use the loaded weights."""
    for use in history.uses:
        loads = [of for of in _of_models(history.loads) if of["iteration"] == use["iteration"]]
        if loads and use["loaded"] >= 2 and use["other"] > 0.5 * use["loaded"]:
            text = (
                f"{use['other']} of {use['loaded']} loaded weights have other values when the model is called for the first time. "
                "They are overwritten after load_state_dict."
            )
            return Sign(text, overwriting_place(place_of(loads[-1])), int(use["iteration"]))
    return None


def _other_classes(history: TrainingHistory) -> Sign | None:
    """Each predicted class nearly always meets the same label of the evaluation, but another one."""
    found = [of for of in evaluations(history) if of.classes.get("count", 0) >= 30]
    trained = train_accuracy(history)
    last = found[-1] if found else None
    if last is None or trained is None or trained < _RENAMED:
        return None
    agree, renamed = last.classes["agree"], last.classes["renamed"]
    if renamed < _RENAMED or agree > renamed - _AGREES:
        return None
    text = (
        f"In evaluations, {percent(agree)} of the predictions agree with the labels, and {percent(renamed)} would agree if the classes had "
        f"other numbers. In the training, {percent(trained)} agree. The labels of the evaluation are coded differently."
    )
    return Sign(text, _data_place(history, last), last.iteration)


def _other_units(history: TrainingHistory) -> Sign | None:
    """Predictions follow the targets of an evaluation, but these targets have another unit than those of the training."""
    found = [of for of in evaluations(history) if of.numbers.get("count", 0) >= 30 and of.target]
    spreads = [of.target["std"] for of in history.iterations if of.target.get("std")]
    if not found or not spreads:
        return None
    last, spread = found[-1], float(np.median(spreads))
    fits, slope = last.numbers, last.numbers["slope"]
    other = last.target.get("std", 0.0) / spread
    if fits["fit"] > 0 or fits["mapped"] < _RENAMED or slope <= 0:
        return None
    if all(value > _UNITS or value < 1 / _UNITS for value in (slope, other)):
        text = (
            f"The targets of evaluations have a standard deviation of {last.target['std']:.4g}, and those of the training one of {spread:.4g}. "
            f"Multiplied by {slope:.4g} and shifted, the predictions would explain {percent(fits['mapped'])} of the variance of the targets."
        )
        return Sign(text, _data_place(history, last), last.iteration)
    return None


def _same_batch(history: TrainingHistory) -> Sign | None:
    """Each evaluation uses the same batch several times."""
    sizes = {of["number"]: of.get("examples") or 0 for of in history.loaders}
    tested = [of for of in evaluations(history) if of.loss is not None and of.calls >= _LEAST]
    again = [
        of
        for of in tested
        if of.repeated >= _LEAST
        and sizes.get(of.loader, 0) > of.examples / of.repeated
        and of.output.get("between_examples", 0.0) > 1e-6
    ]
    if len(again) < _LEAST or len(again) < len(tested):
        return None
    text = f"All {again[0].repeated} batches of an evaluation have the same loss. The first batch of the loader is evaluated repeatedly."
    return Sign(text, repeating_place(again[0].place), again[0].iteration)


def _data_place(history: TrainingHistory, of: EvaluationPass) -> SourceLine | None:
    """Return the line that created the loader of an evaluation, or else the line of the call."""
    made = (place_of(loader) for loader in history.loaders if loader["number"] == of.loader)
    return next(made, of.place)


_COPY = "Store copy.deepcopy(model.state_dict())."
_RESTORE = "Load the stored state of the optimizer, of the schedule and of the model before the training continues."
_CODES = "Compute the codes or the scale once, from the training data, and use them for all splits."
RELATIONS: Sequence[Row] = (
    Row("copy_not_updated", _not_what_was_taken, 0.95, _COPY),
    Row("copy_not_updated", _restores_the_worst, 0.95, "Choose the state with the lowest loss, or the highest accuracy."),
    Row("copy_not_updated", _evaluates_a_stale_copy, 0.95, "Evaluate the trained model, or update the copy before each evaluation."),
    Row("schedule_wrong", partial(_resumed, what="schedule"), 0.94, _RESTORE),
    Row("optimizer_wrong", partial(_resumed, what="optimizer"), 0.93, _RESTORE),
    Row("weight_init_wrong", _loads_nothing, 0.95, "Remove the prefix from the names of the state, and load with strict=True."),
    Row("weight_init_wrong", _overwritten, 0.95, "Initialize the model first, then load the stored weights."),
    Row("label_range_wrong", _other_classes, 0.95, _CODES),
    Row("preprocessing_mismatch", _other_units, 0.94, _CODES),
    Row("data_duplicated", _same_batch, 0.93, "Create the iterator once, before the loop over the batches."),
)  # fmt: skip
CURVES: Sequence[Row] = ()
