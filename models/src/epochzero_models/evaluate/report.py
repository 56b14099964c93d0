"""The report of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.reports.figures import Figure, bars, curves
from epochzero.reports.page import Part, ReportPage, Section
from epochzero.reports.statistics import Estimate
from epochzero.reports.tables import Column, Row, Table
from epochzero_models.evaluate.measurement import Evaluation, ModelMeasured

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
        Section("Accuracy", [_accuracy(evaluation), *_groups(evaluation)]),
        Section("Calibration", [_calibration(evaluation), _reliability(evaluation)]),
        Section("Corruptions", list(_corruptions(evaluation))),
        Section("Attacks", list(_attacks(evaluation))),
        Section("Latency", [_latency(evaluation)]),
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
           rows: list[Row], *notes: str) -> Table:  # fmt: skip
    return Table(name, caption, columns, tuple(rows), evaluation.examples, "examples", notes)


def _pair(estimate: Estimate) -> Row:
    return estimate.value, estimate.interval


def _accuracy(evaluation: Evaluation) -> Table:
    rows: list[Row] = [
        (model.model, f"top {k}", *_pair(estimate))
        for model in evaluation.models
        for k, estimate in model.top.items()
    ]
    columns = (
        Column("Model", "identity"),
        Column("Classes"),
        Column("Accuracy", "share"),
        _INTERVAL,
    )
    return _table(evaluation, "accuracy", "The label is among the strongest classes", columns, rows,
                  "Intervals of shares are Wilson's.")  # fmt: skip


def _groups(evaluation: Evaluation) -> Iterator[Part]:
    rows: list[Row] = [
        (model.model, group.group, group.examples, *_pair(group.accuracy))
        for model in evaluation.models
        for group in model.groups
    ]
    if rows:
        columns = (
            Column("Model", "identity"),
            Column("Subgroup"),
            Column("No.", "count"),
            Column("Accuracy", "share", cases="No."),
            Column("95 % interval", "interval", cases="No."),
        )
        yield _table(evaluation, "subgroups", "Accuracy by subgroup", columns, rows)


def _calibration(evaluation: Evaluation) -> Table:
    rows: list[Row] = [
        (model.model, measure, *_pair(estimate))
        for model in evaluation.models
        for measure, estimate in (
            ("expected calibration error", model.calibration_error),
            ("Brier score", model.brier),
            ("log loss", model.log_loss),
        )
    ]
    columns = (
        Column("Model", "identity"), Column("Measure"), Column("Value", "score"), _SCORE_INTERVAL
    )  # fmt: skip
    return _table(evaluation, "calibration", "How far probabilities can be believed; less is better",
                  columns, rows, "Intervals by 1,000 draws of examples with replacement.")  # fmt: skip


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
    measured = [model for model in evaluation.models if model.corruptions]
    rows: list[Row] = [
        (measurement.model, each.corruption, each.severity, *_pair(each.accuracy))
        for measurement in measured
        for each in measurement.corruptions
    ]
    if not rows:
        return
    columns = (
        Column("Model", "identity"),
        Column("Corruption"),
        Column("Severity", "count"),
        Column("Accuracy", "share"),
        _INTERVAL,
    )
    yield _table(evaluation, "corruptions", "Accuracy on corrupted inputs", columns, rows)
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
    rows: list[Row] = [
        (model.model, each.attack, each.attacked, *_pair(each.success), each.l2, each.linf)
        for model in evaluation.models
        for each in model.attacks
    ]
    if rows:
        columns = (
            Column("Model", "identity"),
            Column("Attack"),
            Column("Attacked", "count"),
            Column("Success", "share", cases="Attacked"),
            Column("95 % interval", "interval", cases="Attacked"),
            Column("Distance, L2", "score"),
            Column("Largest change", "score"),
        )
        yield _table(
            evaluation, "attacks", "Attacks on examples that the model has right", columns, rows,
            f"All but DeepFool change a number by at most {100 * evaluation.epsilon:g} % of the inputs' range. "
            "Its distance is what counts.",
            "Distances are means over the successes, in the unit of the inputs.",
        )  # fmt: skip


def _latency(evaluation: Evaluation) -> Table:
    rows: list[Row] = [
        (model.model, size, time)
        for model in evaluation.models
        for size, time in model.latency_ms.items()
    ]
    columns = (Column("Model", "identity"), Column("Batch", "count"), Column("Median, ms", "score"))
    return _table(evaluation, "latency", "Time of a batch on this machine", columns, rows)


def _coverage(evaluation: Evaluation) -> Iterator[Part]:
    measured = [model for model in evaluation.models if model.coverage]
    rows: list[Row] = [
        (m.model, threshold, share) for m in measured for threshold, share in m.coverage
    ]
    if rows:
        columns = (
            Column("Model", "identity"), Column("Threshold", "number"), Column("Covered", "share")
        )  # fmt: skip
        yield curves(
            "coverage",
            "Neurons that some example brings above a threshold of their layer's range.",
            {m.model: ([t for t, _ in m.coverage], [s for _, s in m.coverage]) for m in measured},
            x="threshold",
            y="neurons covered",
            alt="Neuron coverage by threshold.",
        )
        yield _table(evaluation, "coverage", "Neuron coverage", columns, rows)


def _differences(evaluation: Evaluation) -> Iterator[Part]:
    rows: list[Row] = [
        (difference.model, difference.measure, *_pair(difference.difference))
        for difference in evaluation.differences
    ]
    if rows:
        columns = (
            Column("Model", "identity"), Column("Measure"), Column("Difference", "score"),
            _SCORE_INTERVAL,
        )  # fmt: skip
        yield _table(
            evaluation, "differences", f"Differences from {evaluation.models[0].model}", columns, rows,
            "Both models are measured on the same draws of examples. An interval without 0 is a "
            "difference that these examples show.",
        )  # fmt: skip
