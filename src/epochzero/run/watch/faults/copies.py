"""Copies of a model that should follow it: averages of its weights, target networks, stored states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from epochzero.run.watch.faults._signals import (
    fingerprints,
    has_changed,
    is_within,
    looks_untrained,
    moves,
    normalizations,
    rows_of,
)
from epochzero.run.watch.faults._table import SHARE, Row, Sign, percent
from epochzero.run.watch.history import TrainingHistory
from epochzero.run.watch.lines.layers import (
    alias_place,
    averaging_place,
    blending_place,
    copy_place,
    decays_of_copies,
)
from epochzero.run.watch.lines.settings import place_of, stated_iterations
from epochzero.run.watch.model import EvidenceKind

_FOLLOWS = re.compile(
    r"(^|[._\d])(target|ema|average|averaged|avg|swa|momentum|slow|shadow|key|k|polyak)([._\d]|$)",
    re.I,
)
_STAYS = re.compile(
    r"ref|teacher|frozen|old|prior|orig|init|start|base|pretrain|vgg|perceptual|anchor|snapshot|expert",
    re.I,
)
_UNCHANGED, _UNCHANGED_WHEN_ASKED = 3, 1000
_STEPS_OF_COPY, _REACHED = 50, 0.1
_LEAST = 2
_ALIKE = 5
"""Iterations in which the model and what it is compared with return the same: at first a copy does, too."""


def _copy_stays(history: TrainingHistory, *, proved: bool) -> Sign | None:
    """A copy of the trained model that is asked, and never follows it.

    That it should is ``proved`` if it is tested instead of the model, or if what it began as was never trained: the teacher of a
    distillation and the reference of a policy were.
    """
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
        begun = history.ended and equal and _is_as_drawn(history, path)
        if proved and not ((instead and equal) or begun):
            continue
        text = (
            f"{label} has the layers of {twin or 'the trained model'} and is used, but none of its weights has changed in "
            f"{history.count} iterations."
        )
        place = blending or copy_place(history, path) or next((e.place for e in tested), None)
        meant = follows or instead or begun or blending is not None
        return Sign(text, place, layer=path, weaker=0.0 if meant else 0.45)
    return None


def _statistics_stay(history: TrainingHistory) -> Sign | None:
    """A copy whose weights follow the model is evaluated with the statistics that its normalizations were made with."""
    looked = [e for e in history.evaluations if e.iteration and e.inputs and e.training is False]
    held = {p.layer for p in history.parameters if p.held}
    trained = {layer.model for layer in normalizations(history) if layer.path in held}
    for layer in normalizations(history):
        tests = [e for e in looked if e.model.partition("/")[0] == str(layer.model)]
        # What normalizes by its batches alone, the trained model as well, has no statistics to follow.
        unset = [e for e in tests if layer.model in e.unset and trained - e.unset]
        own = (p for p in history.parameters if p.layer == layer.path and not p.held)
        stays = layer.path not in held and len(unset) >= max(_LEAST, SHARE * len(tests))
        if stays and any(has_changed(history, p) for p in own):
            text = (
                f"The weights of {layer.path} follow those of the model, but the running statistics of its normalizations are as they "
                "were made: evaluations neither center nor scale."
            )
            place = averaging_place(history) or tests[0].place
            return Sign(text, place, layer=layer.path)
    return None


def _is_as_drawn(history: TrainingHistory, path: str) -> bool:
    """Whether all matrices under a path have the random values of a beginning."""
    own = [
        of
        for of in history.parameters
        if not of.held and is_within(of.name, path) and len(of.shape) > 1
    ]
    return bool(own) and all(map(looks_untrained, own))


def _copy_lags(history: TrainingHistory) -> Sign | None:
    """An average of weights that is nearly what it was at first when the training ends."""
    total = stated_iterations(history)
    for decay, place in decays_of_copies(history) if total and total >= _STEPS_OF_COPY else ():
        reached = 1 - decay ** (total or 0)
        if reached < _REACHED:
            text = (
                f"With a decay of {decay:g}, the average has moved {percent(reached)} of the way from its initial weights after all "
                f"{total} steps."
            )
            return Sign(text, place, evidence={"decay": decay})
    return None


def _still_copies(history: TrainingHistory) -> Iterator[tuple[str, str, bool]]:
    """Modules that stay as they are: their path, that of a trained module like them, and whether they started alike."""
    looks = [others for others in fingerprints(history) if others]
    if len(looks) < _UNCHANGED or not history.iterations:
        return
    trained = {parameter.name: parameter for parameter in history.parameters if parameter.held}
    others = {p.name: p for p in history.parameters if not p.held and p.name in looks[-1]}
    model = {layer.path: layer.model for layer in history.layers}
    learning = {model.get(parameter.layer) for parameter in trained.values()}
    shapes = ({name: parameter.shape for name, parameter in of.items()} for of in (others, trained))
    for path, twin in _twins(*shapes):
        names = [name for name in others if is_within(name, path)]
        # What asks for gradients next to trained layers was left out of the optimizer, and is no copy.
        left_out = others[names[0]].trainable and model.get(others[names[0]].layer) in learning
        changed = any(has_changed(history, others[name]) for name in names)
        if left_out or changed or not moves(history, twin):
            continue
        pairs = [(others[name].values, trained[_other(name, path, twin)].values) for name in names]
        sizes = [(own.get("rms", 0.0), of.get("rms", 1.0)) for own, of in pairs]
        yield path, twin, all(np.isclose(own, of, rtol=0.02) for own, of in sizes)


def _is_tested(history: TrainingHistory, called: str, path: str) -> bool:
    """Whether an evaluation calls the model that a path is in."""
    number = next((layer.model for layer in history.layers if layer.path == path), 0)
    return called.partition("/")[0] == str(number)


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
        own = {name: shape for name, shape in others.items() if is_within(name, path)}
        if sum(len(shape) > 1 for shape in own.values()) < 2:
            continue
        for twin in candidates:
            within = [name for name in trained if is_within(name, twin)]
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


def _is_itself(history: TrainingHistory) -> Sign | None:
    """What the model is compared with returns for each batch what the model does, and so the loss never changes."""
    calls = (*history.passes, *history.evaluations)
    asked = {evaluation.iteration: evaluation for evaluation in calls}
    alike = [
        i.number
        for i in history.iterations
        if (of := asked.get(i.number)) is not None
        and (rows := rows_of(i)) and rows == rows_of(of) and i.output and i.output == of.output
    ]  # fmt: skip
    if len(alike) < _ALIKE or not moves(history):
        return None
    for series in history.loss_by_line.values():
        values = series[series[:, 0] >= alike[0], 1]
        if len(values) >= _ALIKE and np.ptp(values) <= 1e-6 * abs(values[0]):
            text = (
                f"From iteration {alike[0]} on, the loss is {values[0]:.4g} in all {len(values)} iterations: the model is compared with "
                "itself, and without gradients returns the same for the same examples."
            )
            return Sign(text, alias_place(history) or place_of(history.backwards[0]), alike[0])
    return None


def _loads_itself(history: TrainingHistory) -> Sign | None:
    """Weights that were stored without being copied are loaded into the module that they belong to."""
    for record in history.loads:
        if record["iteration"] > 0 and record.get("shared"):
            text = (
                "load_state_dict receives the weights that the model already has: the stored state was not a copy and changed "
                "with the model."
            )
            return Sign(text, place_of(record), int(record["iteration"]))
    return None


_BUFFERS = "Copy buffers such as running_mean and running_var as well, or compute them anew (torch.optim.swa_utils.update_bn)."
_UPDATE = "Update the copy after each step, from the model that is trained."
RELATIONS: Sequence[Row] = (
    Row("copy_not_updated", partial(_copy_stays, proved=True), 0.92, _UPDATE),
    Row("copy_not_updated", partial(_copy_stays, proved=False), 0.92, _UPDATE, kind=EvidenceKind.STATE),
    Row("copy_not_updated", _copy_lags, 0.92, "Choose a decay of about 1 - 10 / steps.", kind=EvidenceKind.SOURCE),
    Row("copy_not_updated", _statistics_stay, 0.94, _BUFFERS),
    Row("copy_not_updated", _is_itself, 0.95, "Compare with copy.deepcopy(model): a second name is no copy."),
    Row("copy_not_updated", _loads_itself, 0.95, "Store copy.deepcopy(model.state_dict())."),
)  # fmt: skip
CURVES: Sequence[Row] = ()
