"""A dropout rate so high, or in a place such, that too little of the signal is left."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import course, does_well, overfits
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import ModelLayer, TrainingHistory
from epochzero.run.watch.lines.settings import setting_place
from epochzero.run.watch.model import TrainingFinding

_HIGH = 0.65


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """High rates, or dropout on what the loss is given, in a training that does not get far."""
    dropouts = [layer for layer in history.layers if "Dropout" in layer.kind and layer.called]
    found = course(history)
    if not dropouts or found is None or len(history.iterations) < 5:
        return
    highest = max(dropouts, key=lambda layer: float(layer.settings.get("p") or 0))
    rate = float(highest.settings.get("p") or 0)
    well = does_well(history)
    gap = overfits(history)
    # None at all is no regularization, which has a word of its own.
    if gap is not None and 0 < rate < 0.1:
        yield _finding(highest, f"{highest.path} drops only {percent(rate)}: {gap.text}", 0.7)
        return
    order = [(path, kind) for path, kind in history.order if "Dropout" in kind or ":" not in path]
    if rate >= _HIGH and not well:
        yield _finding(
            highest,
            f"{highest.path} drops {percent(rate)} of its input.",
            0.88 if rate >= 0.8 else 0.78,
        )
    elif order and "Dropout" in order[-1][1] and not well:
        layer = history.layer(order[-1][0])
        if layer and layer.settings.get("p"):
            yield _finding(
                layer, f"{layer.path} drops outputs of the model: the loss receives zeros.", 0.82
            )
    elif sum(float(layer.settings.get("p") or 0) >= 0.5 for layer in dropouts) >= 3 and not well:
        yield _finding(
            highest, f"{len(dropouts)} consecutive layers drop {percent(rate)} each.", 0.66
        )


def _finding(layer: ModelLayer, text: str, confidence: float) -> TrainingFinding:
    return TrainingFinding(
        "dropout_wrong", 0, text, layer=layer.path, place=setting_place(layer.place, "p", 0, layer.kind), confidence=confidence,
        fix="Use a rate of 0.1 to 0.5, between hidden layers.",
        evidence={"rate": float(layer.settings.get("p") or 0)},
    )  # fmt: skip
