"""The report of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from epochzero.reports.figures import Figure, bars, curves
from epochzero.reports.page import Part, ReportPage, Section
from epochzero.reports.statistics import Estimate
from epochzero.reports.tables import Column, Row, Table
from epochzero_models.evaluate.measurement import Evaluation, ModelMeasured

_MODEL = Column("Model", "identity")
_INTERVAL = Column("95 % interval", "interval")
_SCORE_INTERVAL = Column("95 % interval", "interval", interval_of="score")


def evaluation_report(evaluation: Evaluation) -> ReportPage:
    """Return a report that compares all models.

    Raises:
        InputError: matplotlib is not installed.
    """
    accuracies = "; ".join(
        f"{model.model} is right on {100 * (model.top[1].value or 0):.1f} %"
        for model in evaluation.models
    )
    sections = [
        Section("Accuracy", [*_accuracy(evaluation), *_groups(evaluation)]),
        Section("Calibration", [*_calibration(evaluation), _reliability(evaluation)]),
        Section("Corruptions", list(_corruptions(evaluation))),
        Section("Attacks", list(_attacks(evaluation))),
        Section("Latency", list(_latency(evaluation))),
        Section("Neuron coverage", list(_coverage(evaluation))),
        Section("Differences", list(_differences(evaluation))),
        Section("Left out", [f"{model.model}: {what}: {why}" for model in evaluation.models
                             for what, why in model.left_out.items()]),
    ]  # fmt: skip
    return ReportPage(
        f"Evaluation on {evaluation.data}",
        f"{accuracies}, of {evaluation.examples:,} examples. After EvalDNN (Tian et al., ICSE 2020).",
        [section for section in sections if section.parts],
    )


def _table(evaluation: Evaluation, name: str, caption: str, columns: tuple[Column, ...],
           rows_of: Callable[[ModelMeasured], Iterable[Row]], *notes: str) -> Iterator[Part]:  # fmt: skip
    """A table of all models, if any of them has rows."""
    rows = tuple((model.model, *row) for model in evaluation.models for row in rows_of(model))
    if rows:
        yield Table(name, caption, (_MODEL, *columns), rows, evaluation.examples, "examples", notes)


def _pair(estimate: Estimate) -> Row:
    return estimate.value, estimate.interval


def _accuracy(evaluation: Evaluation) -> Iterator[Part]:
    return _table(evaluation, "accuracy", "The label is among the strongest classes",
                  (Column("Classes"), Column("Accuracy", "share"), _INTERVAL),
                  lambda model: ((f"top {k}", *_pair(estimate)) for k, estimate in model.top.items()),
                  "Intervals of shares are Wilson's.")  # fmt: skip


def _groups(evaluation: Evaluation) -> Iterator[Part]:
    columns = (Column("Subgroup"), Column("No.", "count"), Column("Accuracy", "share", cases="No."),
               Column("95 % interval", "interval", cases="No."))  # fmt: skip
    return _table(evaluation, "subgroups", "Accuracy by subgroup", columns, lambda model: (
        (group.group, group.examples, *_pair(group.accuracy)) for group in model.groups
    ))  # fmt: skip


def _calibration(evaluation: Evaluation) -> Iterator[Part]:
    return _table(evaluation, "calibration", "How far probabilities can be believed; less is better",
                  (Column("Measure"), Column("Value", "score"), _SCORE_INTERVAL),
                  lambda model: (
                      ("expected calibration error", *_pair(model.calibration_error)),
                      ("Brier score", *_pair(model.brier)),
                      ("log loss", *_pair(model.log_loss)),
                  ),
                  "Intervals by 1,000 draws of examples with replacement.")  # fmt: skip


def _reliability(evaluation: Evaluation) -> Figure:
    series = {
        model.model: (
            [b.confidence for b in model.reliability],
            [b.accuracy for b in model.reliability],
        )
        for model in evaluation.models
    }
    errors = ", ".join(
        f"{model.model} {model.calibration_error.value:.3f}" for model in evaluation.models
        if model.calibration_error.value is not None
    )  # fmt: skip
    return curves(
        "reliability",
        "Accuracy of predictions of about the same confidence. On the diagonal both agree; below it the "
        "model believes too much of itself.",
        series,
        x="confidence",
        y="accuracy",
        alt=f"Reliability. Expected calibration error: {errors}.",
        diagonal=True,
    )


def _corruptions(evaluation: Evaluation) -> Iterator[Part]:
    columns = (Column("Corruption"), Column("Severity", "count"), Column("Accuracy", "share"), _INTERVAL)  # fmt: skip
    yield from _table(evaluation, "corruptions", "Accuracy on corrupted inputs", columns, lambda model: (
        (each.corruption, each.severity, *_pair(each.accuracy)) for each in model.corruptions
    ))  # fmt: skip
    measured = [model for model in evaluation.models if model.corruptions]
    if not measured:
        return
    names = list(dict.fromkeys(each.corruption for each in measured[0].corruptions))
    yield bars(
        "corruptions",
        "Accuracy on inputs that are not corrupted, and as severely as it was tried.",
        ["none", *names],
        {m.model: [m.top[1].value or 0.0, *_worst(m, names)] for m in measured},
        axis="accuracy, %",
    )


def _worst(model: ModelMeasured, names: list[str]) -> list[float]:
    return [
        min(
            corruption.accuracy.value or 0.0
            for corruption in model.corruptions
            if corruption.corruption == name
        )
        for name in names
    ]


def _attacks(evaluation: Evaluation) -> Iterator[Part]:
    columns = (Column("Attack"), Column("Attacked", "count"), Column("Success", "share", cases="Attacked"),
               Column("95 % interval", "interval", cases="Attacked"), Column("Distance, L2", "score"),
               Column("Largest change", "score"))  # fmt: skip
    return _table(
        evaluation, "attacks", "Attacks on correctly classified examples", columns, lambda model: (
            (each.attack, each.attacked, *_pair(each.success), each.l2, each.linf) for each in model.attacks
        ),
        f"All attacks except DeepFool change each number by at most {100 * evaluation.epsilon:g} % of the range of the inputs. "
        "DeepFool is judged by its distance.",
        "Distances are means over the successes, in the unit of the inputs.",
    )  # fmt: skip


def _latency(evaluation: Evaluation) -> Iterator[Part]:
    return _table(evaluation, "latency", "Time of a batch on this machine",
                  (Column("Batch", "count"), Column("Median, ms", "score")), lambda model: model.latency_ms.items())  # fmt: skip


def _coverage(evaluation: Evaluation) -> Iterator[Part]:
    measured = [model for model in evaluation.models if model.coverage]
    if measured:
        yield curves(
            "coverage",
            "Neurons that some example brings above a threshold of their layer's range.",
            {m.model: ([t for t, _ in m.coverage], [s for _, s in m.coverage]) for m in measured},
            x="threshold",
            y="neurons covered",
            alt="Neuron coverage by threshold.",
        )
    yield from _table(evaluation, "coverage", "Neuron coverage",
                      (Column("Threshold", "number"), Column("Covered", "share")), lambda model: model.coverage)  # fmt: skip


def _differences(evaluation: Evaluation) -> Iterator[Part]:
    rows = tuple((each.model, each.measure, *_pair(each.difference)) for each in evaluation.differences)  # fmt: skip
    if rows:
        yield Table(
            "differences", f"Differences from {evaluation.models[0].model}",
            (_MODEL, Column("Measure"), Column("Difference", "score"), _SCORE_INTERVAL),
            rows, evaluation.examples, "examples",
            ("Both models are measured on the same draws of examples. An interval without 0 is a "
             "difference that these examples show.",),
        )  # fmt: skip
