"""A loss that does not fit the task, or is computed wrongly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from epochzero.run.watch.faults._signals import (
    OF_CLASSES,
    LossCourse,
    chance_loss,
    classes,
    course,
    does_well,
    judged,
)
from epochzero.run.watch.history import Iteration, Record, TrainingHistory
from epochzero.run.watch.lines.loss import loss_place, own_loss_place
from epochzero.run.watch.lines.settings import place_of
from epochzero.run.watch.model import SourceLine, TrainingFinding


def find(history: TrainingHistory) -> Iterable[TrainingFinding]:
    """The arguments of the loss compared with what it expects."""
    looked = judged(history)
    found = course(history)
    if found is None:
        return
    function = looked[0].loss_function if looked else ""
    place = loss_place(history, "reduction", function=function)
    if found.end < -_WITHOUT_BOUND * max(abs(found.start), 1.0):
        yield _finding("The loss decreases below zero without bound.", 0.88, own_loss_place(history),
                       "Check the sign of each term: the loss must be minimized.")  # fmt: skip
        return
    if not looked:
        yield from _by_hand(found, place)
        return
    output, target = looked[0].output, looked[0].target
    shape = output["shape"]
    well = does_well(history)
    if function in OF_CLASSES and len(shape) > 1 and shape[1] == 1:
        yield _finding(f"{function} over one output is always zero.", 0.95, place,
                       "Use binary_cross_entropy_with_logits, or two outputs.")  # fmt: skip
    elif function in _NUMBERS and _is_one_hot(looked) and not well:
        yield _finding(f"{function} between {shape[-1]} outputs and one-hot labels.", 0.82, place,
                       "Use cross_entropy with class indices.")  # fmt: skip
    elif (
        function in _NUMBERS and target.get("whole") and _are_classes(history, target) and not well
    ):
        yield _finding(f"{function} with class indices as labels.", 0.7, place,
                       "Use cross_entropy.")  # fmt: skip
    elif function in _NUMBERS and target and _is_spread_out(shape, target["shape"]):
        yield _finding(f"Output {shape} and target {target['shape']} are broadcast against each other.",
                       0.93, next(map(place_of, history.losses), place), "Give both the same shape.")  # fmt: skip
    elif function == "kl_div" and max(iteration.output["max"] for iteration in looked) > 1e-4:
        yield _finding("kl_div expects log-probabilities as its first argument.", 0.85, place,
                       "Pass log_softmax of the output first, then the probabilities.")  # fmt: skip
    elif function.startswith("binary_cross_entropy") and _is_one_hot(looked) and not well:
        yield _finding(f"{function} over {shape[-1]} classes of which exactly one is right.", 0.62, place,
                       "Use cross_entropy with class indices.")  # fmt: skip
    elif _sums(history) and not well:
        yield _finding("The loss is a sum over the batch: gradients grow with the batch size.", 0.87, place,
                       'Leave reduction="mean".')  # fmt: skip
    elif _is_negated(history, looked, found):
        yield _finding("The loss decreases below zero without bound.", 0.85, place,
                       "Check the sign: the loss must be minimized.")  # fmt: skip


_WITHOUT_BOUND = 1000.0
"""Times the loss at the start: a critic without a bound drifts far less."""
_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


def _by_hand(found: LossCourse, place: SourceLine | None) -> Iterable[TrainingFinding]:
    if found.start > 0 > found.end and found.end < -10 * abs(found.start):
        yield _finding("The loss decreases below zero without bound.", 0.6, place,
                       "Check the sign: the loss must be minimized.")  # fmt: skip


def _is_negated(history: TrainingHistory, looked: Sequence[Iteration], found: LossCourse) -> bool:
    """A known loss is never below zero; what is differentiated is its negative."""
    function = looked[0].loss_function
    others = (
        "CosineSimilarity", "gaussian_nll_loss", "poisson_nll_loss", "kl_div", "nll_loss", "ctc_loss",
    )  # fmt: skip
    return (
        bool(function)
        and function not in others
        and found.first < 0
        and found.end < min(0.0, found.start)
    )


def _is_one_hot(looked: Sequence[Iteration]) -> bool:
    shape = looked[0].target.get("shape", ())
    if len(shape) < 2 or shape[1] < 3:
        return False
    return all(
        it.target.get("whole") and abs(it.target["mean"] - 1 / it.target["shape"][1]) < 1e-3
        and it.target["min"] >= 0 and it.target["max"] <= 1
        for it in looked[:20] if it.target
    )  # fmt: skip


def _are_classes(history: TrainingHistory, target: Record) -> bool:
    found = classes(history)
    return (
        3 <= len(found) <= 50
        and min(found) >= 0
        and max(found) < 2 * len(found)
        and target["min"] >= 0
        # Several whole numbers a row are positions or counts.
        and not (len(target["shape"]) == 2 and target["shape"][1] > 1)
    )


def _is_spread_out(output: Sequence[int], target: Sequence[int]) -> bool:
    flat = [size for size in output if size != 1], [size for size in target if size != 1]
    return list(output) != list(target) and flat[0] == flat[1] and len(output) != len(target)


def _sums(history: TrainingHistory) -> bool:
    """Whether what is differentiated is as large as a sum: it may have been divided afterwards."""
    summed = any(
        loss.get("reduction") == "sum" and not loss.get("evaluating") for loss in history.losses
    )
    found, chance = course(history), chance_loss(history)
    sizes = [math.prod(it.target["shape"]) for it in history.iterations if it.target.get("shape")]
    if not summed or not found or not chance or not sizes:
        return False
    return found.first > 0.3 * chance * float(np.median(sizes))


def _finding(text: str, confidence: float, place: SourceLine | None, fix: str) -> TrainingFinding:
    return TrainingFinding("loss_wrong", 0, text, place=place, confidence=confidence, fix=fix)
