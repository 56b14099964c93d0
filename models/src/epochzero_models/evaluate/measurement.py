"""`evaluate`: all metrics of each model, and the differences between models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from epochzero.errors import InputError
from epochzero.reports.statistics import Estimate, wilson
from epochzero_models.bootstrap import Floats, mean
from epochzero_models.classifier import Classifier, ProgressCallback, as_classifier, logits_of
from epochzero_models.evaluate.attacks import AUTO, USUAL, Attacked, attack
from epochzero_models.evaluate.calibration import (
    Bin,
    brier_scores,
    expected_calibration_error,
    log_losses,
    reliability,
)
from epochzero_models.evaluate.corruptions import corrupted
from epochzero_models.evaluate.coverage import neuron_coverage
from epochzero_models.examples import Examples
from epochzero_models.timing import milliseconds

SCHEMA = "epochzero.model-evaluation/2"
TOP = (1, 5)
ATTACKED = 200
EPSILON = 0.03
TIMED = (1, 64)
"""Sizes of the batches whose time is measured."""
REPEATS = 20


@dataclass(frozen=True, slots=True)
class Corrupted:
    """Accuracy on corrupted inputs."""

    corruption: str
    severity: int
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class SubgroupAccuracy:
    """Accuracy on a subgroup."""

    group: str
    examples: int
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class ModelMeasured:
    """The metrics of a model.

    Attributes:
        model: its name.
        top: accuracy by k: the label is among the k most probable classes.
        log_loss, brier: means over the examples.
        calibration_error: expected calibration error with 15 bins.
        reliability: these bins.
        groups: by subgroup.
        corruptions: by corruption and severity.
        coverage: threshold and share of neurons.
        attacks: in the order of `ATTACKS`.
        latency_ms: median time of a batch in milliseconds, by its size.
        left_out: metrics that were omitted, with the reason.
    """

    model: str
    top: Mapping[int, Estimate]
    log_loss: Estimate
    brier: Estimate
    calibration_error: Estimate
    reliability: tuple[Bin, ...]
    groups: tuple[SubgroupAccuracy, ...]
    corruptions: tuple[Corrupted, ...]
    coverage: tuple[tuple[float, float], ...]
    attacks: tuple[Attacked, ...]
    latency_ms: Mapping[int, float]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """A model minus the first one, on the same bootstrap samples."""

    model: str
    measure: str
    difference: Estimate


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The metrics of models on the same examples.

    Attributes:
        data: name of the examples.
        examples: number of examples.
        epsilon: of the attacks, as a share of the inputs' range.
        models: in the given order.
        differences: of all other models from the first.
    """

    data: str
    examples: int
    epsilon: float
    models: tuple[ModelMeasured, ...]
    differences: tuple[ScoreDifference, ...]

    def to_dict(self) -> Mapping[str, Any]:
        """Return JSON data."""
        return {"schema": SCHEMA, **asdict(self)}


