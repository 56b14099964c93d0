"""Examples come sorted by their label: each batch teaches one class and takes back the others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import classes
from epochzero.run.watch.history import History
from epochzero.run.watch.lines import place_of
from epochzero.run.watch.model import Finding

__all__ = ["find"]

_LOOKS = 6
_BATCH = 4


def find(history: History) -> Iterable[Finding]:
    """How often the label changes from example to example, beside how often it would by chance."""
    looked = [
        one.target
        for one in history.iterations
        if one.target.get("changes") is not None and (one.target["shape"] or [0])[0] >= _BATCH
    ]
    shares = classes(history)
    if (
        len(looked) < _LOOKS
        or len(shares) < 2
        or len(looked[0]["shape"]) > 1 < looked[0]["shape"][-1]
    ):
        return
    expected = 1 - sum(share * share for share in shares.values())
    changes = float(np.mean([one["changes"] for one in looked]))
    if expected < 0.1 or changes > 0.35 * expected:
        return
    sequential = [one for one in history.loaders if one["sampler"] == "SequentialSampler"]
    yield Finding(
        "not_shuffled",
        0,
        f"From one example to the next the label changes in {changes:.1%} of cases; in shuffled "
        f"data it would in {expected:.0%}.",
        place=next(map(place_of, sequential or history.loaders), None),
        confidence=0.93,
        fix="Shuffle the training examples anew in each epoch: DataLoader(..., shuffle=True).",
        evidence={"changes": changes, "expected": expected},
        causes=("loss_oscillating", "loss_rising", "loss_plateau", "underfitting", "overfitting",
                "loss_not_falling", "validation_diverging"),
    )  # fmt: skip
