"""Settings of the optimizer, the schedule, the batches and the regularization, compared with what they lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, takewhile

import numpy as np

from epochzero.run.watch.faults._signals import (
    ADAPTIVE,
    LossCourse,
    batch_size,
    chance_loss,
    classes,
    course,
    does_well,
    early_updates,
    evaluations_are_worse,
    first_bad,
    goes_wrong,
    gradients,
    is_harmed,
    is_known_loss,
    moved,
    overfits,
    peak_updates,
    relative_updates,
    train_accuracy,
    weight_decay,
    weights,
)
from epochzero.run.watch.faults._table import Row, Sign, percent
from epochzero.run.watch.faults.calls import called_place
from epochzero.run.watch.history import ModelLayer, Record, Series, TrainingHistory
from epochzero.run.watch.lines.direction import minimized_terms
from epochzero.run.watch.lines.loss import penalty_place
from epochzero.run.watch.lines.settings import (
    assigned_place,
    decay_place,
    is_stepped,
    place_of,
    schedule_place,
    setting_place,
    stated_iterations,
    stepping_place,
    warmup_place,
)
from epochzero.run.watch.lines.training import batch_size_place, epochs_place
from epochzero.run.watch.model import EvidenceKind, SourceLine

# -- The learning rate -------------------------------------------------------------------------

_LARGE_UPDATE = 0.1
_SOON = 60
"""Iterations in which a loss may stand still or jump."""
_FAR_TOO_HIGH, _TOO_HIGH = 50, 10
"""Times the usual rate of an optimizer whose steps have a size of their own."""
_USUAL_RATES = {"Adadelta": 1.0}
"""Where it is not the 1e-3 of Adam: Adadelta finds the size of its steps itself, its rate only scales it."""
_SHORT_WAY = 0.35
_LEAST_STEPS, _USUAL_STEPS = 20, 1000


def _rate_too_high(history: TrainingHistory) -> Sign | None:
    """A loss that goes wrong, with a rate or updates that are large compared with the weights."""
    found = course(history)
    if found is None or not history.optimizers or does_well(history):
        return None
    trouble = _trouble(history, found)
    rate, number = _highest(history)
    record = history.optimizers[min(number, len(history.optimizers) - 1)]
    largest = max(early_updates(history).values(), default=0.0)
    certain = _certainty(history, found, record["class"], rate, largest)
    if not trouble or not certain:
        return None
    largest = max(largest, max(peak_updates(history).values(), default=0.0))
    effect = f"a step changes weights by up to {percent(largest)} of their size, and " if largest > 0 else ""  # fmt: skip
    return Sign(
        f"With a learning rate of {rate:g} {effect}the loss {trouble}.",
        setting_place(place_of(record), "lr", 1),
        first_bad(history),
        evidence={"learning rate": rate, "ratio of update to weight": largest},
        confidence=certain,
        fix=f"Try {_better(record, rate, largest):.1g}, with a warm-up over the first few hundred steps.",
    )


def _trouble(history: TrainingHistory, found: LossCourse) -> str:
    """What is wrong with the loss; empty where nothing is."""
    known = is_known_loss(history)
    if _is_lost(history):
        return "is NaN"
    if _has_grown(found):
        return "increased"
    if found.end > found.best + 0.5 * max(chance_loss(history) or found.first, found.best):
        return "has increased again"
    # A rate that is seen to be too high by what the loss does not do needs time to show it.
    if not history.ended and found.count < _SOON:
        return ""
    if known and min(found.fall, 1 - found.end / max(found.first, 1e-12)) < 0.1:
        return "does not decrease"
    return "jumps" if found.roughness > 0.25 and (found.fall < 0.6 or not known) else ""


def _is_lost(history: TrainingHistory) -> bool:
    """Whether the loss is no number to the end: after a step that ruins the weights it never is one again."""
    return not np.isfinite(history.loss[-1, 1])


def _has_grown(found: LossCourse) -> bool:
    """Whether the smoothed loss was far above its start, by more than its batches differ."""
    begin = max(abs(found.first), abs(found.start))
    return found.worst > 3 * begin + 1 + 3 * found.noise


def _certainty(
    history: TrainingHistory, found: LossCourse, kind: str, rate: float, largest: float
) -> float:
    adaptive, usual_rate = kind in ADAPTIVE, _USUAL_RATES.get(kind, 1e-3)
    usual = max(relative_updates(history).values(), default=0.0)
    peak = max(peak_updates(history).values(), default=0.0)
    blown = _is_lost(history) or _has_grown(found) or found.fall < 0.1
    if adaptive and rate >= _FAR_TOO_HIGH * usual_rate:
        return 0.9
    large = max(largest, usual) > _LARGE_UPDATE
    if adaptive and rate >= _TOO_HIGH * usual_rate and large and is_known_loss(history):
        return 0.72
    if not adaptive and largest > _LARGE_UPDATE and (blown or usual > _LARGE_UPDATE):
        return 0.85 if rate >= 0.5 or largest > 1 else 0.7
    if not adaptive and rate >= 1 and blown:
        return 0.8
    if peak > 3 * _LARGE_UPDATE and found.end > 2 * found.best:
        return 0.66
    return 0.6 if usual > _LARGE_UPDATE else 0.0


def _highest(history: TrainingHistory) -> tuple[float, int]:
    """The highest rate, and the number of the optimizer that has it as far as records show."""
    rates = _rates(history)[:, 1]
    highest = float(max(rates, default=0.0))
    for number, record in enumerate(history.optimizers if len(rates) else ()):
        groups = record.get("groups", ())
        if any(np.isclose(float(group.get("lr") or 0), highest, rtol=0.5) for group in groups):
            return highest, number
    return highest, 0


def _rates(history: TrainingHistory, *, all_phases: bool = False) -> Series:
    """The highest rate of each inspected iteration; without other phases, such as a search for the rate before the training."""
    first = 0 if all_phases or not len(history.loss) else int(history.loss[0, 0])
    found = [(i.number, max(i.rates)) for i in history.iterations if i.rates and i.number >= first]
    return np.array(found, dtype=float).reshape(-1, 2)


def _better(record: Record, rate: float, largest: float) -> float:
    """A rate at which a step changes weights by about a hundredth; of Adam and the like the usual one."""
    lower = rate * min(0.1, 0.01 / max(largest, 1e-12))
    return min(lower, 1e-3) if record["class"] in ADAPTIVE else lower


def _rate_too_low(history: TrainingHistory) -> Sign | None:
    """Weights that go a short way in all, with a loss that still falls evenly, or not at all."""
    found, ways, rates = course(history), moved(history), _rates(history, all_phases=True)[:, 1]
    if found is None or not ways or history.count < _LEAST_STEPS or not history.optimizers:
        return None
    # How far they would go: few trainings have fewer steps than that.
    planned = max(history.planned or _USUAL_STEPS, history.count)
    far = max(ways.values())
    far *= (history.count if history.ended else planned) / history.count
    if far > _SHORT_WAY or does_well(history) or not len(rates) or not found.finite:
        return None
    # Where gradients are not seen, as of Keras on TensorFlow, the distance that weights moved shows them.
    sizes = [gradient["rms"] for gradient in gradients(history.iterations[:5])]
    if max(sizes, default=far) <= 1e-9 or (found.fall > 0.5 and is_known_loss(history)):
        return None
    rate, chance = float(max(rates)), chance_loss(history)
    # At a usual rate it is the gradients that are too small.
    if rate >= (3e-4 if history.optimizers[0]["class"] in ADAPTIVE else 8e-3):
        return None
    # A rate that was high once has been taken away by its schedule.
    if rate > 20 * max(float(np.median(rates)), 1e-30):
        return None
    # What was trained before needs to move no further.
    if chance is not None and found.first < 0.5 * chance:
        return None
    return Sign(
        f"With a learning rate of {rate:g} all {history.count} steps together changed no weight by more than {percent(far)} of its "
        f"size; the loss decreased by {percent(max(0.0, found.fall))}.",
        setting_place(place_of(history.optimizers[0]), "lr", 1),
        evidence={"learning rate": rate, "ratio of total change to weight": far},
        confidence=0.88 if far < 0.1 else 0.7,
        fix=f"Try {rate * min(1000.0, 3 / max(far, 1e-9)) or 1e-3:.1g}.",
    )


# -- Schedules ---------------------------------------------------------------------------------

_EVERY, _GONE, _EARLY = 0.9, 0.01, 0.3
_GONE_EARLY = 0.6
"""Share of the iterations that must be to come when a rate is as good as zero, without a look at how it is stepped."""
_IDLE = 10
"""Iterations at a rate of 0 that are no warm-up: that starts with one."""
_SEEN = 3
_SETTING = re.compile(r"(^|[._])(lr|rate|momentum|decay|betas?)([._]|$)")
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
        low = rates[peak:][rates[peak:, 1] < 1.001 * _GONE * rates[peak, 1]]
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


def _rate_is_zero(history: TrainingHistory) -> Sign | None:
    """A schedule that starts at a learning rate of 0 and is not stepped for many iterations, or ends there long before the training."""
    last = history.rates[-1] if history.rates else {}
    since = int(last.get("iteration", 0))
    if last.get("idle") and since and history.schedulers and 2 * since <= history.count > 2 * _IDLE:
        text = f"The learning rate is 0 from iteration {since} on, and {history.count - since} steps so far have changed nothing."
        return Sign(text, schedule_place(history) or place_of(history.schedulers[-1]), since)
    idle = list(takewhile(lambda i: i.rates and max(i.rates) == 0, history.iterations))
    if not idle or idle[-1].number < _IDLE or not history.schedulers:
        return None
    text = f"The learning rate is 0 up to iteration {idle[-1].number}: the schedule has not been stepped, and nothing is learned."
    record = history.schedulers[0]
    return Sign(text, stepping_place(history, _schedule_call(history, record)) or place_of(record))


def _unread_setting(history: TrainingHistory) -> Sign | None:
    """A setting that is given to an optimizer, or changed, under a name that this does not read."""
    groups = [group for record in history.optimizers for group in record.get("groups", ())]
    rates = {rate for iteration in history.iterations for rate in iteration.rates}
    for name in history.iterations[-1].unread if len(history.iterations) >= _SEEN else ():
        given = {i.unread[name] for i in history.iterations if name in i.unread}
        used = rates if name == ".lr" else {group.get(name[1:]) for group in groups}
        is_known = name[0] == "." and used != {None} and not given & used
        if is_known or (_SETTING.search(name) and len(given) > 1 == len(rates)):
            text = (
                f"The program gives the optimizer {name.strip('.')} = {max(given):.3g} under a name that it does not read: its learning "
                f"rate stays {max(rates):.3g}."
            )
            return Sign(text, assigned_place(history, name.strip(".")))
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
        # Where the middle was not observed, the warm-up may have ended at any time since.
        or np.diff(rates[:, 0]).max() > 0.25 * history.count
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
    return next(
        (called_place(history, call) for call in calls if call.subject == record["number"]), None
    )


def _rate_gone_or_grown(history: TrainingHistory) -> Iterator[Sign]:
    """A rate that is as good as zero while much of the training is to come, or grows without end."""
    rates, found = _rates(history), course(history)
    if found is None or len(rates) < 8 or not history.schedulers:
        return
    planned, place = history.planned or history.count, schedule_place(history)
    peak = int(np.argmax(rates[:, 1]))
    after = rates[peak:]
    gone = after[after[:, 1] < 0.01 * rates[peak, 1]]
    kind = history.schedulers[-1]["class"]
    stays = len(gone) > 0.5 * max(1, int((after[:, 0] >= gone[0, 0]).sum())) if len(gone) else False
    early = stays and gone[0, 0] < _GONE_EARLY * planned
    # A rate that follows the loss is gone because the loss stands still.
    if early and not does_well(history) and "Plateau" not in kind:
        text = (
            f"{kind} changed the learning rate from {rates[peak, 1]:.2g} to {gone[0, 1]:.1g} by iteration {int(gone[0, 0])} of "
            f"{planned}; the loss stays at {found.end:.3g}."
        )
        fix = "Step the scheduler once per epoch instead of once per batch, or adapt its parameters to the length of the training."
        evidence = {"highest": rates[peak, 1], "lowest": float(after[:, 1].min())}
        yield Sign(text, place, int(gone[0, 0]), evidence=evidence, fix=fix)
    grown = rates[-1, 1] > 10 * rates[0, 1] and rates[-1, 1] >= rates[peak, 1] * 0.99
    if grown and (not found.finite or found.end > 1.5 * found.best + 1e-9):
        text = f"{kind} raises the learning rate from {rates[0, 1]:.2g} to {rates[-1, 1]:.2g}, and the loss increases."
        fix = "Lower the factor (it is above 1) or the peak of the cycle."
        evidence = {"first": rates[0, 1], "last": rates[-1, 1]}
        yield Sign(text, place, first_bad(history), evidence=evidence, fix=fix)


# -- The optimizer -----------------------------------------------------------------------------


def _optimizer_settings(history: TrainingHistory) -> Iterator[Sign]:
    """Settings far from any that works: they need no effect to be doubted, and one to be sure."""
    bad = course(history) is not None and goes_wrong(history)
    rises_rightly = any(minimized_terms(history))
    for record in history.optimizers:
        for group in record.get("groups", ())[:1]:
            for keyword, text, fix in _doubts(record["class"], group, _is_in_batches(history)):
                if keyword != "maximize" or not rises_rightly:
                    place = setting_place(place_of(record), keyword)
                    confidence = 0.88 if bad else 0.4
                    text = f"{record['class']} has {text}."
                    yield Sign(text, place, confidence=confidence, fix=fix)


def _is_in_batches(history: TrainingHistory) -> bool:
    """Whether an iteration is of a part of the data."""
    if history.loaders:
        return any((of["examples"] or 0) > (of["batch_size"] or 1) for of in history.loaders)
    rows = [it.inputs[0].get("rows", ()) for it in history.iterations[:8] if it.inputs]
    return any(row != rows[0] for row in rows)


def _doubts(kind: str, group: Record, in_batches: bool) -> Iterator[tuple[str, str, str]]:
    """Settings of a group of parameters that no task needs: the keyword, what is wrong, and a fix."""

    def number(name: str) -> float | None:
        value = group.get(name)
        return value if isinstance(value, int | float) else None

    if group.get("maximize"):
        yield "maximize", "maximize=True, so it increases the loss", "Remove maximize=True."
    if kind == "Rprop" and in_batches:
        text = "uses the sign of full-batch gradients, but receives mini-batches"
        yield "params", text, "Take Adam."
    momentum, eps, alpha = number("momentum"), number("eps"), number("alpha")
    if momentum is not None and momentum >= 0.98:
        text = f"a momentum of {momentum:g}: updates accumulate over hundreds of steps"
        yield "momentum", text, "Take 0.9."
    if eps is not None and kind.lower().startswith(("adam", "nadam", "radam", "rmsprop")):
        if eps >= 0.01:
            yield "eps", f"an epsilon of {eps:g}, larger than most gradients", "Take 1e-8."
        elif 0 <= eps < 1e-12:
            text = f"an epsilon of {eps:g}: small gradients are divided by almost zero"
            yield "eps", text, "Take 1e-8."
    betas = group.get("betas")
    if isinstance(betas, list | tuple) and len(betas) == 2:
        if betas[0] >= 0.98:
            yield "betas", f"a beta1 of {betas[0]:g}: old gradients dominate", "Take 0.9."
        elif betas[1] < 0.8 or betas[1] <= betas[0] - 0.3:
            yield "betas", f"a beta2 of {betas[1]:g}: step sizes are unstable", "Take 0.999."
    if kind == "RMSprop" and alpha is not None and alpha < 0.5:
        yield "alpha", f"an alpha of {alpha:g}: step sizes are unstable", "Take 0.99."


# -- Batches and epochs ------------------------------------------------------------------------

_LARGE_BATCH, _FEW_STEPS = 512, 40
_STILL_FALLING = 0.1
_TINY_STEP = 1e-3


def _batch_size(history: TrainingHistory) -> Sign | None:
    """The size of a batch compared with the data set, with what it does to the loss."""
    found, median, count = course(history), batch_size(history), history.count
    if found is None or median is None or does_well(history) or not history.ended:
        return None
    size = int(median)
    examples = next(iter(history.loaders), {}).get("examples") or 0
    place, evidence = batch_size_place(history), {"batch": float(size)}
    if size <= 2 and _is_noisy(history, found):
        text = (
            f"Each step learns from {size} example{'s' if size > 1 else ''}, and the loss changes by {percent(found.roughness)} from "
            "one step to the next."
        )
        return Sign(text, place, evidence=evidence, confidence=0.66)
    if found.slope <= 0.03:
        return None
    if not history.loaders and size >= _LARGE_BATCH and count <= _FEW_STEPS:
        text = f"A batch has {size} examples, the whole training has {count} steps, and the loss is still decreasing."
        return Sign(text, place, evidence=evidence, confidence=0.56)
    if examples >= 200 and size >= 0.45 * examples and count <= 120:
        text = (
            f"A batch is {percent(size / examples)} of the data: the whole training has {count} steps, and the loss is still "
            "decreasing."
        )
        fix = f"Use batches of {max(16, min(64, examples // 30))}."
        return Sign(text, place, evidence=evidence | {"examples": float(examples)}, fix=fix)
    return None


def _is_noisy(history: TrainingHistory, found: LossCourse) -> bool:
    """Whether a loss of one or two examples jumps and gets nowhere; an input may begin with another dimension."""
    sizes = [it.target["shape"][0] for it in history.iterations if it.target.get("shape")]
    return (
        (int(np.median(sizes)) if sizes else 1) <= 2
        and history.count > 30
        and found.roughness > 0.35
        and is_known_loss(history)
        and (found.fall < 0.5 or bool(evaluations_are_worse(history)))
    )


def _ends_early(history: TrainingHistory) -> Sign | None:
    """At the end of the training: the last fifth fell by much, and much is left."""
    found = course(history)
    if found is None or not history.ended or does_well(history) or not found.finite:
        return None
    # A loss nearly always falls still: it is a fault where not half of what can be reached was reached.
    if _is_half_way(history, found):
        return None
    few = history.count <= _FEW_STEPS and found.fall > 0.03 and found.slope > 0
    if not few and not (
        found.fall > 0.02 and found.slope > _STILL_FALLING and found.roughness < 0.6
    ):
        return None
    # Where steps are tiny it is not their number that is too small.
    if max(relative_updates(history).values(), default=0.0) < _TINY_STEP:
        return None
    text = (
        f"After {history.count} iterations the loss has decreased from {found.start:.3g} to {found.end:.3g} and is still decreasing: "
        f"the last fifth accounts for {percent(found.slope)} of the total decrease."
    )
    evidence = {"progress of the last fifth": found.slope, "loss": found.end}
    return Sign(text, epochs_place(history), history.count, evidence=evidence)


def _is_half_way(history: TrainingHistory, found: LossCourse) -> bool:
    """Whether accuracy, or else the loss, is closer to that of a perfect model than to that of a trivial one."""
    accuracy, shares, chance = train_accuracy(history), classes(history), chance_loss(history)
    if accuracy is not None and shares:
        return accuracy > 0.5 * (1 + max(shares.values()))
    return chance is not None and found.end < 0.5 * chance


def _ends_late(history: TrainingHistory) -> Sign | None:
    """The best evaluation lies early, and enough examples were there to do better."""
    gap = overfits(history)
    if gap is None or gap.turned is None or not history.ended:
        return None
    if gap.turned > 0.35 or gap.loss_ratio < 1.4:
        return None
    text = f"The best evaluation was after {percent(gap.turned)} of the training: {gap.text}"
    fix = f"Stop at about iteration {gap.since}, or use the best checkpoint."
    evidence = {"best at": float(gap.since)}
    return Sign(text, epochs_place(history), gap.since, evidence=evidence, fix=fix)


# -- Regularization ----------------------------------------------------------------------------

_SHRUNK, _VANISHED = 0.6, 0.05
_LARGE_DECAY = 0.01
"""A decay that is added to gradients is 1e-5 to 5e-3 in published recipes."""
_HIGH_RATE = 0.65


def _not_regularized(history: TrainingHistory) -> Sign | None:
    """A gap to the evaluations, without dropout, weight decay or augmentation."""
    gap = overfits(history)
    if gap is None:
        return None
    dropout = [of for of in history.layers if "Dropout" in of.kind and of.settings.get("p")]
    decay, first = weight_decay(history), next(iter(history.optimizers), None)
    used = "dropout" if dropout else "no dropout"
    return Sign(
        f"{gap.text[0].upper()}{gap.text[1:]} The model uses {used} and a weight decay of {decay:g}.",
        setting_place(place_of(first), "weight_decay") if first else None,
        gap.since,
        evidence={"weight decay": float(decay), "dropout layers": float(len(dropout))},
        confidence=0.45 if dropout or decay >= 1e-3 else None,
    )


def _shrinks(history: TrainingHistory, *, proved: bool = False) -> Sign | None:
    """Weights that shrink together while the loss stays, or a weight decay that must do so.

    It is ``proved`` if the decay was larger than the gradients from the first steps on, next to nothing is left of the weights, and
    the model is no better than a trivial answer.
    """
    found, decay = course(history), weight_decay(history)
    if found is None or len(history.iterations) < 8:
        return None
    left = {}
    # In Keras a penalty is of the kernels of some layers, and says nothing of other weights.
    penalized = {f"{of.path}.kernel" for of in history.layers if of.settings.get("weight_decay")}
    for weight in weights(history):
        series = history.parameter_series(weight.name, "weight", "rms")
        applies = not penalized or weight.name in penalized
        if applies and len(series) > 4 and series[0, 1] > 0:
            left[weight.name] = float(series[-1, 1] / series[0, 1])
    if not left or sum(ratio < _SHRUNK for ratio in left.values()) < 0.6 * len(left):
        return None
    outweighed = decay >= _LARGE_DECAY and _outweighs(history, decay)
    average = sum(left.values()) / len(left)
    gone = average < _VANISHED and is_harmed(history) and _outweighs(history, decay, first=True)
    if proved and not (outweighed and gone):
        return None
    if not outweighed and (does_well(history) or max(left.values()) > 1.2):
        return None
    how = "pulls as strongly as the loss" if outweighed else f"leaves the loss at {found.end:.3g}"
    return Sign(
        f"Most weights have shrunk, all to {percent(average)} of their size on average: a weight decay of "
        f"{decay:g} {how}.",
        decay_place(history) if decay else penalty_place(history),
        evidence={"weight decay": decay},
        confidence=0.88 if decay >= 1e-3 else 0.72 if penalty_place(history) else 0.45,
        fix=f"Try a weight decay of {min(1e-4, decay / 100) or 1e-4:.1g}.",
    )


def _outweighs(history: TrainingHistory, decay: float, *, first: bool = False) -> bool:
    """Whether an optimizer adds a decay to gradients that is as large as these for most weights, now or in the ``first`` steps."""
    groups = [group for optimizer in history.optimizers for group in optimizer["groups"]]
    if any(optimizer["class"] == "AdamW" for optimizer in history.optimizers) or any(
        group.get("decoupled_weight_decay") for group in groups
    ):
        return False
    ratios = []
    period = slice(3) if first else slice(-10, None)
    for parameter in weights(history):
        of_gradients, sizes = (
            history.parameter_series(parameter.name, what, "rms")[period, 1]
            for what in ("gradient", "weight")
        )
        if len(of_gradients) and float(np.median(of_gradients)) > 0:
            ratios.append(decay * float(np.median(sizes)) / float(np.median(of_gradients)))
    return bool(ratios) and float(np.median(ratios)) > 0.5


def _dropout(history: TrainingHistory) -> Sign | None:
    """High rates, or dropout on what the loss is given, in a training that does not get far."""
    dropouts = [layer for layer in history.layers if "Dropout" in layer.kind and layer.called]
    if not dropouts or course(history) is None or len(history.iterations) < 5:
        return None
    highest, gap = max(dropouts, key=_drop_rate), overfits(history)
    rate = _drop_rate(highest)
    # None at all is no regularization, which has a word of its own.
    if gap is not None and 0 < rate < 0.1:
        return _of_dropout(highest, f"{highest.path} drops only {percent(rate)}: {gap.text}", 0.7)
    if does_well(history):
        return None
    if rate >= _HIGH_RATE:
        confidence = 0.88 if rate >= 0.8 else 0.78
        return _of_dropout(
            highest, f"{highest.path} drops {percent(rate)} of its input.", confidence
        )
    last = next(
        ((p, k) for p, k in reversed(history.order) if "Dropout" in k or ":" not in p), None
    )
    if last is not None and "Dropout" in last[1]:
        layer = history.layer(last[0])
        if layer is None or not layer.settings.get("p"):
            return None
        text = f"{layer.path} drops outputs of the model: the loss receives zeros."
        return _of_dropout(layer, text, 0.82)
    if sum(_drop_rate(layer) >= 0.5 for layer in dropouts) >= 3:
        text = f"{len(dropouts)} consecutive layers drop {percent(rate)} each."
        return _of_dropout(highest, text, 0.66)
    return None


def _drop_rate(layer: ModelLayer) -> float:
    return float(layer.settings.get("p") or 0)


def _of_dropout(layer: ModelLayer, text: str, confidence: float) -> Sign:
    place = setting_place(layer.place, "p", 0, layer.kind)
    evidence = {"rate": _drop_rate(layer)}
    return Sign(text, place, layer=layer.path, evidence=evidence, confidence=confidence)


RELATIONS: Sequence[Row] = (
    Row("schedule_wrong", _schedule_by_batch, 0.92, "Step the scheduler once per epoch, or give it the number of all iterations."),
    Row("schedule_wrong", _schedule_by_epoch, 0.91, "Step the scheduler after each optimizer step, or give it the number of epochs."),
    Row("schedule_wrong", _rate_is_zero, 0.93, "Step the scheduler after each optimizer step, and let it last as long as the training."),
    Row("schedule_wrong", _unread_setting, 0.94, "Set it in all optimizer.param_groups, under the name that the optimizer reads, such as lr."),
    Row("schedule_wrong", _still_warming_up, 0.93, "Let the warm-up take at most a tenth of the steps."),
    Row("schedule_wrong", _schedule_never, 0.8, "Call scheduler.step(), or remove the scheduler."),
)  # fmt: skip
CURVES: Sequence[Row] = (
    Row("learning_rate_too_high", _rate_too_high, 0.6, series="loss", kind=EvidenceKind.EFFECT),
    Row("learning_rate_too_low", _rate_too_low, 0.7, series="loss", kind=EvidenceKind.EFFECT),
    Row("schedule_wrong", _rate_gone_or_grown, 0.9, series="rate", kind=EvidenceKind.ESTIMATE),
    Row("optimizer_wrong", _optimizer_settings, 0.4, kind=EvidenceKind.EFFECT),
    Row("batch_size_wrong", _batch_size, 0.75, "Use batches of 32.", "loss", kind=EvidenceKind.EFFECT),
    Row("epochs_too_few", _ends_early, 0.53, "Train at least three times as long, until the evaluation loss stops decreasing.", "loss", kind=EvidenceKind.ESTIMATE),
    Row("epochs_too_many", _ends_late, 0.58, series="loss", kind=EvidenceKind.ESTIMATE),
    Row("regularization_missing", _not_regularized, 0.64,
        "Add dropout of 0.3 to 0.5 before the last layers, a weight decay of 1e-2 (AdamW), and augmentation.", kind=EvidenceKind.ESTIMATE),
    Row("regularization_too_strong", partial(_shrinks, proved=True), 0.72),
    Row("regularization_too_strong", _shrinks, 0.72, kind=EvidenceKind.EFFECT),
    Row("dropout_wrong", _dropout, 0.66, "Use a rate of 0.1 to 0.5, between hidden layers.", kind=EvidenceKind.ESTIMATE),
)  # fmt: skip
