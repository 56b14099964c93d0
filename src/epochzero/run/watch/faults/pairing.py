"""Whether inputs and targets of the training belong together, as a regression without the model shows."""

from __future__ import annotations

from collections.abc import Sequence

from epochzero.run.watch.faults._experiments import augmentation_place
from epochzero.run.watch.faults._table import Row, Sign, percent
from epochzero.run.watch.history import Record, TrainingHistory
from epochzero.run.watch.lines.data import label_place

_CHANCE, _UNSURE, _CLEAR, _SURE = 0.05, 4.0, 0.15, 8.0
"""Of what is explained, and of standard deviations above chance: hardly anything, and clearly something."""
_PLACES, _TURNED, _TIMES = 32, 0.1, 4.0


def _last(history: TrainingHistory, name: str) -> Record | None:
    """The largest sample of which this is known."""
    return next((of for of in reversed(history.pairings) if name in of), None)


def _shifted(history: TrainingHistory) -> Sign | None:
    """Inputs tell nothing about their own targets, and much about those of other examples at a fixed distance."""
    found = _last(history, "shifted")
    if found is None:
        return None
    own, unsure = found["trained"]
    name, (best, sure) = max(found["shifted"].items(), key=lambda of: of[1][0])
    is_chance, is_clear = own < _CHANCE and unsure < _UNSURE, best > _CLEAR and sure > _SURE
    if not (is_chance and is_clear):
        return None
    whose = (
        f"of the {name}"
        if "batch" in name
        else "of the batch in reverse order"
        if name == "reversed"
        else f"of the example {abs(int(name))} {'before' if int(name) > 0 else 'after'} it"
    )
    text = (
        f"Inputs explain none of their own targets, and {percent(best)} of the variance of the targets {whose} ({found['count']} "
        "examples, without the model): targets are shifted."
    )
    place = label_place(history, order=True) or label_place(history)
    return Sign(text, place, evidence={"own": own, "shifted": best})


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


RELATIONS: Sequence[Row] = (
    Row("labels_wrong", _shifted, 0.94, "Transform, sort, shuffle and cut inputs and targets together, by the same index."),
    Row("augmentation_wrong", _turned, 0.94, "Transform the image and its target with the same random choice."),
)  # fmt: skip
CURVES: Sequence[Row] = ()
