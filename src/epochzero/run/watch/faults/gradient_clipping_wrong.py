"""Clipping leaves next to nothing of the gradients: learning is as slow as the limit."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epochzero.run.watch.faults._signals import ADAPTIVE, course, does_well, moved
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.settings import clipping_place
from epochzero.run.watch.model import TrainingFinding

_LEFT = 0.02
_NOTHING = 1e-3


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The limit compared with the norm of the gradients before, in a training that does not get far."""
    yield from _by_value(history)
    clipped = [
        clipping
        for looked in history.iterations
        for clipping in looked.clippings
        if clipping.get("norm") and clipping.get("limit") is not None
    ]
    found = course(history)
    if len(clipped) < 5 or found is None or does_well(history):
        return
    left = float(np.median([min(1.0, record["limit"] / record["norm"]) for record in clipped]))
    far = max(moved(history).values(), default=1.0)
    if left > _LEFT or far > 3:
        return
    norm = float(np.median([record["norm"] for record in clipped]))
    adaptive = all(optimizer["class"] in ADAPTIVE for optimizer in history.optimizers)
    # Steps of a size of their own are as large with less of a gradient.
    if adaptive and min(norm, clipped[0]["limit"]) > _NOTHING:
        return
    yield _finding(
        history,
        f"Gradients with a norm of {norm:.3g} are clipped to {clipped[0]['limit']:g}, {percent(left)} of their size.",
        f"Clip at about {norm:.1g}, which leaves typical gradients unchanged.",
        {"norm": norm, "limit": clipped[0]["limit"]},
    )


def _by_value(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """All of a gradient at the limit of `clip_grad_value_`, and weights that hardly move."""
    limit = next((c["limit"] for c in history.clips if c["function"] == "clip_grad_value_"), None)
    gradients = [
        of["gradient"]
        for iteration in history.iterations
        for of in iteration.parameters.values()
        if "gradient" in of
    ]
    if not limit or len(gradients) < 10 or does_well(history):
        return
    at_it = [gradient for gradient in gradients if gradient["rms"] > 0.7 * limit]
    far = max(moved(history).values(), default=1.0)
    if len(at_it) > 0.7 * len(gradients) and far * max(1.0, 1000 / history.count) < 3:
        yield _finding(
            history,
            f"Nearly all elements of the gradients are clipped to {limit:g}.",
            f"Clip at about {limit * 1000.0:.0e}, or clip by the norm.",
            {"limit": limit},
        )


def _finding(
    history: TrainingHistory, text: str, fix: str, evidence: dict[str, float]
) -> TrainingFinding:
    return TrainingFinding(
        "gradient_clipping_wrong",
        0,
        text,
        place=clipping_place(history),
        confidence=0.92,
        fix=fix,
        evidence=dict(evidence),
        series="gradient",
    )  # fmt: skip
