"""The model learns its examples by heart, and nothing holds it back."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import overfits, weight_decay
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.settings import place_of, setting_place
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """A gap to the evaluations, without dropout, weight decay or augmentation."""
    gap = overfits(history)
    if gap is None:
        return
    dropout = [
        layer for layer in history.layers if "Dropout" in layer.kind and layer.settings.get("p")
    ]
    decay = weight_decay(history)
    held_back = bool(dropout) or decay >= 1e-3
    first = next(iter(history.optimizers), None)
    yield TrainingFinding(
        "regularization_missing",
        gap.since,
        f"{gap.text[0].upper()}{gap.text[1:]} The model uses {'dropout' if dropout else 'no dropout'} and a "
        f"weight decay of {decay:g}.",
        place=setting_place(place_of(first), "weight_decay") if first else None,
        confidence=0.45 if held_back else 0.64,
        fix="Add dropout of 0.3 to 0.5 before the last layers, a weight decay of 1e-2 (AdamW), and "
        "augmentation.",
        evidence={"weight decay": float(decay), "dropout layers": float(len(dropout))},
    )
