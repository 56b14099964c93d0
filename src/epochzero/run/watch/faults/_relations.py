"""Relations that hold in each iteration of a correct training, between its calls, its data and its states.

A curve needs many iterations to show a fault. A relation is violated in the first of them, by an event with a line: a clipping
after the step, a target that is the input itself, a copy of the model that stays as it was. `RELATIONS` is the table: each row
names a fault, looks for a sign that the relation is violated, and has the confidence of the finding. To add one, write a function and a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from epochzero.run.watch.faults._signals import (
    ADAPTIVE,
    chance_loss,
    classes,
    course,
    does_well,
    is_classifier,
    train_accuracy,
)
from epochzero.run.watch.faults._table import Row, Sign
from epochzero.run.watch.faults._text import percent
from epochzero.run.watch.history import (
    Cycle,
    Iteration,
    Parameter,
    Record,
    TrainingCall,
    TrainingHistory,
)
from epochzero.run.watch.lines.contracts import (
    CONTRACTS,
    Contract,
    bootstrapped_place,
    reordered,
    uncleared,
    violations,
)
from epochzero.run.watch.lines.data import (
    input_place,
    label_place,
    mask_place,
    masking_place,
    noise_place,
    target_place,
)
from epochzero.run.watch.lines.direction import minimized_terms
from epochzero.run.watch.lines.layers import (
    blending_place,
    copy_place,
    cut_place,
    decays_of_copies,
    frozen_place,
    initialization_place,
    output_place,
    replaced_place,
    wrapping_place,
)
from epochzero.run.watch.lines.loss import difference_place, loss_place
from epochzero.run.watch.lines.settings import (
    is_stepped,
    place_of,
    schedule_place,
    setting_place,
    stated_iterations,
    stepping_place,
    warmup_place,
)
from epochzero.run.watch.lines.training import backward_place, step_place
from epochzero.run.watch.model import SourceLine

_LOGARITHM_OF_RELU = re.compile(
    r"\bLog(2|10)?( (Clone|Squeeze|Unsqueeze|View|Clamp\w*|Select|Slice|Maximum))* Relu\b"
)
_LEAST = 2
"""Moments that violate a relation before it is reported: the first may be a warm-up."""
_SHARE = 0.8
"""Of the moments to which a relation applies; an exception, such as the last batch of an epoch, does not hide the rule."""

_ONSET, _SHARE_OF_ONSET = 6, 0.1
"""Moments in a row until now, and their share, that violate a relation that held before."""
_STEPS_WITHOUT = 4
"""Steps without any gradient: a network may wait for another one to learn first."""


Moment = TypeVar("Moment", Cycle, Iteration)


def _lasting(
    history: TrainingHistory,
    moments: Sequence[Moment],
    test: Callable[[TrainingHistory, Moment], Sign | bool | None],
    least: int = _LEAST,
) -> Sign | None:
    """The first violation, if most moments to which a relation applies violate it.

    Args:
        history: of the training.
        moments: its cycles or iterations.
        test: the violation of one of them; True where the relation holds, None where it does not apply.
        least: violations at least.
    """
    found = [(m, answer) for m in moments if (answer := test(history, m)) is not None]
    violated = [(moment, answer) for moment, answer in found if isinstance(answer, Sign)]
    since = ""
    if len(violated) < max(least, _SHARE * len(found)):
        # What held at first, and is violated from some moment on.
        held = max((n for n, (_, a) in enumerate(found) if not isinstance(a, Sign)), default=-1)
        after = len(found) - 1 - held if held >= 0 else 0
        violated = violated[len(violated) - after :]
        if len(violated) < max(least, _ONSET, _SHARE_OF_ONSET * len(found)):
            return None
        since = f"From iteration {violated[0][0].number} on: "
    moment, first = violated[0]
    return Sign(
        since + first.text, first.place, moment.number, first.layer, first.evidence, first.weaker
    )


def _of_cycles(
    test: Callable[[TrainingHistory, Cycle], Sign | bool | None],
) -> Callable[[TrainingHistory], Sign | None]:
    return lambda history: _lasting(history, history.cycles, test)


def _of_iterations(
    test: Callable[[TrainingHistory, Iteration], Sign | bool | None], least: int = _LEAST
) -> Callable[[TrainingHistory], Sign | None]:
    return lambda history: _lasting(history, history.iterations, test, least)


def _place(history: TrainingHistory, call: TrainingCall) -> SourceLine | None:
    return history.calls.get(call.line)


# -- The order of calls ------------------------------------------------------------------------


def _steps(cycle: Cycle) -> Iterator[tuple[TrainingCall, list[TrainingCall]]]:
    """Each step that was taken, and the calls before it in its cycle."""
    for number, call in enumerate(cycle.calls):
        # A line search clears and computes gradients within its step.
        if call.kind == "step" and call.flag != "repeated":
            yield call, list(cycle.calls[:number])


def _since_cleared(
    step: TrainingCall, before: Sequence[TrainingCall]
) -> tuple[list[TrainingCall], TrainingCall | None, list[TrainingCall]]:
    """The backward passes before the optimizer's gradients were last cleared, that call, and the passes after it."""
    cleared = [
        n for n, call in enumerate(before) if call.kind == "clear" and call.subject == step.subject
    ]
    last = cleared[-1] if cleared else -1
    passes = [(n, call) for n, call in enumerate(before) if call.kind == "backward"]
    lost = [call for n, call in passes if n < last]
    return lost, before[last] if cleared else None, [call for n, call in passes if n > last]


