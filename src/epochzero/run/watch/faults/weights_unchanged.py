"""Steps are made, and weights stay as they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import ratios, weights
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.model import TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The updates of all weights over the iterations looked at."""
    # The largest of each: where gradients are gathered, most iterations have no step.
    series = [ratios(history, one.name) for one in weights(history)]
    updates = [float(np.nanmax(one[:, 1])) for one in series if len(one) >= 3]
    if len(history.iterations) < 5 or not updates or max(updates) > 1e-9:
        return
    yield TrainingFinding(
        "weights_unchanged",
        0,
        f"None of {len(history.iterations)} sampled steps has changed a weight.",
        confidence=0.85,
        series="update",
    )
