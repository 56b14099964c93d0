"""What a training calls, in which order, and in which mode of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from epochzero.run.watch.faults._signals import (
    ADAPTIVE,
    course,
    does_well,
    evaluations,
    first_accuracy,
    gradients,
    moved,
    moves,
)
from epochzero.run.watch.faults._table import (
    LEAST,
    ONSET,
    SHARE,
    SHARE_OF_ONSET,
    Row,
    Sign,
    Test,
    in_cycles,
    percent,
)
from epochzero.run.watch.history import (
    Cycle,
    EvaluationPass,
    ModelLayer,
    TrainingCall,
    TrainingHistory,
)
from epochzero.run.watch.lines.contracts import uncleared
from epochzero.run.watch.lines.layers import cut_place, precision_place, replaced_place
from epochzero.run.watch.lines.settings import clipping_place, place_of
from epochzero.run.watch.lines.training import (
    backward_place,
    evaluation_place,
    step_place,
    training_mode_place,
    uncalled_place,
)
from epochzero.run.watch.model import EvidenceKind, SourceLine

STEPS_WITHOUT = 4
"""Steps without any gradient: a network may wait for another one to learn first."""
_LOOKS = 3
_SETTLED, _CLEARED = 100, 8
"""Iterations, and cycles that clear gradients, after which each optimizer has stepped: a generator may step in one of five."""
_MODES = ("Dropout", "BatchNorm", "InstanceNorm", "AlphaDropout", "FeatureAlphaDropout")
_LEFT, _NOTHING = 0.02, 1e-3
"""Share of a gradient that clipping leaves, and a gradient that is next to none."""

# -- Relations ---------------------------------------------------------------------------------


def called_place(history: TrainingHistory, call: TrainingCall) -> SourceLine | None:
    """The line of a call."""
    return history.calls.get(call.line)


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


def _cleared_before_step(history: TrainingHistory, cycle: Cycle) -> Test:
    """A step whose gradients were cleared between the backward pass and the step."""
    for step, before in _steps(cycle):
        lost, cleared, effective = _since_cleared(step, before)
        if cleared is None or not lost:
            continue
        if not effective and not _has_gradients(history, cycle.number):
            text = "Gradients are cleared between the backward pass and the step: the step has none to apply."
            return Sign(text, called_place(history, cleared))
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


def _accumulation_cleared(history: TrainingHistory, cycle: Cycle) -> Test:
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
        text = f"Only the gradients of {len(effective)} of {len(passes)} backward passes reach the step: the others are cleared before it."
        return Sign(text, called_place(history, cleared))
    return None


def _last_window_cleared(history: TrainingHistory) -> Sign | None:
    """Gradients of the last batches of an epoch, too few for a step, are cleared before one uses them."""
    whole, short = 0, list[tuple[int, TrainingCall, int]]()
    for cycle in history.cycles:
        for step, before in _steps(cycle):
            lost, _, used = _since_cleared(step, before)
            if len(used) > len(lost) and len({call.line for call in (*lost, *used)}) == 1:
                whole += not lost
                short += [(cycle.number, step, len(lost))] if lost else []
    if min(whole, len(short)) < LEAST:
        return None
    since, step, count = short[0]
    text = f"Gradients of {count} backward passes are cleared before a step uses them, for example at the end of an epoch."
    return Sign(text, called_place(history, step), since)


def _accumulation_not_divided(history: TrainingHistory, cycle: Cycle) -> Test:
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
        return Sign(text, called_place(history, passes[0]), weaker=weaker)
    return None


def _is_finite(call: TrainingCall) -> bool:
    return call.value is not None and bool(np.isfinite(call.value))


def _clipped_after_step(history: TrainingHistory, cycle: Cycle) -> Test:
    """A clipping that no step follows before the next backward pass; without a limit it only measures the norm."""
    clips = [n for n, call in enumerate(cycle.calls) if call.kind == "clip" and _is_finite(call)]
    if not clips or not any(call.kind == "step" for call in cycle.calls):
        return None
    for number in clips:
        earlier = [call.kind for call in cycle.calls[:number] if call.kind in ("backward", "step")]
        later = [call.kind for call in cycle.calls[number:] if call.kind in ("backward", "step")]
        if earlier[-1:] == ["step"] and later[:1] != ["step"]:
            text = "Gradients are clipped after the step that uses them, so clipping has no effect."
            return Sign(text, called_place(history, cycle.calls[number]))
    return True


def _clipped_before_unscaling(history: TrainingHistory, cycle: Cycle) -> Test:
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
                    "Gradients are clipped before the loss scale is removed: after the division by the scale they are far "
                    "smaller than the limit."
                )
                return Sign(text, called_place(history, call))
    return applies


def _scaler_bypassed(history: TrainingHistory, cycle: Cycle) -> Test:
    """The loss is scaled and the gradients are not divided before the step, or the other way round."""
    passes = [call for call in cycle.calls if call.kind == "backward"]
    scaled = any(call.flag == "scaled" for call in passes)
    for step, before in _steps(cycle):
        by_scaler = step.flag in ("scaler", "skipped")
        divided = by_scaler or any(call.kind == "unscale" for call in before)
        if scaled and not divided:
            text = (
                "The loss is multiplied by the scale of the gradient scaler, but the optimizer steps without the scaler: "
                "gradients are too large by this factor."
            )
            return Sign(text, called_place(history, step))
        if by_scaler and passes and not scaled:
            text = (
                "The scaler divides gradients by its scale, but the loss was not multiplied by it."
            )
            return Sign(text, called_place(history, passes[0]))
    return True if scaled else None


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
        if len(since) >= max(ONSET, SHARE_OF_ONSET * len(found)):
            without = since
        elif len(without) < max(STEPS_WITHOUT, SHARE * len(found)):
            continue
        text = "No parameter of this optimizer gets a gradient: the loss does not depend on its parameters."
        place = replaced_place(place_of(record)) or cut_place(history) or place_of(record)
        return Sign(
            f"From iteration {without[0]} on: {text}" if last >= 0 else text, place, without[0]
        )
    return None


def _never_cleared(history: TrainingHistory) -> Sign | None:
    """No call clears gradients, where an optimizer does not show what is left of them."""
    observed = any(iteration.before for iteration in history.iterations) or any(
        call.kind == "clear" for cycle in history.cycles for call in cycle.calls
    )
    return None if observed else next((Sign(*found) for found in uncleared(history)), None)


# -- Curves ------------------------------------------------------------------------------------


def _no_backward(history: TrainingHistory) -> Sign | None:
    """Steps without a backward pass before them."""
    looked = [iteration for iteration in history.iterations if iteration.stepped]
    without = [iteration for iteration in looked if not iteration.backwards]
    # Gradients may come from where no call is seen, as of a compiled step or of `torch.func`.
    if any(gradient.get("largest", 0.0) > 0 for gradient in gradients(history.iterations)):
        return None
    if len(without) < _LOOKS or len(without) < 0.9 * len(looked):
        return None
    text = "The optimizer steps, but no backward pass has computed gradients."
    return Sign(text, step_place(history), without[0].number)


def _no_step(history: TrainingHistory) -> Sign | None:
    """Backward passes without a step, though there is an optimizer, and weights that stay."""
    looked = [iteration for iteration in history.iterations if iteration.backwards]
    if len(looked) < _LOOKS or not history.optimizers or any(it.stepped for it in looked):
        return None
    if moves(history):
        return None
    text = f"{history.count} iterations of backward passes, but no optimizer has stepped."
    return Sign(text, backward_place(history))


def _one_never_steps(history: TrainingHistory) -> Sign | None:
    """An optimizer whose gradients are cleared in each cycle, and that never steps, while another does."""
    calls = [call for cycle in history.cycles for call in cycle.calls]
    steps = [call for call in calls if call.kind == "step"]
    cleared = Counter(call.subject for call in calls if call.kind == "clear")
    for record in (
        history.optimizers if steps and (history.ended or history.count >= _SETTLED) else ()
    ):
        number = int(record.get("number", -1))
        if cleared[number] >= _CLEARED and all(call.subject != number for call in steps):
            made = place_of(record)
            text = f"The optimizer of line {made.line if made else '?'} never steps, and its gradients are cleared."
            return Sign(text, called_place(history, steps[0]))
    return None


def _gradient_left(history: TrainingHistory) -> Sign | None:
    """After a step, gradients should be gone before one of the backward passes of an iteration."""
    if not any(iteration.stepped for iteration in history.iterations):
        return None
    looked = [it for it in history.iterations if it.number > 0 and it.before]
    for number in sorted({number for iteration in looked for number in iteration.before}):
        left = [it for it in looked if it.before.get(number, {}).get("left", 0.0) != 0]
        if len(left) < _LOOKS or len(left) < 0.9 * len(looked):
            continue
        first = left[0].before[number]
        text = (
            f"When the backward pass of iteration {left[0].number} starts, {first['name']} still has the gradient of the previous "
            "step; each step adds to it."
        )
        evidence = {"gradient left": first["left"]}
        return Sign(text, backward_place(history), left[0].number, evidence=evidence)
    return None


def _with_modes(history: TrainingHistory) -> list[ModelLayer]:
    """Layers for which the mode matters."""
    return [of for of in history.layers if of.kind.startswith(_MODES) and of.settings.get("p", 1.0)]


def _trains_in_evaluation_mode(history: TrainingHistory) -> Sign | None:
    matters = _with_modes(history)
    off = [iteration for iteration in history.iterations if iteration.training is False]
    if not matters or len(off) < _LOOKS or off[-1] is not history.iterations[-1]:
        return None
    if len(off) < 0.3 * len(history.iterations):
        return None
    kinds = ", ".join(sorted({layer.kind for layer in matters}))
    text = f"From iteration {off[0].number} on, the model trains in evaluation mode: {kinds} are inactive or use old statistics."
    always = len(off) == len(history.iterations)
    confidence = 0.85 if always else None
    place = training_mode_place(history)
    return Sign(text, place, off[0].number, matters[0].path, confidence=confidence)


def _evaluates_in_training_mode(history: TrainingHistory) -> Sign | None:
    matters = _with_modes(history)
    models = {layer.model for layer in matters}
    tested = [evaluation for evaluation in evaluations(history) if _number(evaluation) in models]
    forgotten = [evaluation for evaluation in tested if evaluation.training]
    # One is enough if it has tested the model.
    enough = len(forgotten) > 1 or any(first_accuracy(e) is not None for e in forgotten)
    if not matters or not enough or len(forgotten) < 0.8 * len(tested):
        return None
    kinds = ", ".join(sorted({layer.kind for layer in matters}))
    many = f"All {len(forgotten)} evaluations" if len(forgotten) > 1 else "The evaluation"
    text = f"{many} ran in training mode, and the model has {kinds}."
    where = forgotten[0].place
    place = uncalled_place(where, "eval") or evaluation_place(where)
    return Sign(text, place, forgotten[0].iteration, matters[0].path)


def _drops_in_evaluations(history: TrainingHistory) -> Sign | None:
    """A function for dropout that is not told the mode of its model drops in evaluations, too."""
    for evaluation in history.evaluations if history.count else ():
        for path, of in evaluation.layers.items() if evaluation.training is False else ():
            if of.get("by_default") and of.get("rate"):
                text = f"{path} drops {percent(of['rate'])} in evaluations as well: the function is not told that the model evaluates."
                place = place_of({"place": of["by_default"]})
                return Sign(text, place, evaluation.iteration, path.partition(":")[0])
    return None


def _number(evaluation: EvaluationPass) -> int:
    """Of the model that was called."""
    number = evaluation.model.partition("/")[0]
    return int(number) if number.isdigit() else 0


def _clipped_by_value(history: TrainingHistory) -> Sign | None:
    """All of a gradient at the limit of `clip_grad_value_`, and weights that hardly move."""
    limit = next((c["limit"] for c in history.clips if c["function"] == "clip_grad_value_"), None)
    found = gradients(history.iterations)
    if not limit or len(found) < 10 or does_well(history):
        return None
    at_it = [gradient for gradient in found if gradient["rms"] > 0.7 * limit]
    far = max(moved(history).values(), default=1.0)
    stay = far * max(1.0, 1000 / history.count) < 3
    if not stay or len(at_it) <= 0.7 * len(found):
        return None
    text = f"Nearly all elements of the gradients are clipped to {limit:g}."
    fix = f"Clip at about {limit * 1000.0:.0e}, or clip by the norm."
    return Sign(text, clipping_place(history), evidence={"limit": limit}, fix=fix)


def _clipped_to_nothing(history: TrainingHistory) -> Sign | None:
    """The limit compared with the norm of the gradients before, in a training that does not get far."""
    clipped = [
        clipping
        for looked in history.iterations
        for clipping in looked.clippings
        if clipping.get("norm") and clipping.get("limit") is not None
    ]
    if len(clipped) < 5 or course(history) is None or does_well(history):
        return None
    left = float(np.median([min(1.0, record["limit"] / record["norm"]) for record in clipped]))
    if left > _LEFT or max(moved(history).values(), default=1.0) > 3:
        return None
    norm, limit = float(np.median([record["norm"] for record in clipped])), clipped[0]["limit"]
    adaptive = all(optimizer["class"] in ADAPTIVE for optimizer in history.optimizers)
    # Steps of a size of their own are as large with less of a gradient.
    if adaptive and min(norm, limit) > _NOTHING:
        return None
    text = f"Gradients with a norm of {norm:.3g} are clipped to {limit:g}, {percent(left)} of their size."
    fix = f"Clip at about {norm:.1g}, which leaves typical gradients unchanged."
    evidence = {"norm": norm, "limit": limit}
    return Sign(text, clipping_place(history), evidence=evidence, fix=fix)


def _leaves_half_precision(history: TrainingHistory) -> Sign | None:
    """Infinite values, or gradients that are zero, in a model that computes in half precision."""
    found = course(history)
    for iteration in history.iterations:
        half = [path for path, layer in iteration.layers.items() if layer.get("dtype") == "float16"]
        broken = [path for path in half if iteration.layers[path].get("nonfinite", 0) > 0]
        of_iteration = gradients([iteration])
        gone = [g for g in of_iteration if g["zeros"] > 0.9 or g["nonfinite"] > 0]
        if half and (broken or len(gone) > 0.5 * len(of_iteration) or (found and not found.finite)):
            where = broken[0] if broken else ""
            what = f"{where} returns infinity" if broken else "gradients are zero or infinite"
            text = f"In half precision {what}: its range is 6e-8 to 65,504."
            return Sign(text, precision_place(history), iteration.number, where)
    return None


RELATIONS: Sequence[Row] = (
    Row("backward_missing", in_cycles(_cleared_before_step), 0.96, "Call optimizer.zero_grad() before backward() or after step()."),
    Row("accumulation_wrong", in_cycles(_accumulation_cleared), 0.94, "Clear gradients only after the step."),
    Row("step_missing", _one_never_steps, 0.9, "Call step() of each optimizer after the backward pass."),
    Row("accumulation_wrong", _last_window_cleared, 0.9, "Call step() after the last batch of an epoch, too."),
    Row("accumulation_wrong", in_cycles(_accumulation_not_divided), 0.97, "Divide the loss by the number of batches that are accumulated."),
    Row("gradient_clipping_wrong", in_cycles(_clipped_after_step), 0.95, "Clip between backward() and step()."),
    Row("gradient_clipping_wrong", in_cycles(_clipped_before_unscaling), 0.95, "Call scaler.unscale_(optimizer) before clipping."),
    Row("parameters_frozen", _without_gradients, 0.94,
        "Pass the parameters that the loss depends on to the optimizer, after the model is complete, and keep them in the graph: no item(), "
        "detach(), .data or torch.tensor()."),
    Row("zero_grad_missing", _never_cleared, 0.9, "Call zero_grad() before each backward pass.", kind=EvidenceKind.SOURCE),
    Row("gradient_scaling_wrong", in_cycles(_scaler_bypassed), 0.93,
        "Use scaler.scale(loss).backward(), scaler.step(optimizer) and scaler.update() together."),
)  # fmt: skip
CURVES: Sequence[Row] = (
    Row("backward_missing", _no_backward, 0.95, "Call loss.backward() before optimizer.step()."),
    Row("step_missing", _no_step, 0.95, "Call optimizer.step() after the backward pass."),
    Row("zero_grad_missing", _gradient_left, 0.97, "Call optimizer.zero_grad() before each backward pass."),
    Row("train_mode_missing", _trains_in_evaluation_mode, 0.92, "Call model.train() at the start of each epoch."),
    Row("eval_mode_missing", _evaluates_in_training_mode, 0.82, "Call model.eval() before each evaluation, and model.train() after it."),
    Row("eval_mode_missing", _drops_in_evaluations, 0.92, "Pass training=self.training, or use torch.nn.Dropout."),
    Row("gradient_clipping_wrong", _clipped_by_value, 0.92, series="gradient", kind=EvidenceKind.EFFECT),
    Row("gradient_clipping_wrong", _clipped_to_nothing, 0.92, series="gradient", kind=EvidenceKind.EFFECT),
    Row("mixed_precision_overflow", _leaves_half_precision, 0.8,
        "Use bfloat16, or torch.amp.GradScaler, and keep losses and sums in float32.", kind=EvidenceKind.EFFECT),
)  # fmt: skip