def _cleared_before_step(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """A step whose gradients were cleared between the backward pass and the step."""
    for step, before in _steps(cycle):
        lost, cleared, effective = _since_cleared(step, before)
        if cleared is None or not lost:
            continue
        if not effective and not _has_gradients(history, cycle.number):
            text = "Gradients are cleared between the backward pass and the step: the step has none to apply."
            return Sign(text, _place(history, cleared))
    return True if any(call.kind == "step" for call in cycle.calls) else None


def _has_gradients(history: TrainingHistory, number: int) -> bool:
    """Whether an optimizer found gradients: a program may put back some that it has changed."""
    found = next((i for i in history.iterations if i.number == number), None)
    return found is None or all(
        of.get("gradient", {}).get("largest", 0.0) > 0 for of in found.parameters.values()
    )


def _accumulated(step: TrainingCall, before: Sequence[TrainingCall]) -> list[TrainingCall]:
    """The backward passes of one line before a step, if it accumulates gradients."""
    passes = [call for call in before if call.kind == "backward"]
    last = passes[-1:] and [call for call in passes if call.line == passes[-1].line]
    return last if len(last) > 1 else []


def _accumulation_cleared(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """Gradients are cleared between the backward passes of one step."""
    for step, before in _steps(cycle):
        passes = _accumulated(step, before)
        lost, cleared, effective = _since_cleared(step, before)
        if not passes:
            continue
        if cleared is None or not lost or len(effective) >= len(passes):
            return True
        assigned = any(call.kind == "assign" for call in before)
        if assigned or (not effective and _has_gradients(history, cycle.number)):
            return True  # The program has set gradients that it computed from those of each pass.
        text = (
            f"Of {len(passes)} backward passes before a step, only the gradients of {len(effective)} reach it: they are "
            "cleared in between."
        )
        return Sign(text, _place(history, cleared))
    return None


def _accumulation_not_divided(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """Gradients of several batches are added up, each of a loss that is a mean over its batch."""
    for step, before in _steps(cycle):
        passes = _accumulated(step, before)
        losses = [call for call in before if call.kind == "loss" and call.value is not None]
        lost, _, _ = _since_cleared(step, before)
        if (
            not passes
            or lost
            or len(losses) != len(passes)
            or not all(map(_is_finite, (*passes, *losses)))
        ):
            continue
        whole = all(
            call.value is not None and np.isclose(call.value, loss.value or 0.0, rtol=1e-5)
            for call, loss in zip(passes, losses, strict=True)
        )
        if not whole or not all(loss.flag.endswith(" mean") for loss in losses):
            return True
        adaptive = all(optimizer["class"] in ADAPTIVE for optimizer in history.optimizers)
        text = (
            f"The gradients of {len(passes)} batches are added up before a step, and the loss of each is not divided by "
            f"{len(passes)}: steps are {len(passes)} times as large."
        )
        weaker = 0.42 if adaptive or does_well(history) else 0.0
        return Sign(text, _place(history, passes[0]), weaker=weaker)
    return None


def _is_finite(call: TrainingCall) -> bool:
    return call.value is not None and bool(np.isfinite(call.value))


def _clipped_after_step(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """A clipping that no step follows before the next backward pass; without a limit it only measures the norm."""
    clips = [n for n, call in enumerate(cycle.calls) if call.kind == "clip" and _is_finite(call)]
    if not clips or not any(call.kind == "step" for call in cycle.calls):
        return None
    for number in clips:
        earlier = [call.kind for call in cycle.calls[:number] if call.kind in ("backward", "step")]
        later = [call.kind for call in cycle.calls[number:] if call.kind in ("backward", "step")]
        if earlier[-1:] == ["step"] and later[:1] != ["step"]:
            text = "Gradients are clipped after the step that they are for, which has no effect."
            return Sign(text, _place(history, cycle.calls[number]))
    return True


def _clipped_before_unscaling(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """Gradients of a scaled loss are clipped as they are, and divided by the scale afterwards."""
    scaled = False
    applies = None
    for call in cycle.calls:
        if call.kind == "backward":
            scaled = call.flag == "scaled"
        elif call.kind in ("unscale", "step"):
            scaled = False
        elif call.kind == "clip" and _is_finite(call):
            applies = True
            if scaled:
                text = (
                    "Gradients are clipped while they are multiplied by the scale of the loss: what is left is "
                    "divided by the scale, and far smaller than the limit."
                )
                return Sign(text, _place(history, call))
    return applies


def _scaler_bypassed(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """The loss is scaled and the gradients are not divided before the step, or the other way round."""
    passes = [call for call in cycle.calls if call.kind == "backward"]
    scaled = any(call.flag == "scaled" for call in passes)
    for step, before in _steps(cycle):
        by_scaler = step.flag in ("scaler", "skipped")
        divided = by_scaler or any(call.kind == "unscale" for call in before)
        if scaled and not divided:
            text = (
                "The loss is multiplied by the scale of the gradient scaler, and the optimizer steps without the scaler: "
                "gradients are too large by this factor."
            )
            return Sign(text, _place(history, step))
        if by_scaler and passes and not scaled:
            text = (
                "The scaler divides gradients by its scale, but the loss was not multiplied by it."
            )
            return Sign(text, _place(history, passes[0]))
    return True if scaled else None


def _negated(history: TrainingHistory, cycle: Cycle) -> Sign | bool | None:
    """What is minimized is the negative of the only loss."""
    passes = [call for call in cycle.calls if call.kind == "backward"]
    losses = [call for call in cycle.calls if call.kind == "loss"]
    if len(passes) != 1 or len(losses) != 1 or passes[0].flag or len(history.optimizers) != 1:
        return None
    value, loss = passes[0].value, losses[0].value
    if value is None or not loss or any(g.get("maximize") for g in history.optimizers[0]["groups"]):
        return None
    if not np.isclose(value, -loss, rtol=1e-5):
        return True
    text = f"{losses[0].flag.split()[0]} is {loss:.4g}, and the training minimizes its negative."
    return Sign(text, _place(history, losses[0]))


def _minimizes_what_should_grow(history: TrainingHistory) -> Sign | None:
    """A likelihood, a reward, an overlap or the value of an action that is minimized, by the signs in the source."""
    if any(group.get("maximize") for o in history.optimizers for group in o["groups"]):
        return None
    for terms in minimized_terms(history):
        first, grows = terms[0], terms[0].sign > 0
        text = (
            f"{first.name} should grow, and the training minimizes it: a minus sign or maximize=True is missing."
            if all(term.grows for term in terms)
            else f"The loss falls as {terms[1].name} gains on {terms[0].name}: the wrong one is preferred."
            if grows
            else f"{first.name} should fall, and is subtracted: the loss falls as it grows."
        )
        return Sign(text, first.place)
    return None


def _without_gradients(history: TrainingHistory) -> Sign | None:
    """An optimizer that steps after backward passes which give none of its parameters a gradient."""
    counts: dict[int, list[tuple[int, float]]] = {}
    for cycle in history.cycles:
        for step, before in _steps(cycle):
            if step.value is not None and _since_cleared(step, before)[2]:
                counts.setdefault(step.subject, []).append((cycle.number, step.value))
    for record in history.optimizers:
        found = counts.get(int(record.get("number", -1)), [])
        without = [number for number, count in found if not count]
        last = max((n for n, (_, count) in enumerate(found) if count), default=-1)
        since = [number for number, _ in found[last + 1 :]]
        if len(since) >= max(_ONSET, _SHARE_OF_ONSET * len(found)):
            without = since
        elif len(without) < max(_STEPS_WITHOUT, _SHARE * len(found)):
            continue
        text = "No parameter of this optimizer gets a gradient: the loss does not depend on what it would change."
        place = replaced_place(place_of(record)) or cut_place(history) or place_of(record)
        return Sign(
            f"From iteration {without[0]} on: {text}" if last >= 0 else text, place, without[0]
        )
    return None


def _thawed_and_left_out(history: TrainingHistory) -> Sign | None:
    """Parameters that were made trainable, get gradients, and belong to no optimizer."""
    seen = [iteration.unheld for iteration in history.iterations]
    found = [
        p
        for p in history.parameters
        if p.thawed and not p.held and sum(p.name in of for of in seen) >= _STEPS_WITHOUT
    ]
    if not found:
        return None
    text = f"{found[0].name} and {len(found) - 1} other parameters were made trainable, and belong to no optimizer: they never change."
    since = next(i.number for i in history.iterations if found[0].name in i.unheld)
    return Sign(text, next(map(place_of, history.optimizers[::-1]), None), since, found[0].layer)


def _stuck_at_zero(history: TrainingHistory) -> Sign | None:
    """Weights that are zero and whose gradient is zero: each waits for another one that is zero as well."""
    for parameter in history.parameters:
        name = parameter.name
        seen = [i.parameters[name] for i in history.iterations if name in i.parameters]
        zero = [
            of
            for of in seen
            if not of.get("weight", {}).get("rms") and of.get("gradient", {}).get("largest") == 0
        ]
        if (
            parameter.held
            and len(parameter.shape) > 1
            and len(seen) >= _STEPS_WITHOUT
            and len(zero) == len(seen)
        ):
            text = f"{name} is zero and its gradient as well: what it is multiplied by must not begin at zero too."
            return Sign(text, initialization_place(history, parameter), layer=parameter.layer)
    return None


def _never_cleared(history: TrainingHistory) -> Sign | None:
    """No call clears gradients, where an optimizer does not show what is left of them."""
    observed = any(iteration.before for iteration in history.iterations) or any(
        call.kind == "clear" for cycle in history.cycles for call in cycle.calls
    )
    return None if observed else next((Sign(*found) for found in uncleared(history)), None)


# -- Schedules ---------------------------------------------------------------------------------

_EVERY, _GONE, _EARLY = 0.9, 0.01, 0.3
_RISING = 3
"""Rates on one line."""
_PERIODS = 3
"""Of a cosine without restarts: a rate that rises again once may be meant, where epochs are not known."""
_HORIZONS = ("T_max", "total_steps", "total_iters", "step_size")
_OF_DECAY = ("step_size", "T_max", "total_iters")


def _scheduled(history: TrainingHistory) -> Iterator[tuple[Record, float]]:
    """Each schedule, and how often it was stepped per iteration since it was first stepped."""
    for record in history.schedulers:
        number = record.get("number")
        if number is None:
            continue
        counts = [
            (iteration.number, iteration.scheduled[number])
            for iteration in history.iterations
            if number < len(iteration.scheduled)
        ]
        if len(counts) > 2 and counts[-1][0] > counts[0][0]:
            (first, before), (last, after) = counts[0], counts[-1]
            yield record, (after - before) / (last - first)


def _batches(history: TrainingHistory) -> int | None:
    """Iterations of an epoch, by the first loader that is run through again."""
    begins: dict[int, list[int]] = {}
    for epoch in history.epochs:
        begins.setdefault(epoch["loader"], []).append(int(epoch["iteration"]))
    gaps = [b - a for starts in begins.values() for a, b in pairwise(starts) if b > a]
    return int(np.median(gaps)) if gaps else None


def _schedule_by_batch(history: TrainingHistory) -> Sign | None:
    """A schedule that is stepped in each iteration, and has ended after a small part of them."""
    rates = np.array([(i.number, max(i.rates)) for i in history.iterations if i.rates])
    if len(rates) < 8 or history.count < 50 or len(history.schedulers) != 1:
        return None
    planned = history.planned or history.count
    for record, each in _scheduled(history):
        peak = int(np.argmax(rates[:, 1]))
        low = rates[peak:][rates[peak:, 1] < _GONE * rates[peak, 1]]
        batches = _batches(history)
        horizon = next((float(v) for n in _OF_DECAY if (v := record["settings"].get(n))), None)
        if each < _EVERY or "Plateau" in record["class"] or "Warm" in record["class"]:
            continue
        stays = len(low) and len(low) >= 0.9 * int((rates[:, 0] >= low[0, 0]).sum())
        gone = stays and low[0, 0] < _EARLY * planned
        length = max(batches or 0, history.count / _PERIODS)
        short = horizon is not None and 2 * horizon <= length
        if gone or (short and record["class"] == "CosineAnnealingLR"):
            at = (
                f"is below 1% of its peak from iteration {int(low[0, 0])} on"
                if gone
                else "rises again"
            )
            text = (
                f"{record['class']} is stepped in every iteration, and the learning rate {at}; there were {history.count} "
                "iterations so far."
            )
            place = stepping_place(history, _schedule_call(history, record))
            return Sign(text, place, int(low[0, 0]) if gone else 0)
    return None


def _schedule_by_epoch(history: TrainingHistory) -> Sign | None:
    """A schedule for all iterations that is stepped once an epoch."""
    batches = _batches(history)
    if batches is None or batches < 4 or history.count < 2 * batches:
        return None
    for record, each in _scheduled(history):
        horizon = next((int(v) for n in _HORIZONS if (v := record["settings"].get(n))), 0)
        epochs, rest = divmod(horizon, batches)
        if 0 < each <= 1.5 / batches and epochs >= 2 and rest == 0:
            text = (
                f"{record['class']} lasts {horizon} steps, which is {epochs} epochs of {batches} iterations, but it is stepped "
                "once per epoch: the learning rate hardly changes."
            )
            place = stepping_place(history, _schedule_call(history, record))
            return Sign(text, place)
    return None


def _still_warming_up(history: TrainingHistory) -> Sign | None:
    """A learning rate that rises until the training ends, or in steps of which there will be too few."""
    rates = np.array([(i.number, max(i.rates)) for i in history.iterations if i.rates])
    length, total = _warmup(history), stated_iterations(history)
    if length and total and length > total:
        text = f"The learning rate rises over {length} steps, and the training has {total}: its warm-up is longer than the training."
        return Sign(text, warmup_place(history) or schedule_place(history))
    if (
        len(rates) < 8
        or not history.ended
        or not history.schedulers
        or rates[-1, 0] < 0.8 * history.count
    ):
        return None
    values, last = rates[:, 1], float(rates[-1, 1])
    middle = float(np.interp(0.5 * history.count, rates[:, 0], values))
    # A search for a rate multiplies it; a warm-up adds to it.
    if (
        (np.diff(values) < 0).any()
        or values[0] > 0.2 * last
        or not 0.3 * last < middle < 0.8 * last
    ):
        return None
    text = f"The learning rate rises from {values[0]:.2g} to {last:.2g} until the training ends: its warm-up is longer than the training."
    return Sign(text, warmup_place(history) or schedule_place(history))


def _warmup(history: TrainingHistory) -> int:
    """Steps over which a rate rises that has been proportional to the steps of its schedule so far; 0 where it has not."""
    if len(history.schedulers) != 1 or history.schedulers[0]["class"] != "LambdaLR":
        return 0
    seen = [
        (iteration.scheduled[0], max(iteration.rates))
        for iteration in history.iterations
        if iteration.scheduled and iteration.rates
    ]
    base = max(history.schedulers[0]["settings"].get("base_lrs") or [0.0])
    for first in (0, 1):  # The schedule's first step, as its function counts.
        slopes = [rate / (step + first) for step, rate in seen if step + first]
        if len({rate for _, rate in seen}) >= _RISING and np.ptp(slopes) < 1e-3 * max(slopes):
            return int(base / max(slopes) + 0.5)
    return 0


def _schedule_never(history: TrainingHistory) -> Sign | None:
    """A schedule that is never stepped."""
    stepping = {
        call.subject for cycle in history.cycles for call in cycle.calls if call.kind == "schedule"
    }
    rates = {iteration.rates for iteration in history.iterations if iteration.rates}
    for record in history.schedulers:
        number = record.get("number")
        if len(rates) > 1 or number is None or stepping or not history.ended or history.count < 30:
            continue
        if any(i.scheduled[number : number + 1] not in ((), (0,)) for i in history.iterations):
            continue
        # It may wait for something that has not happened, as a worse evaluation.
        if is_stepped(place_of(record)):
            continue
        text = f"{record['class']} is never stepped: the learning rate stays as it is."
        return Sign(text, place_of(record))
    return None


def _schedule_call(history: TrainingHistory, record: Record) -> SourceLine | None:
    calls = (call for cycle in history.cycles for call in cycle.calls if call.kind == "schedule")
    return next((_place(history, call) for call in calls if call.subject == record["number"]), None)


# -- Targets, inputs and outputs ---------------------------------------------------------------

_SAME = 0.999
_AHEAD, _ONLY, _PROBABILITY = 0.05, 0.9, 1e-3
_PADDED = 0.1
_BATCHES = 5
_SYMBOLS, _OF_SYMBOLS = 8, 8
"""Rows of a table, and iterations in which one of them was used."""
_APART = 1000.0
_KINDS_FIT = 0.2
"""Natural logarithm by which the ratio of two weights may differ from that of frequencies."""
_ONE_CLASS = 12
_INDEXED = ("cross_entropy", "nll_loss")
_ZERO_ROWS = 0.2
_LABELS = 100
_NEIGHBORS = 48
_MOST_ALIKE = 0.8
"""Share of pairs with the same label by chance: with hardly more than one class nothing is known."""


def _lagging(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """The target of each position is its own input, the one before, or the next but one."""
    lags = iteration.relations.get("lags")
    if not lags:
        return None
    before, same, following, second = lags
    if following >= _SAME or max(before, same, second) < _SAME:
        return True
    what = (
        "the input at its own position: the model only has to copy"
        if same >= _SAME
        else "the input before it, which the model has seen"
        if before >= _SAME
        else "the input two positions ahead: targets are shifted twice"
    )
    return Sign(f"Each target is {what}.", target_place(history))


def _attends_ahead(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """A model that predicts the next token sees it: an attention without a causal mask, or a recurrent layer of both directions."""
    lags = iteration.relations.get("lags")
    if not lags or lags[2] < _SAME:
        return None
    length = iteration.inputs[0]["shape"][-1] if iteration.inputs else 0
    seen = [s for s in iteration.softmaxes if "future" in s and s["shape"][-1] == length]
    both = [of for of in history.layers if of.called and of.settings.get("bidirectional")]
    if both and not seen:
        text = f"{both[0].path} reads sequences in both directions, and the target of a position is the token after it."
        return Sign(text, both[0].place, layer=both[0].path)
    # Weights of an attention that failed are no numbers.
    if not seen or not all(s["future"] >= _AHEAD for s in seen):
        return True
    share = min(s["future"] for s in seen)
    text = f"{percent(share)} of the attention is on later positions, and the target of a position is the token after it."
    return Sign(text, place_of(seen[0]), evidence={"share": share})


def _mixes_examples(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """A layer that takes the batch for the sequence: batch_first is False, and examples are in the first dimension."""
    layers = [of for of in history.layers if of.settings.get("batch_first") is False and of.called]
    batch = iteration.target.get("shape", ())[:1]
    sizes = {*batch, *(loader.get("batch_size") for loader in history.loaders)}
    given = iteration.inputs[0]["shape"] if iteration.inputs else []
    if not layers or len(given) < 2 or given[0] not in sizes or given[0] == given[1]:
        return None
    for layer in layers:
        # An attention calls no layers of its own; those next to it have the same shape.
        within = layer.path if layer.leaf else layer.path.rpartition(".")[0]
        inner = (of["shape"] for path, of in iteration.layers.items() if _is_at(path, within))
        shape: list[int] = next((shape for shape in inner if len(shape) == 3), [])
        if shape[:2] == given[:2]:
            text = (
                f"{layer.path or layer.kind} has batch_first=False and is given {shape[0]} examples of {shape[1]} positions: it "
                "takes examples for positions."
            )
            return Sign(text, layer.place, layer=layer.path)
    return True


def _is_at(path: str, within: str) -> bool:
    return not within or path == within or path.startswith((f"{within}.", f"{within}:"))


def _attends_padding(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """A mask of an attention that excludes words and leaves padding."""
    seen = [s for s in iteration.softmaxes if s.get("padded", 0.0) > _PADDED / 2]
    if not seen:
        return None
    if not all(s["padding"] >= _ONLY for s in seen):
        return True
    share = min(s["padding"] for s in seen)
    text = f"{percent(share)} of the attention of words is on padding: the mask is inverted."
    place = masking_place(place_of(seen[0])) or mask_place(history) or place_of(seen[0])
    return Sign(text, place, evidence={"share": share})


def _is_bootstrapped(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """A target of the next state's value that gradients pass through."""
    if "pairs" not in iteration.relations and not iteration.relations.get("differentiable"):
        return None if not iteration.relations else True
    place = bootstrapped_place(history) if iteration.relations.get("differentiable") else None
    if place is None:
        return True
    text = (
        "Gradients pass through the value of the next state: the target moves with what it is for."
    )
    return Sign(text, place)


def _no_logarithms(history: TrainingHistory) -> Sign | None:
    """Numbers above 0 where the loss takes logarithms of probabilities."""
    functions = ("nll_loss", "ctc_loss")  # What kl_div is given, loss_wrong compares.
    above = [
        iteration
        for iteration in history.iterations
        if iteration.loss_function in functions and iteration.output.get("max", 0.0) > _PROBABILITY
    ]
    if len(above) < _LEAST:
        return None
    text = (
        f"{above[0].loss_function} expects log-probabilities, which are at most 0, and is given values up to "
        f"{above[0].output['max']:.3g}."
    )
    return Sign(text, output_place(history, "") or loss_place(history), above[0].number)


def _breach(contract: Contract) -> Callable[[TrainingHistory], Sign | None]:
    """The first statement that breaks a contract of the training loop."""

    def sign(history: TrainingHistory) -> Sign | None:
        return next((Sign(text, place) for text, place in violations(history, contract)), None)

    return sign


def _same_batch(history: TrainingHistory) -> Sign | None:
    """Every inspected batch is the same, since the generator that draws it begins anew each time."""
    batches = [str([of.get("rows") for of in iteration.inputs]) for iteration in history.iterations]
    if len(batches) < _BATCHES or len(set(batches)) > 1:
        return None
    found = next(violations(history, CONTRACTS[0]), None)
    return Sign(f"All batches are the same. {found[0]}", found[1]) if found else None


def _reordered(history: TrainingHistory) -> Sign | None:
    found = reordered(history)
    return Sign(*found) if found is not None else None


def _one_symbol(history: TrainingHistory) -> Sign | None:
    """A table of many symbols of which all examples use the same one."""
    seen = history.iterations if len(history.iterations) >= _OF_SYMBOLS else ()
    codes = [{(of["name"], of["mean"]) for of in i.inputs if _is_constant_code(of)} for i in seen]
    constant = set[tuple[str, float]].intersection(*codes) if codes else set()
    for layer in history.layers if constant else ():
        rows = int(layer.settings.get("num_embeddings") or 0)
        gradients = [i.parameters.get(f"{layer.path}.weight", {}).get("gradient", {}) for i in seen]
        zeros = [of["zeros"] for of in gradients if of.get("largest")]
        if layer.kind == "Embedding" and rows >= _SYMBOLS and zeros and min(zeros) > 1 - 1.5 / rows:
            text = f"{layer.path} has {rows} rows, and all inputs are {min(constant)[1]:g}: it tells no example from another."
            return Sign(text, layer.place, layer=layer.path)
    return None


def _is_constant_code(tensor: Record) -> bool:
    """Whether an input is one whole number for several examples."""
    whole = str(tensor.get("dtype")).startswith("int")
    return whole and tensor["std"] == 0 and tensor["shape"][:1] > [1]


def _logarithm_of_relu(history: TrainingHistory) -> Sign | None:
    """A loss that takes the logarithm of what a ReLU returns, as of a variance: where it is 0 there is no gradient."""
    for record in history.backwards:
        heads = " ".join(name.partition("Backward")[0] for name in record.get("graph", ()))
        if _LOGARITHM_OF_RELU.search(heads):
            path = next(
                (path for path, kind in reversed(history.order) if kind.lower() == "relu"), ""
            )
            text = "The loss takes the logarithm of what a ReLU returns: where that is 0, nothing brings it back."
            return Sign(text, output_place(history, path), layer=path.partition(":")[0])
    return None


def _share(
    history: TrainingHistory,
    iteration: Iteration,
    *,
    name: str,
    least: float,
    text: str,
    place: Callable[[TrainingHistory], SourceLine | None],
    functions: Sequence[str] = (),
) -> Sign | bool | None:
    """A relation that is recorded as a share, for which no target of these losses may reach a limit."""
    if not iteration.target or (functions and iteration.loss_function not in functions):
        return None
    share = float(iteration.relations.get(name) or 0)
    text = text.format(percent(share))
    return Sign(text, place(history), evidence={"share": share}) if share >= least else True


def _padded(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """Padding at the ends of sequences is counted in the loss."""
    if not iteration.relations.get("lags") and not iteration.relations.get("padding"):
        return None
    share = iteration.relations.get("padding", 0.0)
    if share < _PADDED:
        return True
    text = f"{percent(share)} of the targets are padding at the ends of sequences, and count in the loss."
    weaker = 0.25 if does_well(history) else 0.0
    return Sign(
        text, loss_place(history, "ignore_index"), evidence={"padding": share}, weaker=weaker
    )


def _unrelated_noise(history: TrainingHistory) -> Sign | None:
    """The target is noise that is not in the input."""
    found = [
        (float(iteration.relations["noise"]), int(iteration.relations["pairs"]))
        for iteration in history.iterations
        if "noise" in iteration.relations
    ]
    pairs = sum(count for _, count in found)
    if len(found) < 5 or pairs < 1000 or len(found) < _SHARE * len(history.iterations):
        return None
    mean = sum(value * count for value, count in found) / pairs
    if abs(mean) > 5 / pairs**0.5:
        return None
    text = (
        f"The target is noise that has nothing to do with the input (correlation {mean:.3f} over {pairs} values): it cannot be "
        "predicted."
    )
    return Sign(text, target_place(history) or loss_place(history), evidence={"correlation": mean})


def _other_dimension(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """What the loss is given is normalized over another dimension than that of the classes."""
    normalized = iteration.relations.get("normalized")
    if not normalized:
        return None
    if 1 in normalized:
        return True
    softmax = next((s for s in iteration.softmaxes if s["dim"] == normalized[0]), None)
    place = place_of(softmax) if softmax else loss_place(history)
    text = (
        f"{iteration.loss_function} expects classes in dimension 1, but the probabilities that it is given add up to 1 over dimension "
        f"{normalized[0]}."
    )
    return Sign(text, place)


def _of_one_value(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """A softmax over a dimension of size 1, which is 1 whatever the model computes."""
    for softmax in iteration.softmaxes:
        shape, dimension = softmax["shape"], softmax["dim"]
        # An attention may have one key only.
        is_attention = len(shape) > 2 and dimension == len(shape) - 1
        if shape and shape[dimension] == 1 and not is_attention:
            text = (
                f"{softmax['function']} over dimension {dimension} of {shape}: over a single value it is constant, and no "
                "gradient passes."
            )
            return Sign(text, place_of(softmax))
    return True if iteration.softmaxes else None


def _over_the_batch(
    history: TrainingHistory, iteration: Iteration, *, last: bool
) -> Sign | bool | None:
    """A softmax over the examples of the batch, or over the queries of an attention; the last one, or one within the model."""
    if not iteration.softmaxes or not iteration.inputs:
        return None
    batch = iteration.inputs[0]["shape"][0] if iteration.inputs[0]["shape"] else 0
    # A model that answers once for a set may weigh its elements, which are the first dimension.
    by_example = iteration.output.get("shape", ())[:1] == [batch]
    for softmax in iteration.softmaxes:
        shape, dimension = softmax["shape"], softmax["dim"]
        over_batch = by_example and _is_over_batch(shape, dimension, batch)
        square = len(shape) > 2 and shape[-1] == shape[-2] > 2 and dimension == len(shape) - 2
        alone = not any(s["shape"] == shape and s["dim"] != dimension for s in iteration.softmaxes)
        of_layers = [iteration.layers.get(path, {}).get("shape") for path, _ in history.order[-1:]]
        if (
            (over_batch or square)
            and alone
            and last == (shape in (iteration.output.get("shape"), *of_layers))
        ):
            what = "the examples of the batch" if over_batch else "queries instead of keys"
            text = f"{softmax['function']} over dimension {dimension} of {shape} normalizes over {what}."
            return Sign(text, place_of(softmax))
    return True


def _is_over_batch(shape: Sequence[int], dimension: int, batch: int) -> bool:
    return len(shape) > 1 and dimension == 0 and shape[0] == batch and batch not in shape[1:]


def _labels_of_neighbor(history: TrainingHistory) -> Sign | None:
    """The nearest neighbors agree if each example has the label of the one before or after it."""
    found = [i.likeness for i in history.iterations if "before" in i.likeness]
    pairs = sum(likeness["pairs"] for likeness in found)
    if pairs < _NEIGHBORS:
        return None
    share = {
        name: sum(likeness[name] * likeness["pairs"] for likeness in found) / pairs
        for name in ("agreement", "before", "after", "chance")
    }
    name = max(("before", "after"), key=lambda side: share[side])
    error = (share["chance"] * (1 - share["chance"]) / pairs) ** 0.5
    if share["chance"] > _MOST_ALIKE:
        return None
    far = max(6 * error, 0.3 * (1 - share["chance"]))
    # Sorted examples agree with their neighbors in the batch as well.
    if share[name] < share["chance"] + far or share["agreement"] > share["chance"] + 0.3 * far:
        return None
    text = (
        f"Similar examples have the same label in {percent(share['agreement'])} of cases, which is chance; with the label of the "
        f"example {name} each, in {percent(share[name])}: labels are shifted by one."
    )
    return Sign(
        text, label_place(history, order=True) or label_place(history), evidence=dict(share)
    )


def _one_label(history: TrainingHistory, *, binary: bool) -> Sign | None:
    """All labels are the same, of a loss for two classes or of one for as many as the model has outputs."""
    seen = [i for i in history.iterations if i.target and i.loss_function]
    # Each part of an adversarial loss may have one class.
    parts = any(sum(call.kind == "loss" for call in cycle.calls) > 1 for cycle in history.cycles)
    early = len(history.epochs) < 2 and not history.ended
    if len(seen) < max(_ONE_CLASS, _SHARE * len(history.iterations)) or parts or early:
        return None
    values = {iteration.target[end] for iteration in seen for end in ("min", "max")}
    label = f"All labels are {min(values):g}"
    if binary:
        of_two = all(i.loss_function.startswith("binary_cross_entropy") for i in seen)
        if (
            len(values) > 1
            or not of_two
            or not len(history.optimizers) == len(history.loss_by_line) == 1
        ):
            return None
        place = target_place(history) or label_place(history)
        return Sign(f"{label}: the loss asks for the same answer to every example.", place)
    classes = (*seen[0].output["shape"], 0)[1]
    if (
        len(values) > 1
        or classes < 2
        or not all(iteration.direct and iteration.loss_function in _INDEXED for iteration in seen)
    ):
        return None
    text = f"{label}, and the model has {classes} outputs: it learns to ignore its input."
    return Sign(text, label_place(history))


def _denoises_nothing(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """The target is the input with the noise that the program has added to it."""
    if iteration.loss_function not in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        return None
    if not iteration.relations.get("identical"):
        return True
    noise = noise_place(history)
    if noise is None:
        return True
    text = "The target is the noisy input itself: the model only has to copy."
    return Sign(text, noise)


def _all_pairs(history: TrainingHistory) -> Sign | None:
    """An output of one column is subtracted from a row of targets, or the other way round."""
    for record in history.backwards:
        if shape := record.get("pairs"):
            text = (
                f"A difference of an output and its targets has the shape {shape}: a column is broadcast against a row, and "
                "each output is compared with all targets."
            )
            return Sign(text, difference_place(history, place_of(record)) or place_of(record))
    return None


def _weights_follow_classes(history: TrainingHistory) -> Sign | None:
    """The frequent class has the large weight, and the rare one the small."""
    shares = classes(history)
    for loss in history.losses:
        weights = dict(enumerate(loss.get("weight") or ()))
        if len(weights) == 1 and set(shares) == {0, 1}:
            weights = {0: 1.0, 1: weights[0]}  # ``pos_weight``
        if len(weights) < 2 or set(shares) - set(weights) or len(shares) < 2:
            continue
        if sum(sum(i.target.get("classes", {}).values()) for i in history.iterations) < _LABELS:
            continue
        often, rare = max(shares, key=lambda c: shares[c]), min(shares, key=lambda c: shares[c])
        apart = shares[often] > 2 * shares[rare] and weights[often] > 1.5 * weights[rare] > 0
        if (
            apart
            and weights[often] == max(weights.values())
            and weights[rare] == min(weights.values())
        ):
            text = (
                f"Class {often}, {percent(shares[often])} of the labels, has the weight {weights[often]:.3g}, and class {rare}, "
                f"{percent(shares[rare])} of them, {weights[rare]:.3g}: the weights are those of the frequencies, not their inverse."
            )
            return Sign(text, loss_place(history, "weight", "pos_weight"))
    return None


def _weights_apart(history: TrainingHistory) -> Sign | None:
    """Class weights that are zero or far apart."""
    for loss in history.losses:
        numbers = [float(value) for value in loss.get("weight") or ()]
        if numbers and (min(numbers) <= 0 or max(numbers) > _APART * min(numbers)):
            text = f"The class weights range from {min(numbers):g} to {max(numbers):g}."
            place = loss_place(history, "weight", "pos_weight")
            return Sign(text, place, weaker=0.45 if does_well(history) else 0.0)
    return None


def _divided_by_nothing(history: TrainingHistory) -> Sign | None:
    """A loss that is no number, since the weights by whose sum it is divided are all zero."""
    for record in history.nonfinite:
        for operator in record.get("operators", ()):
            zeros = operator["saved"].get("other", {}).get("zeros", 0)
            if operator["operator"] == "DivBackward0" and zeros > 0 and operator["depth"] <= 3:
                text = "The loss is divided by a sum of zero: all example weights are zero."
                return Sign(text, place_of(record), int(record["iteration"]))
    return None


def _loss_without_examples(history: TrainingHistory) -> Sign | None:
    """A loss that is zero or far below that of guessing, while most examples are classified wrongly."""
    found, accuracy, chance = course(history), train_accuracy(history), chance_loss(history)
    most = max(classes(history).values(), default=1.0)
    # Of several losses the accuracy may be that of another one.
    several = any(sum(call.kind == "loss" for call in cycle.calls) > 1 for cycle in history.cycles)
    place = loss_place(history, "weight", "pos_weight")
    if found and found.start == found.end == 0 and (accuracy is None or accuracy < 0.9):
        return Sign("The loss is exactly zero from the first iteration on.", place, weaker=0.24)
    if not found or not chance or accuracy is None or not is_classifier(history) or several:
        return None
    if found.end >= 0.3 * chance or found.fall <= 0.5 or accuracy >= min(0.8, most + 0.05):
        return None
    text = (
        f"The loss is {found.end:.3g}, far below the {chance:.3g} of guessing, but only {percent(accuracy)} "
        "of the examples are classified correctly: most examples have almost no weight."
    )
    return Sign(text, place, evidence={"loss": found.end, "accuracy": accuracy})


def _draws_follow_classes(history: TrainingHistory) -> Sign | None:
    """A sampler whose weights are proportional to how many examples have them: the frequent kind is drawn still more often."""
    for loader in history.loaders:
        kinds = sorted((count, weight) for weight, count in loader.get("drawn") or ())
        if len(kinds) < 2 or kinds[-1][0] < 2 * kinds[0][0] or kinds[0][1] <= 0:
            continue
        ratios = [np.log(weight / count) for count, weight in kinds]
        if max(ratios) - min(ratios) < _KINDS_FIT:
            (rare, low), (often, high) = kinds[0], kinds[-1]
            text = (
                f"The sampler draws each of the {often} examples of the largest kind {high / low:.3g} times as often as each of "
                f"the {rare} of the smallest: the weights are those of the frequencies, not their inverse."
            )
            return Sign(text, setting_place(place_of(loader), "sampler", 3, "DataLoader"))
    return None


def _zero_rows(history: TrainingHistory, iteration: Iteration) -> Sign | bool | None:
    """A block of examples at one end of the batch is zero."""
    first = next(iter(iteration.inputs), None)
    if first is None or "float" not in first["dtype"] or len(first["shape"]) < 2:
        return None
    zero = [row in ("0", "-0") for row in first.get("rows", ())]
    count = sum(zero)
    if len(zero) < 4 or not _ZERO_ROWS * len(zero) <= count < len(zero):
        return True
    if not (all(zero[:count]) or all(zero[-count:])):
        return True
    text = f"{count} of the first {len(zero)} examples of a batch are all zero, in one block."
    return Sign(text, input_place(history), evidence={"examples": float(count)})


# -- States over time --------------------------------------------------------------------------

_FOLLOWS = re.compile(
    r"(^|[._\d])(target|ema|average|averaged|avg|swa|momentum|slow|shadow|key|k|polyak)([._\d]|$)",
    re.I,
)
_STAYS = re.compile(
    r"ref|teacher|frozen|old|prior|orig|init|start|base|pretrain|vgg|perceptual|anchor|snapshot|expert",
    re.I,
)
_ROUNDING = 1e-3
"""Of the size of a parameter: a fingerprint is a sum of up to 256 of its elements."""
_UNCHANGED, _UNCHANGED_WHEN_ASKED = 3, 1000
_STEPS_OF_COPY, _REACHED = 50, 0.1


def _copy_stays(history: TrainingHistory) -> Sign | None:
    """A copy of the trained model that is asked, and never follows it."""
    # A loop that blends weights is for the copy that it changes.
    changing = any(has_changed(history, p) for p in history.parameters if not p.held)
    for path, twin, equal in _still_copies(history):
        label = path or "model"
        follows = bool(_FOLLOWS.search(label))
        blending = None if changing else blending_place(history)
        is_meant = _STAYS.search(label) and (changing or not blending_place(history, label))
        if is_meant or not (equal or follows):
            continue
        tested = [e for e in history.evaluations if _is_tested(history, e.model, path)]
        is_tested = len(tested) >= _UNCHANGED
        if not (is_tested or history.ended or history.count >= _UNCHANGED_WHEN_ASKED):
            continue
        instead = is_tested and not any(
            _is_tested(history, evaluation.model, twin) for evaluation in history.evaluations
        )
        text = (
            f"{label} has the layers of {twin or 'the trained model'} and is used, but none of its weights has changed in "
            f"{history.count} iterations."
        )
        place = blending or copy_place(history, path) or next((e.place for e in tested), None)
        meant = follows or instead or blending is not None
        return Sign(text, place, layer=path, weaker=0.0 if meant else 0.45)
    return None


def _copy_lags(history: TrainingHistory) -> Sign | None:
    """An average of weights that is nearly what it was at first when the training ends."""
    total = stated_iterations(history)
    for decay, place in decays_of_copies(history) if total and total >= _STEPS_OF_COPY else ():
        reached = 1 - decay ** (total or 0)
        if reached < _REACHED:
            text = (
                f"With a decay of {decay:g}, the average has gone {percent(reached)} of the way from its first weights after all "
                f"{total} steps."
            )
            return Sign(text, place, evidence={"decay": decay})
    return None


def _still_copies(history: TrainingHistory) -> Iterator[tuple[str, str, bool]]:
    """Modules that stay as they are: their path, that of a trained module like them, and whether they started alike."""
    looks = [others for others in _fingerprints(history) if others]
    if len(looks) < _UNCHANGED or not history.iterations:
        return
    trained = {parameter.name: parameter for parameter in history.parameters if parameter.held}
    others = {p.name: p for p in history.parameters if not p.held and p.name in looks[-1]}
    model = {layer.path: layer.model for layer in history.layers}
    learning = {model.get(parameter.layer) for parameter in trained.values()}
    shapes = ({name: parameter.shape for name, parameter in of.items()} for of in (others, trained))
    for path, twin in _twins(*shapes):
        names = [name for name in others if _is_within(name, path)]
        # What asks for gradients next to trained layers was left out of the optimizer, and is no copy.
        left_out = others[names[0]].trainable and model.get(others[names[0]].layer) in learning
        changed = any(has_changed(history, others[name]) for name in names)
        if left_out or changed or not _moves(history, twin):
            continue
        pairs = [(others[name].values, trained[_other(name, path, twin)].values) for name in names]
        sizes = [(own.get("rms", 0.0), of.get("rms", 1.0)) for own, of in pairs]
        yield path, twin, all(np.isclose(own, of, rtol=0.02) for own, of in sizes)


def _is_tested(history: TrainingHistory, called: str, path: str) -> bool:
    """Whether an evaluation calls the model that a path is in."""
    number = next((layer.model for layer in history.layers if layer.path == path), 0)
    return called.partition("/")[0] == str(number)


def _fingerprints(history: TrainingHistory) -> list[Mapping[str, float]]:
    """Those of parameters that no optimizer holds, of all iterations and evaluations that were inspected."""
    tested = [evaluation.others for evaluation in history.evaluations]
    return [*tested, *(iteration.others for iteration in history.iterations)]


def has_changed(history: TrainingHistory, parameter: Parameter) -> bool:
    """Whether a parameter that no optimizer holds was changed by other means, by more than rounding."""
    values = [
        others[parameter.name] for others in _fingerprints(history) if parameter.name in others
    ]
    return bool(values) and max(values) - min(values) > _ROUNDING * parameter.values.get("rms", 0.0)


def _moves(history: TrainingHistory, path: str) -> bool:
    """Whether the parameters under a path are being changed."""
    return any(
        of.get("update", {}).get("rms", 0.0) > 0
        for iteration in history.iterations
        for name, of in iteration.parameters.items()
        if _is_within(name, path)
    )


def _is_within(name: str, path: str) -> bool:
    return not path or name.startswith(f"{path}.")


def _other(name: str, path: str, twin: str) -> str:
    rest = name[len(path) + 1 :] if path else name
    return f"{twin}.{rest}" if twin else rest


def _twins(
    others: Mapping[str, Sequence[int]], trained: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, str]]:
    """Paths of modules that nothing trains, each with that of a trained module that is built in the same way."""
    paths = {name: _paths(name) for name in (*others, *trained)}
    candidates = sorted({path for name in trained for path in paths[name]}, key=len)
    for path in sorted({path for name in others for path in paths[name]}, key=len):
        own = {name: shape for name, shape in others.items() if _is_within(name, path)}
        if sum(len(shape) > 1 for shape in own.values()) < 2:
            continue
        for twin in candidates:
            within = [name for name in trained if _is_within(name, twin)]
            same = len(within) == len(own) and all(
                trained.get(_other(name, path, twin)) == shape for name, shape in own.items()
            )
            if same and twin != path:
                yield path, twin
                break


def _paths(name: str) -> list[str]:
    """The paths of the modules around a parameter, the outermost first."""
    parts = name.split(".")[:-1]
    return [".".join(parts[:count]) for count in range(len(parts) + 1)]


def _loads_itself(history: TrainingHistory) -> Sign | None:
    """Weights that were stored without being copied are loaded into the module that they belong to."""
    for record in history.loads:
        if record["iteration"] > 0:
            text = (
                "load_state_dict is given the weights that the model has: what was stored was not copied, and changed with the "
                "model."
            )
            return Sign(text, place_of(record), int(record["iteration"]))
    return None


def _stops(history: TrainingHistory) -> Sign | None:
    """Most parameters that were trained get no gradient from some iteration on."""
    stopped: dict[str, int] = {}
    names = {name for iteration in history.iterations for name in iteration.parameters}
    for name in names:
        seen = [
            (iteration.number, of["update"]["rms"] > 0 or "gradient" in of)
            for iteration in history.iterations
            if (of := iteration.parameters.get(name)) and "update" in of
        ]
        active = [number for number, changes in seen if changes]
        after = [number for number, _ in seen if active and number > active[-1]]
        if len(active) >= 3 and len(after) >= 3:
            stopped[name] = after[0]
    if len(stopped) < 0.5 * max(len(names), 2):
        return None
    name, since = min(stopped.items(), key=lambda pair: pair[1])
    parameter = next((p for p in history.parameters if p.name == name), None)
    place = frozen_place(history, parameter) if parameter else None
    text = (
        f"From iteration {since} on, {len(stopped)} of {len(names)} parameters get no gradient and do not change any more, "
        f"{name} among them."
    )
    weaker = 0.3 if does_well(history) else 0.0
    return Sign(text, place, since, parameter.layer if parameter else "", weaker=weaker)


# -- Between ranks -----------------------------------------------------------------------------

_EQUAL = 1e-5
_MOMENTS = 2
_SAME_BATCHES = 3


def _moments(history: TrainingHistory) -> list[list[Iteration]]:
    """The iterations that all ranks have inspected, each as seen by the ranks in their order."""
    ranks = [history, *(of for _, of in sorted(history.ranks.items()) if of.count)]
    if len(ranks) < 2:
        return []
    numbered = [{iteration.number: iteration for iteration in of.iterations} for of in ranks]
    common = set(numbered[0]).intersection(*numbered[1:])
    return [[of[number] for of in numbered] for number in sorted(common)]


def _differ(values: Sequence[float]) -> bool:
    finite = [value for value in values if np.isfinite(value)]
    return bool(finite) and max(finite) - min(finite) > _EQUAL * max(map(abs, finite))


def _differing(moment: Sequence[Iteration], what: str) -> list[str]:
    """Names of whole parameters that all ranks have and whose weight or gradient differs; a missing one counts as 0."""
    found = []
    for name, of in moment[0].parameters.items():
        each = [iteration.parameters[name] for iteration in moment if name in iteration.parameters]
        if (
            "sharded" not in of
            and len(each) == len(moment)
            and _differ([values.get(what, {}).get("rms", 0.0) for values in each])
        ):
            found.append(name)
    return found


def _differs_at_start(history: TrainingHistory) -> list[str]:
    others = [{p.name: p for p in of.parameters} for of in history.ranks.values()]
    return [
        p.name
        for p in history.parameters
        if _differ([p.values.get("rms", 0.0), *(of[p.name].values.get("rms", 0.0) for of in others if p.name in of)])
    ]  # fmt: skip


def _ranks_differ(history: TrainingHistory) -> Sign | None:
    """The ranks of one training have different parameters, and why."""
    moments = _moments(history)
    if len(moments) < _MOMENTS:
        return None
    for test in (_different_steps, _different_rates, _different_parameters):
        found = test(history, moments)
        if found is not None:
            return found
    return None


def _different_steps(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    counted: tuple[tuple[str, Callable[[Iteration], int], SourceLine | None], ...] = (
        ("optimizer steps", lambda iteration: iteration.stepped, step_place(history)),
        ("backward passes", lambda i: sum(i.backwards.values()), backward_place(history)),
    )
    for what, count, place in counted:
        apart = [(m[0].number, [count(iteration) for iteration in m]) for m in moments]
        apart = [(number, counts) for number, counts in apart if len(set(counts)) > 1]
        if len(apart) >= max(_MOMENTS, 0.3 * len(moments)):
            number, counts = apart[0]
            text = f"In iteration {number} the ranks have {_listed(counts)} {what}."
            return Sign(text, place, number)
    return None


def _different_rates(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    apart = [m for m in moments if len({iteration.rates for iteration in m}) > 1]
    if len(apart) < _MOMENTS or apart[-1] is not moments[-1]:
        return None
    rates = [max(iteration.rates, default=0.0) for iteration in apart[0]]
    text = (
        f"In iteration {apart[0][0].number} the learning rates of the ranks are {_listed(rates)}."
    )
    begins = apart[0] is moments[0]
    place = next(map(place_of, history.optimizers if begins else history.schedulers), None)
    return Sign(text, place or step_place(history), apart[0][0].number)


def _different_parameters(
    history: TrainingHistory, moments: Sequence[Sequence[Iteration]]
) -> Sign | None:
    apart = [_differing(moment, "weight") for moment in moments]
    if not all(apart[-_MOMENTS:]):
        return None
    started = _differs_at_start(history)
    gradients = [_differing(moment, "gradient") for moment in moments]
    reduced = sum(map(bool, gradients)) < 0.5 * len(gradients)
    since = moments[next(n for n, names in enumerate(apart) if names)][0].number
    evidence: dict[str, float | str] = {
        "parameters": float(len(apart[-1])),
        "ranks": float(len(moments[0])),
    }
    name = apart[-1][0]
    if started and reduced:
        text = (
            f"{started[0]} differs between ranks from the start, as do {len(started) - 1} others, though gradients are the same: "
            "it was not broadcast after it was changed."
        )
        layer = history.layer(started[0].rpartition(".")[0])
        place = wrapping_place(history) or (layer.place if layer else None)
        return Sign(text, place, since, evidence=evidence)
    if started:
        # Each rank of a model that is split has its own parameters, and the same batch.
        if _same_batches(moments):
            return None
        text = (
            f"{name} and {len(apart[-1]) - 1} other parameters differ between ranks from the start, and so do their gradients: "
            "each rank trains a model of its own."
        )
        return Sign(text, step_place(history), since, evidence=evidence, weaker=0.1)
    if not reduced:
        names = next(filter(None, gradients))
        missing = [
            rank
            for rank, iteration in enumerate(
                next(m for m, g in zip(moments, gradients, strict=True) if g)
            )
            if "gradient" not in iteration.parameters.get(names[0], {})
        ]
        text = (
            f"{names[0]} has no gradient on rank {missing[0]}: the ranks train different models."
            if missing
            else f"The gradient of {names[0]} is not averaged over the ranks, as of {len(names) - 1} other parameters."
        )
        return Sign(text, step_place(history), since, evidence=evidence)
    text = (
        f"{name} and {len(apart[-1]) - 1} other parameters differ between ranks from iteration {since} on, though gradients are the "
        "same: the settings of the optimizers differ, or what they do after the gradients were averaged."
    )
    return Sign(text, next(map(place_of, history.optimizers), None), since, evidence=evidence)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _rows(iteration: Iteration) -> tuple[str, ...]:
    return tuple(sorted(row for tensor in iteration.inputs[:1] for row in tensor.get("rows", ())))


def _same_batches(moments: Sequence[Sequence[Iteration]]) -> bool:
    """Whether all ranks have the same examples in each iteration, and not the same in all of them."""
    batches = [[_rows(iteration) for iteration in moment] for moment in moments]
    batches = [rows for rows in batches if all(len(examples) > 1 for examples in rows)]
    same = [rows[0] for rows in batches if len(set(rows)) == 1]
    return len(same) >= _SAME_BATCHES and len(same) >= _SHARE * len(batches) and len(set(same)) > 1


def _ranks_repeat_data(history: TrainingHistory) -> Sign | None:
    """All ranks of a data-parallel training read the same batches."""
    moments = _moments(history)
    if not moments or not _same_batches(moments):
        return None
    sharded = [
        of["sharded"] for i in moments[0][:1] for of in i.parameters.values() if "sharded" in of
    ]
    by_data = all(of.get("dimensions") == 1 for of in sharded) and any(
        layer.kind.startswith("FSDP") for layer in history.layers
    )
    if by_data if sharded else not _differs_at_start(history):
        text = f"All {len(moments[0])} ranks read the same examples in each iteration: more ranks add nothing."
        loader = next(map(place_of, history.loaders), None)
        return Sign(text, loader or loss_place(history))
    return None


def _epoch_not_set(history: TrainingHistory) -> Sign | None:
    """The sampler of a distributed training shuffles all epochs alike."""
    epochs: dict[int, list[Record]] = {}
    for epoch in history.epochs:
        if epoch.get("shuffles") and epoch.get("epoch") is not None:
            epochs.setdefault(epoch["loader"], []).append(epoch)
    for number, records in epochs.items():
        if len(records) >= 3 and len({record["epoch"] for record in records}) == 1:
            text = f"set_epoch is never called: in each of {len(records)} epochs the sampler shuffles the examples in the same way."
            loader = next((x for x in history.loaders if x.get("number") == number), None)
            return Sign(text, place_of(loader) if loader else None)
    return None


RELATIONS: Sequence[Row] = (
    Row("backward_missing", _of_cycles(_cleared_before_step), 0.96, "Call optimizer.zero_grad() before backward() or after step()."),
    Row("accumulation_wrong", _of_cycles(_accumulation_cleared), 0.94, "Clear gradients only after the step."),
    Row("accumulation_wrong", _of_cycles(_accumulation_not_divided), 0.97, "Divide the loss by the number of batches that are accumulated."),
    Row("gradient_clipping_wrong", _of_cycles(_clipped_after_step), 0.95, "Clip between backward() and step()."),
    Row("gradient_clipping_wrong", _of_cycles(_clipped_before_unscaling), 0.95, "Call scaler.unscale_(optimizer) before clipping."),
    Row("parameters_frozen", _without_gradients, 0.94,
             "Pass the parameters that the loss depends on to the optimizer, after the model is complete, and keep them in the "
             "graph: no item(), detach(), .data or torch.tensor()."),
    Row("parameters_frozen", _thawed_and_left_out, 0.94, "Call optimizer.add_param_group for them, or create the optimizer afterwards."),
    Row("weight_init_wrong", _stuck_at_zero, 0.94, "Initialize one of the factors with random values."),
    Row("zero_grad_missing", _never_cleared, 0.9, "Call zero_grad() before each backward pass."),
    Row("gradient_scaling_wrong", _of_cycles(_scaler_bypassed), 0.93,
             "Use scaler.scale(loss).backward(), scaler.step(optimizer) and scaler.update() together."),
    Row("loss_wrong", _of_cycles(_negated), 0.92, "Minimize the loss, not its negative."),
    Row("loss_wrong", _minimizes_what_should_grow, 0.92, "Minimize its negative, or pass maximize=True to the optimizer."),
    Row("schedule_wrong", _schedule_by_batch, 0.92, "Step the scheduler once per epoch, or give it the number of all iterations."),
    Row("schedule_wrong", _schedule_by_epoch, 0.91, "Step the scheduler after each optimizer step, or give it the number of epochs."),
    Row("schedule_wrong", _still_warming_up, 0.93, "Let the warm-up take at most a tenth of the steps."),
    Row("schedule_wrong", _schedule_never, 0.8, "Call scheduler.step(), or remove the scheduler."),
    Row("labels_wrong", _of_iterations(_lagging), 0.95, "The target of a position is the token after it: shift once, here or in the model."),
    Row("data_leaked", _of_iterations(_attends_ahead), 0.93, "Give the attention a causal mask (is_causal=True), or read in one direction."),
    Row("data_leaked", _of_iterations(partial(_share, name="given", least=1, place=input_place,
             text="A number of each input is its target: the model only has to copy it.")), 0.9,
             "Leave the target out of the inputs; of a window, begin it one step earlier."),
    Row("input_invalid", _of_iterations(_mixes_examples), 0.93, "Pass batch_first=True, or give the sequence in the first dimension."),
    Row("input_invalid", _of_iterations(_attends_padding), 0.94,
             "Invert the mask: torch.nn.MultiheadAttention excludes what is True, scaled_dot_product_attention what is False."),
    Row("loss_wrong", _of_iterations(_is_bootstrapped), 0.9, "Compute the target within torch.no_grad(), or detach() it."),
    Row("last_activation_wrong", _no_logarithms, 0.93, "Apply log_softmax first."),
    *(Row(contract.fault, _breach(contract), 0.9, contract.fix) for contract in CONTRACTS),
    Row("data_duplicated", _same_batch, 0.95, "Create the generator once."),
    Row("input_invalid", _one_symbol, 0.9, "Print the codes before the model: each kind needs its own."),
    Row("last_activation_wrong", _logarithm_of_relu, 0.93, "Use softplus or exp: they are above 0 and have a gradient everywhere."),
    Row("labels_wrong", _reordered, 0.9, "Put inputs and labels in order with the same permutation."),
    Row("loss_wrong", _of_iterations(_padded), 0.88, "Pass ignore_index, or mask padding before the mean."),
    Row("labels_wrong", _of_iterations(partial(_share, name="excluded", least=0.5, place=target_place, functions=_INDEXED,
             text="The target of {} of the rows is a class that a mask excludes: the loss cannot fall."), 3), 0.93,
             "Point targets at classes that are not masked: check offsets and the mask of the diagonal."),
    Row("labels_wrong", _unrelated_noise, 0.95, "Use the noise that was added to the input as the target."),
    Row("last_activation_wrong", _of_iterations(_other_dimension), 0.96, "Take the softmax over the dimension of the classes."),
    Row("last_activation_wrong", _of_iterations(_of_one_value, 3), 0.95, "Use a sigmoid for one output, or give softmax the dimension of the classes."),
    Row("activation_wrong", _of_iterations(partial(_over_the_batch, last=False)), 0.9, "Take the softmax over the last dimension, that of the keys."),
    Row("last_activation_wrong", _of_iterations(partial(_over_the_batch, last=True)), 0.9, "Take the softmax over the dimension of the classes."),
    Row("labels_wrong", _labels_of_neighbor, 0.94, "Check the index with which labels are read, and shifts such as roll, [1:] or [:-1]."),
    Row("label_range_wrong", partial(_one_label, binary=False), 0.94, "Print the labels before the loss. Do not scale them, and cast them only once."),
    Row("labels_wrong", partial(_one_label, binary=True), 0.93, "Print the labels before the loss: both answers must occur."),
    Row("labels_wrong", _of_iterations(_denoises_nothing), 0.94, "Use the clean example, or the noise, as the target, and add noise to a copy."),
    Row("loss_wrong", _all_pairs, 0.95, "Give both the same shape, such as with squeeze(1)."),
    Row("loss_wrong", _of_iterations(partial(_share, name="blank", least=1e-9, place=lambda history: loss_place(history, "blank"), functions=("ctc_loss",),
             text="{} of the labels are the blank of the CTC loss, which no label can be.")), 0.95, "Reserve an index for the blank that is no label."),
    Row("sample_weights_wrong", _weights_follow_classes, 0.92, "Weight each class by the inverse of its frequency."),
    Row("sample_weights_wrong", _weights_apart, 0.9, "Weight each class by the inverse of its frequency, and none by zero."),
    Row("sample_weights_wrong", _divided_by_nothing, 0.82, "Check the weights and masks of the examples; skip batches whose weights sum to zero."),
    Row("sample_weights_wrong", _loss_without_examples, 0.84, "Check the weights and masks that the loss is multiplied by."),
    Row("sample_weights_wrong", _draws_follow_classes, 0.92, "Weight each example by the inverse of the frequency of its class."),
    Row("input_invalid", _of_iterations(_zero_rows, 3), 0.93, "Wait for transfers (non_blocking, shared memory) and fill the whole batch."),
    Row("copy_not_updated", _copy_stays, 0.92, "Update the copy after each step, from the model that is trained."),
    Row("copy_not_updated", _copy_lags, 0.92, "Choose a decay of about 1 - 10 / steps."),
    Row("copy_not_updated", _loads_itself, 0.95, "Store copy.deepcopy(model.state_dict())."),
    Row("parameters_frozen", _stops, 0.85, "Check requires_grad, detach() and no_grad() from this iteration on."),
    Row("ranks_differ", _ranks_differ, 0.95, "Wrap the model in DistributedDataParallel and call the wrapper, or broadcast parameters once and average all "
             "gradients before each step."),
    Row("ranks_repeat_data", _ranks_repeat_data, 0.94, "Give the loader a DistributedSampler of this rank, or seed the draw of batches by rank."),
    Row("not_shuffled", _epoch_not_set, 0.9, "Call sampler.set_epoch(epoch) before each epoch."),
)  # fmt: skip
"""All relations."""