def evaluate(
    models: Sequence[Classifier | nn.Module],
    examples: Examples,
    *,
    attacks: bool = True,
    autoattack: bool = False,
    attacked: int = ATTACKED,
    epsilon: float = EPSILON,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> Evaluation:
    """Measure models on examples that they were not trained on.

    Metrics that do not apply, such as attacks without gradients, are omitted with the reason.

    Args:
        models: modules, which are put into evaluation mode, or results of `load_model`.
        examples: the same for all models.
        attacks: whether to attack.
        autoattack: whether to add AutoAttack, which takes thousands of queries for each example that withstands it.
        attacked: maximum number of correctly classified examples to attack, drawn at random.
        epsilon: maximum perturbation by bounded attacks, as a share of the inputs' range.
        seed: of sampling, corruptions, attacks and the bootstrap.
        on_progress: called with the progress.

    Raises:
        InputError: a model or the examples cannot be used.
    """
    names = (*USUAL, AUTO) if autoattack else USUAL
    asked = _Asked(names if attacks else (), attacked, epsilon, seed, on_progress)
    classifiers = [as_classifier(model) for model in models]
    outputs = [_Outputs.of(classifier, examples, on_progress) for classifier in classifiers]
    return Evaluation(
        data=examples.name,
        examples=len(examples),
        epsilon=epsilon,
        models=tuple(
            _measured(classifier, output, examples, asked)
            for classifier, output in zip(classifiers, outputs, strict=True)
        ),
        differences=tuple(
            difference
            for classifier, output in zip(classifiers[1:], outputs[1:], strict=True)
            for difference in _differences(classifier.name, output, outputs[0], seed)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Options of `evaluate`, with the names of the attacks."""

    attacks: tuple[str, ...]
    attacked: int
    epsilon: float
    seed: int
    on_progress: ProgressCallback | None


@dataclass(frozen=True, eq=False)
class _Outputs:
    """A model's outputs for each example.

    Attributes:
        probabilities: shape (n, classes).
        right: whether the most probable class is the label, shape (n,).
        log_losses, brier_scores: shape (n,).
    """

    probabilities: Floats
    right: NDArray[np.bool_]
    log_losses: Floats
    brier_scores: Floats

    @classmethod
    def of(
        cls, classifier: Classifier, examples: Examples, on_progress: ProgressCallback | None
    ) -> _Outputs:
        logits = logits_of(classifier, examples, on_progress=on_progress)
        probabilities: Floats = logits.double().softmax(dim=1).numpy()
        labels = examples.labels.numpy()
        right = probabilities.argmax(axis=1) == labels
        losses = log_losses(probabilities, labels)
        return cls(probabilities, right, losses, brier_scores(probabilities, labels))


def _measured(
    classifier: Classifier, outputs: _Outputs, examples: Examples, asked: _Asked
) -> ModelMeasured:
    left_out: dict[str, str] = {}
    confidence = outputs.probabilities.max(axis=1)
    corruptions: tuple[Corrupted, ...] = ()
    coverage: tuple[tuple[float, float], ...] = ()
    attacks: tuple[Attacked, ...] = ()
    try:
        coverage = neuron_coverage(classifier, examples, asked.on_progress)
    except InputError as error:
        left_out["neuron coverage"] = str(error)
    try:
        corruptions = _corruptions(classifier, examples, asked)
    except InputError as error:
        left_out["corruptions"] = str(error)
    try:
        attacks = _attacks(classifier, outputs, examples, asked)
    except InputError as error:
        left_out["attacks"] = str(error)
    return ModelMeasured(
        model=classifier.name,
        top=_top(outputs, examples),
        log_loss=mean(outputs.log_losses, asked.seed),
        brier=mean(outputs.brier_scores, asked.seed),
        calibration_error=expected_calibration_error(confidence, outputs.right, asked.seed),
        reliability=reliability(confidence, outputs.right),
        groups=_groups(outputs, examples),
        corruptions=corruptions,
        coverage=coverage,
        attacks=attacks,
        latency_ms=_latency(classifier, examples),
        left_out=left_out,
    )


def _top(outputs: _Outputs, examples: Examples) -> Mapping[int, Estimate]:
    """Return top-k accuracy for each k below the number of classes; ties count for the lower class."""
    order = np.argsort(-outputs.probabilities, axis=1, kind="stable")
    hits = order == examples.labels.numpy()[:, None]
    return {
        k: _share(hits[:, :k].any(axis=1))
        for k in TOP
        if k == 1 or k < outputs.probabilities.shape[1]
    }


def _share(flags: NDArray[np.bool_]) -> Estimate:
    part = int(flags.sum())
    return Estimate(part / len(flags), wilson(part, len(flags)))


def _groups(outputs: _Outputs, examples: Examples) -> tuple[SubgroupAccuracy, ...]:
    names = np.array(examples.groups)
    return tuple(
        SubgroupAccuracy(
            str(name), int((names == name).sum()), _share(outputs.right[names == name])
        )
        for name in (np.unique(names) if len(names) else ())
    )


def _corruptions(
    classifier: Classifier, examples: Examples, asked: _Asked
) -> tuple[Corrupted, ...]:
    if not examples.inputs.is_floating_point():
        raise InputError("inputs are tokens; only numbers and images can be corrupted")
    found: list[Corrupted] = []
    for name, severity, inputs in corrupted(examples.inputs, asked.seed):
        logits = logits_of(
            classifier, replace(examples, inputs=inputs), on_progress=asked.on_progress
        )
        right = (logits.argmax(dim=1) == examples.labels).numpy()
        found.append(Corrupted(name, severity, _share(right)))
    return tuple(found)


def _attacks(
    classifier: Classifier, outputs: _Outputs, examples: Examples, asked: _Asked
) -> tuple[Attacked, ...]:
    if not asked.attacks:
        return ()
    right = torch.from_numpy(np.flatnonzero(outputs.right))
    if not len(right):
        raise InputError("the model classifies no example correctly, so none can be attacked")
    return attack(
        classifier,
        examples.take(right).drawn(asked.attacked, asked.seed),
        outputs.probabilities.shape[1],
        epsilon=asked.epsilon,
        seed=asked.seed,
        names=asked.attacks,
        on_progress=asked.on_progress,
    )


def _latency(classifier: Classifier, examples: Examples) -> Mapping[int, float]:
    """Return the median time of a batch, by its size; sizes above the number of examples are left out."""
    found: dict[int, float] = {}
    for size in TIMED:
        batch = examples.inputs[:size]
        if len(batch) == size:
            with torch.no_grad():
                classifier.logits(batch)  # the first call prepares the device
                times = [
                    milliseconds(lambda batch=batch: classifier.logits(batch), classifier.device)  # type: ignore[misc]
                    for _ in range(REPEATS)
                ]
            found[size] = float(np.median(times))
    return found


def _differences(
    name: str, outputs: _Outputs, first: _Outputs, seed: int
) -> tuple[ScoreDifference, ...]:
    accuracy = outputs.right.astype(np.float64) - first.right
    values = {
        "accuracy": accuracy,
        "log loss": outputs.log_losses - first.log_losses,
        "Brier score": outputs.brier_scores - first.brier_scores,
    }
    return tuple(
        ScoreDifference(name, measure, mean(value, seed)) for measure, value in values.items()
    )
