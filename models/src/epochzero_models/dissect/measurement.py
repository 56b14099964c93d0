"""`dissect`: train the sub-models on one set of data, choose and measure on another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from epochzero.errors import InputError
from epochzero.reports.statistics import Estimate
from epochzero_models.bootstrap import mean
from epochzero_models.classifier import (
    Classifier,
    ProgressCallback,
    as_classifier,
    check_labels,
    logits_of,
)
from epochzero_models.dissect.detectors import DETECTORS, Detector, Validity, fit_detectors
from epochzero_models.dissect.dissector import Dissector
from epochzero_models.dissect.guard import Guard, Overhead, measure_overhead
from epochzero_models.dissect.layers import choose_layers
from epochzero_models.dissect.separation import (
    Cut,
    area_of,
    auc,
    auc_gain,
    choose_threshold,
    cut_at,
    roc,
)
from epochzero_models.dissect.submodels import Snapshots, Submodel, look_into, train_submodel
from epochzero_models.dissect.validity import snapshot_validity
from epochzero_models.examples import Examples

SCHEMA = "epochzero.model-dissection/2"
SOFTMAX = "max softmax"
ENSEMBLE = "ensemble"
SHOWN = 20
"""Layers, in a message."""
Curve = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Score:
    """How well a score tells right predictions from wrong ones.

    Attributes:
        name: ``dissector linear``, ``log`` or ``exp``, or a baseline.
        auc: None where all predictions are right, or all wrong.
        gain: in area over max softmax, by the same draws; None for max softmax itself.
        cut: at a threshold that other examples have chosen.
        curve: shares of wrong and of right predictions that are accepted, from the highest threshold.
    """

    name: str
    auc: Estimate
    gain: Estimate | None
    cut: Cut
    curve: Curve


@dataclass(frozen=True, slots=True)
class BeyondScore:
    """How well a score tells inputs of the test data from inputs beyond the model.

    Attributes:
        name: of the score.
        auc: of the inputs of the test data and those beyond.
        rejected: share of the inputs beyond that the threshold of the score rejects.
        passed: share of the inputs beyond that pass a threshold that accepts 95 % of the test data.
    """

    name: str
    auc: Estimate
    rejected: float
    passed: float


@dataclass(frozen=True, slots=True)
class LayerSeen:
    """What a layer knows.

    Attributes:
        layer: name of the module, or ``outputs``.
        features: of its sub-model.
        accuracy: of its sub-model.
        validity_right, validity_wrong: mean snapshot validity where the model is right or wrong.
    """

    layer: str
    features: int
    accuracy: float
    validity_right: float | None
    validity_wrong: float | None


@dataclass(frozen=True, eq=False)
class Dissection:
    """What a dissection found.

    Attributes:
        model: its name.
        trained_on, chosen_on, reported_on: how many examples trained the sub-models, chose the
            thresholds, and are reported on.
        accuracy: of the model, on those that are reported on.
        scores: DISSECTOR's by growth of the weights, then the baselines.
        layers: in the order of depth, the outputs last.
        overhead: of a guard for one input at a time.
        dissector: the detector that a guard uses, with its threshold.
        beyond: how the scores reject inputs of other data; empty without such data.
        recommended: the score that rejected wrong predictions, and inputs beyond, best among the examples that
            chose the thresholds.
        notes: what was left out, and why.
    """

    model: str
    trained_on: int
    chosen_on: int
    reported_on: int
    accuracy: Estimate
    scores: tuple[Score, ...]
    layers: tuple[LayerSeen, ...]
    overhead: Overhead
    dissector: Dissector
    beyond: tuple[BeyondScore, ...]
    recommended: str
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> Score:
        """The score that the dissector uses."""
        return next(score for score in self.scores if score.name == self.dissector.name)

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        scores = [asdict(score) for score in self.scores]
        for score in scores:
            del score["curve"]  # one point for each example
        return {
            "schema": SCHEMA,
            "model": self.model,
            "examples": {
                "trained_on": self.trained_on,
                "chosen_on": self.chosen_on,
                "reported_on": self.reported_on,
            },
            "accuracy": asdict(self.accuracy),
            "detector": self.dissector.name,
            "threshold": self.dissector.threshold,
            "scores": scores,
            "beyond": [asdict(score) for score in self.beyond],
            "recommended": self.recommended,
            "layers": [asdict(layer) for layer in self.layers],
            "overhead": asdict(self.overhead),
            "notes": list(self.notes),
        }


def dissect(
    model: Classifier | nn.Module,
    train: Examples,
    test: Examples,
    *,
    beyond: Examples | None = None,
    layers: Sequence[str] | None = None,
    detector: str | None = None,
    members: Sequence[Classifier | nn.Module] = (),
    false_rejections: float | None = None,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> Dissection:
    """Train a dissector and compare it with common scores.

    Args:
        model: a module, which is put into evaluation mode, or what `load_model` gives. It stays as it is.
        train: trains the sub-models; the model's own training data.
        test: that the model was not trained on. One half of them, drawn at random, chooses the
            thresholds, the other is reported on.
        beyond: inputs that the model should not be used for, whatever their labels. One half helps to
            recommend a score, the other is reported on.
        layers: names of modules; by default some six at even steps of depth.
        detector: name of the score that the dissector uses; by default the recommended one.
        members: the same model after other trainings. With them, the score ``ensemble`` is measured: the mean
            probability of the model's class (Lakshminarayanan et al. 2017). A guard, which runs one model, has none.
        false_rejections: share of right predictions that may be rejected; by default Youden's J.
        seed: of the halves and the bootstrap.
        on_progress: called with the progress.

    Raises:
        InputError: the model or the data cannot be used.
    """
    if detector is not None and detector not in DETECTORS:
        raise InputError(f"{detector!r} is not a detector: {', '.join(DETECTORS)}")
    classifier = as_classifier(model)
    classes = _check(classifier, train, test, beyond)
    names = _known(classifier, layers) if layers else choose_layers(classifier, train.inputs[:2])
    chosen_by, reported_by = test.halves(seed)
    learned = look_into(classifier, names, train, on_progress)
    submodels = _train(names, learned, train, classes, on_progress)
    detectors, left_out = fit_detectors(
        submodels, learned.features[-1], learned.logits, train.labels, seed
    )
    chosen = look_into(classifier, names, chosen_by, on_progress)
    reported = look_into(classifier, names, reported_by, on_progress)
    right = _right(reported, reported_by)
    ensemble = [as_classifier(member) for member in members]
    choosing = _scores(chosen, detectors, chosen_by, ensemble), _right(chosen, chosen_by)
    reporting = _scores(reported, detectors, reported_by, ensemble), right
    scores, notes = _measure(choosing, reporting, false_rejections, seed, on_progress)
    others = [
        _scores(look_into(classifier, names, part, on_progress), detectors, part, ensemble)
        for part in (beyond.halves(seed) if beyond is not None else ())
    ]
    recommended = _recommended(
        [score.name for score in scores if score.name != ENSEMBLE],
        choosing,
        others[0] if others else None,
    )
    dissector = _chosen(detector or recommended, scores, detectors, names, classes)
    return Dissection(
        model=classifier.name,
        trained_on=len(train),
        chosen_on=len(chosen_by),
        reported_on=len(reported_by),
        accuracy=mean(right, seed),
        scores=scores,
        layers=_layers(submodels, reported, reported_by, right),
        overhead=measure_overhead(Guard(classifier, dissector), test.inputs[:1]),
        dissector=dissector,
        beyond=_beyond(scores, reporting[0], others[1], seed) if others else (),
        recommended=recommended,
        notes=(*_missing_classes(train, classes), *left_out, *notes),
    )


def _check(classifier: Classifier, train: Examples, test: Examples, beyond: Examples | None) -> int:
    """How many classes there are; a few examples show what would stop the work later."""
    for other in (test, *(() if beyond is None else (beyond,))):
        if train.inputs.shape[1:] != other.inputs.shape[1:]:
            raise InputError(
                f"{train.name} and {other.name}: inputs differ in their shapes, "
                f"{tuple(train.inputs.shape[1:])} and {tuple(other.inputs.shape[1:])}"
            )
    few = train.take(torch.arange(min(2, len(train))))
    classes = logits_of(classifier, few).shape[1]
    for examples in (train, test):
        check_labels(classifier.name, classes, examples)
    return classes


def _missing_classes(train: Examples, classes: int) -> Iterator[str]:
    """Yield a note if the training data lack classes, as in a part of sorted data, because no detector learns these classes."""
    missing = classes - len(set(train.labels.tolist()))
    if missing:
        yield f"{missing} of {classes} classes, which {train.name} does not contain"


def _known(classifier: Classifier, layers: Sequence[str]) -> tuple[str, ...]:
    """The layers, which the model has.

    Raises:
        InputError: it has not.
    """
    known = [layer.name for layer in classifier.layered().known]
    for layer in layers:
        if layer not in known:
            names = ", ".join(known[:SHOWN]) + (" and others" if len(known) > SHOWN else "")
            raise InputError(f"{classifier.name} has no layer {layer!r}; it has {names}")
    return tuple(layers)


def _train(
    names: Sequence[str],
    learned: Snapshots,
    train: Examples,
    classes: int,
    on_progress: ProgressCallback | None,
) -> tuple[Submodel, ...]:
    trained: list[Submodel] = []
    for name, features in zip(names, learned.features, strict=True):
        if on_progress:
            on_progress("sub-models trained", len(trained), len(names))
        trained.append(train_submodel(name, features, train.labels, classes))
    return tuple(trained)


def _right(seen: Snapshots, examples: Examples) -> NDArray[np.bool_]:
    return (seen.predicted == examples.labels).numpy()


def _scores(
    seen: Snapshots,
    detectors: Mapping[str, Detector],
    examples: Examples,
    ensemble: Sequence[Classifier],
) -> dict[str, NDArray[Any]]:
    """All scores of the examples, by name."""
    found = {
        name: detector(seen.features, seen.logits).numpy() for name, detector in detectors.items()
    }
    if ensemble:
        # Other inputs may have labels that the model does not know.
        unlabelled = replace(examples, labels=torch.zeros_like(examples.labels))
        every = [seen.logits, *(logits_of(member, unlabelled) for member in ensemble)]
        mean_of_all = torch.stack([logits.double().softmax(dim=1) for logits in every]).mean(dim=0)
        found[ENSEMBLE] = mean_of_all.gather(1, seen.predicted[:, None])[:, 0].numpy()
    return found


def _chosen(
    name: str,
    scores: Sequence[Score],
    detectors: Mapping[str, Detector],
    layers: Sequence[str],
    classes: int,
) -> Dissector:
    """The detector of that name with its threshold, and the layers that it needs.

    Raises:
        InputError: it does not fit the model.
    """
    threshold = next((score.cut.threshold for score in scores if score.name == name), None)
    if threshold is None:
        fitting = ", ".join(score.name for score in scores)
        raise InputError(f"the detector {name!r} does not fit the model; these do: {fitting}")
    detector = detectors[name]
    needed = layers if isinstance(detector, Validity) else layers[-1:]
    return Dissector(name, detector, tuple(needed), classes, threshold)


Scored = tuple[Mapping[str, NDArray[Any]], NDArray[np.bool_]]


def _measure(
    chosen: Scored,
    reported: Scored,
    false_rejections: float | None,
    seed: int,
    on_progress: ProgressCallback | None,
) -> tuple[tuple[Score, ...], tuple[str, ...]]:
    """All scores with thresholds of the chosen part, measured on the reported one."""
    found: list[Score] = []
    notes: list[str] = []
    values, right = reported
    for name, scores in values.items():
        if np.ptp(scores) < 1e-6:
            why = ": the model gives probabilities" if name == "energy" else ""
            notes.append(f"{name} is the same for all examples{why}")
            continue
        if on_progress:
            on_progress(f"{name} is measured")
        threshold = choose_threshold(chosen[0][name], chosen[1], false_rejections)
        gain = None if name == SOFTMAX else auc_gain(scores, values[SOFTMAX], right, seed)
        across, up = roc(scores, right)
        curve = across.tolist(), up.tolist()
        cut = cut_at(scores, right, threshold)
        found.append(Score(name, auc(scores, right, seed), gain, cut, curve))
    return tuple(found), tuple(notes)


def _beyond(
    scores: Sequence[Score],
    known: Mapping[str, NDArray[Any]],
    others: Mapping[str, NDArray[Any]],
    seed: int,
) -> tuple[BeyondScore, ...]:
    found: list[BeyondScore] = []
    for score in scores:
        own, other = known[score.name], others[score.name]
        is_known = np.arange(len(own) + len(other)) < len(own)
        found.append(
            BeyondScore(
                score.name,
                auc(np.concatenate((own, other)), is_known, seed),
                rejected=float((other < score.cut.threshold).mean()),
                passed=float((other >= np.quantile(own, 0.05, method="lower")).mean()),
            )
        )
    return tuple(found)


def _recommended(
    names: Sequence[str], choosing: Scored, others: Mapping[str, NDArray[Any]] | None
) -> str:
    """The name of the score with the largest area: of right and wrong predictions, and of right ones and inputs beyond."""
    values, right = choosing

    def area(name: str) -> float:
        own = values[name]
        rejected = [own[~right], *([] if others is None else [others[name]])]
        return sum(area_of(own[right], part) for part in rejected if len(part))

    return max(names, key=area)


def _layers(
    submodels: Sequence[Submodel], seen: Snapshots, examples: Examples, right: NDArray[np.bool_]
) -> tuple[LayerSeen, ...]:
    inner = [
        submodel.logits(feature) for submodel, feature in zip(submodels, seen.features, strict=True)
    ]
    validity = [
        snapshot_validity(scores, seen.predicted).numpy() for scores in (*inner, seen.logits)
    ]
    names = [submodel.layer for submodel in submodels]
    sizes = [feature.shape[1] for feature in seen.features]
    rows = zip((*names, "outputs"), (*inner, seen.logits), (*sizes, 0), strict=True)
    return tuple(
        LayerSeen(
            layer=name,
            features=size,
            accuracy=float((logits.argmax(dim=1) == examples.labels).double().mean()),
            validity_right=_mean(validity[at][right]),
            validity_wrong=_mean(validity[at][~right]),
        )
        for at, (name, logits, size) in enumerate(rows)
    )


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if values.size else None
