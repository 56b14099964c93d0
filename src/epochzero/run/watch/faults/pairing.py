"""Whether inputs and targets belong together, as a regression without the model shows: in the training, in evaluations, in both."""

from __future__ import annotations

from collections.abc import Sequence

from epochzero.run.watch.faults._experiments import augmentation_place
from epochzero.run.watch.faults._signals import does_well, is_augmented
from epochzero.run.watch.faults._table import Row, Sign, percent
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.data import label_place, preprocessing_place
from epochzero.run.watch.model import EvidenceKind

_CHANCE, _UNSURE, _CLEAR, _SURE = 0.05, 4.0, 0.15, 8.0
"""Of what is explained, and of standard deviations above chance: hardly anything, and clearly something."""
_REPAIRED, _LOST = 0.6, 0.25
"""Of what is explained in one split: with a correction, and without, of the other split."""
_SAME = 0.4
"""How far the means of columns of both splits are apart, in standard deviations, at most."""
_PLACES, _TURNED, _TIMES = 32, 0.1, 4.0


def _last(history: TrainingHistory, *names: str) -> Record | None:
    """The largest sample of which this is known."""
    return next((of for of in reversed(history.pairings) if all(n in of for n in names)), None)


def _is_clear(of: Sequence[float]) -> bool:
    return of[0] > _CLEAR and of[1] > _SURE


def _is_chance(of: Sequence[float]) -> bool:
    return of[0] < _CHANCE and of[1] < _UNSURE


def _shifted(history: TrainingHistory) -> Sign | None:
    """Inputs tell nothing about their own targets, and much about those of other examples at a fixed distance."""
    found = _last(history, "shifted")
    if found is None:
        return None
    name, best = max(found["shifted"].items(), key=lambda of: of[1][0])
    if not (_is_chance(found["trained"]) and _is_clear(best)):
        return None
    whose = (
        f"of the {name}"
        if "batch" in name
        else "of the batch in reverse order"
        if name == "reversed"
        else f"of the example {abs(int(name))} {'before' if int(name) > 0 else 'after'} it"
    )
    text = (
        f"Inputs explain none of their own targets, and {percent(best[0])} of the variance of the targets {whose} ({found['count']} "
        "examples, without the model): targets are shifted."
    )
    place = label_place(history, order=True) or label_place(history)
    return Sign(text, place, evidence={"own": found["trained"][0], "shifted": best[0]})


def _unlike(history: TrainingHistory, *, codes: bool) -> Sign | None:
    """What inputs tell about targets in the training does not hold in evaluations, but does after a correction of these."""
    found = _last(history, "corrected")
    if found is None or not found["corrected"]:
        return None
    name, best = max(found["corrected"].items(), key=lambda of: float(of[1]))
    shares = found["trained"], found["evaluated"]
    least = min(share for share, _ in shares)
    differs = all(map(_is_clear, shares)) and found["across"] < _LOST * least
    if not differs or best < _REPAIRED * least or codes != ("codes" in name):
        return None
    text = (
        f"Inputs explain {percent(shares[0][0])} of the variance of targets in the training and {percent(shares[1][0])} in evaluations, but "
        f"what holds in one explains nothing of the other. With {name} in evaluations it explains {percent(best)}."
    )
    place = label_place(history) if codes else preprocessing_place(history)
    return Sign(text, place, evidence={"across": found["across"], "corrected": best})


def _apart(history: TrainingHistory) -> Sign | None:
    """Inputs tell much about targets in one split, and nothing in the other, whose inputs look the same."""
    found = _last(history, "across")
    if found is None or found["apart"] > _SAME or does_well(history) or is_augmented(history):
        return None
    names = ("training", "evaluations")
    shares = dict(zip(names, (found["trained"], found["evaluated"]), strict=True))
    # What holds in the other split explains nothing either: noise of augmented inputs would leave something.
    across = dict(zip(names, (found["back"], found["across"]), strict=True))
    for name, other in (names, names[::-1]):
        if _is_chance(shares[name]) and across[name] < _CHANCE and _is_clear(shares[other]):
            text = (
                f"Inputs explain {percent(shares[other][0])} of the variance of the targets in the {other}, and none in the {name}, though the "
                f"inputs of both look alike: in the {name}, targets belong to other inputs."
            )
            place = label_place(history, order=True) or label_place(history)
            return Sign(text, place, evidence={other: shares[other][0], name: shares[name][0]})
    return None


def _turned(history: TrainingHistory) -> Sign | None:
    """What each place of an image tells about its target fits far better for some examples when the target is turned."""
    found = _last(history, "turned")
    if found is None or found["count"] < _PLACES:
        return None
    share, chance = found["turned"], found["by_chance"]
    if share < _TURNED or share < _TIMES * max(chance, 1 / found["count"]):
        return None
    text = (
        f"The targets of {percent(share)} of {found['count']} images fit what the images show far better when they are {found['turns'][0]}; "
        f"targets of other images, in {percent(chance)}: images were transformed without their targets."
    )
    return Sign(text, augmentation_place(history), evidence={"share": share, "chance": chance})


_TOGETHER = "Transform, sort, shuffle and cut inputs and targets together, by the same index."
RELATIONS: Sequence[Row] = (
    Row("labels_wrong", _shifted, 0.94, _TOGETHER),
    # Strong augmentation of the training looks the same: no more than suspected.
    Row("labels_wrong", _apart, 0.93, _TOGETHER, kind=EvidenceKind.ESTIMATE),
    Row("labels_wrong", lambda history: _unlike(history, codes=True), 0.94, "Encode the classes of all splits with the codes of the training."),
    Row("preprocessing_mismatch", lambda history: _unlike(history, codes=False), 0.94,
        "Prepare inputs of training and evaluations with the same function: order of columns and channels, scale, orientation."),
    Row("augmentation_wrong", _turned, 0.94, "Transform the image and its target with the same random choice."),
)  # fmt: skip
CURVES: Sequence[Row] = ()
