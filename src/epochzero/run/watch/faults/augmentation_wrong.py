"""Augmentation that changes what the label says: examples of the training are no longer of their class."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.run.watch.faults._signals import does_well, evaluations, is_augmented
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.data import drawn_place
from epochzero.run.watch.model import TrainingFinding

_PAIRS = 200


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """Examples that never come again as they were, and neighbors that agree in evaluations only."""
    looked = [it.likeness for it in history.iterations if it.likeness.get("pairs")]
    pairs = sum(record["pairs"] for record in looked)
    if pairs < _PAIRS or not is_augmented(history):
        return
    agreement, chance = (
        sum(r[what] * r["pairs"] for r in looked) / pairs for what in ("agreement", "chance")
    )
    trained_gain = (agreement - chance) / max(1e-6, 1 - chance)
    tested = [ev.likeness for ev in evaluations(history) if ev.likeness.get("pairs")]
    others = sum(record["pairs"] for record in tested)
    tested_gain = 0.0
    if others:
        tested_gain = sum((o["agreement"] - o["chance"]) * o["pairs"] for o in tested) / others
    if others and tested_gain <= 3 * trained_gain + 0.1:
        return
    if not others and (trained_gain > 0.1 or does_well(history)):
        return
    yield TrainingFinding(
        "augmentation_wrong",
        0,
        f"No example repeats in {history.count} iterations, and the nearest neighbor has the same label in "
f"{percent(agreement)} of cases; by chance it would in {percent(chance)}.",
        place=drawn_place(history),
        confidence=0.8,
        fix="Inspect a dozen augmented examples: a person must still recognize their class.",
        evidence={"agreement": agreement, "chance": chance},
    )  # fmt: skip
