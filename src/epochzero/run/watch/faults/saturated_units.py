"""Units at the flat ends of their activation."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well, saturation
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines import activation_place
from epochzero.run.watch.model import TrainingFinding

_SHARE = 0.6


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Of sigmoids and the like within the model, the share at their ends."""
    if does_well(history):
        return
    for path, kind in history.order[:-1]:
        if kind.lower() not in ("sigmoid", "tanh", "hardtanh"):
            continue
        share = saturation(history, path)
        if share > _SHARE:
            layer = history.layer(path)
            yield TrainingFinding(
                "saturated_units",
                0,
                f"{percent(share)} of the outputs of {path} are in the saturated range of {kind}.",
                layer=path.partition(":")[0],
                place=activation_place(layer, path),
                confidence=0.6,
                series="saturated",
            )
            return
