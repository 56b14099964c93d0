"""The report of a dissection."""

from __future__ import annotations

from epochzero.reports.figures import Figure, bars, curves
from epochzero.reports.page import ReportPage, Section
from epochzero.reports.tables import Column, Row, Table
from epochzero_models.dissect.measurement import Dissection


def dissection_report(dissection: Dissection) -> ReportPage:
    """Which score tells right from wrong, what each layer knows, and what a guard would do.

    Raises:
        InputError: matplotlib is not installed.
    """
    accuracy = 100 * (dissection.accuracy.value or 0)
    lead = (
        f"The model is right on {accuracy:.1f} % of {dissection.reported_on:,} examples. "
        f"Sub-models on {len(dissection.layers) - 1} of its layers were trained on "
        f"{dissection.trained_on:,} examples; thresholds were chosen on {dissection.chosen_on:,} that are "
        "not reported on. After DISSECTOR (Wang et al., ICSE 2020)."
    )
    return ReportPage(
        f"Dissection of {dissection.model}",
        lead,
        [
            Section(
                "Right or wrong", [_scores(dissection), _curves(dissection), *dissection.notes]
            ),
            *(
                [Section("Inputs beyond the model", [_beyond(dissection)])]
                if dissection.beyond
                else []
            ),
            Section(
                "In use", [_recommendation(dissection), _cuts(dissection), _overhead(dissection)]
            ),
            Section("Layers", [_layers(dissection), _validity(dissection)]),
        ],
    )


def _scores(dissection: Dissection) -> Table:
    columns = (
        Column("Score"),
        Column("AUC", "score"),
        Column("95 % interval", "interval", interval_of="score"),
        Column("Over max softmax", "score"),
        Column("Its interval", "interval", interval_of="score"),
    )
    rows: list[Row] = []
    for score in dissection.scores:
        gain = score.gain
        rows.append(
            (score.name, score.auc.value, score.auc.interval,
             gain.value if gain else None, gain.interval if gain else None)
        )  # fmt: skip
    return Table(
        "scores",
        "How well each score tells right predictions from wrong ones",
        columns,
        tuple(rows),
        dissection.reported_on,
        "examples",
        notes=(
            "Intervals by 1,000 draws of examples with replacement; the difference by the same draws.",
        ),
    )


def _beyond(dissection: Dissection) -> Table:
    columns = (
        Column("Score"),
        Column("AUC", "score"),
        Column("95 % interval", "interval", interval_of="score"),
        Column("Rejected at its threshold", "share"),
        Column("Passed if 95 % of the test data are", "share"),
    )
    rows = tuple(
        (score.name, score.auc.value, score.auc.interval, score.rejected, score.passed)
        for score in dissection.beyond
    )
    return Table(
        "beyond",
        "How well each score tells inputs of the test data from inputs beyond the model",
        columns,
        rows,
        dissection.reported_on,
        "examples",
    )


def _recommendation(dissection: Dissection) -> str:
    what = (
        "wrong predictions and inputs beyond the model"
        if dissection.beyond
        else "wrong predictions"
    )
    return (
        f"Recommended on these data: {dissection.recommended}, which separated {what} best among the examples that "
        f"chose the thresholds. The guard uses {dissection.dissector.name}."
    )


def _curves(dissection: Dissection) -> Figure:
    shown = [
        score
        for score in dissection.scores
        if score is dissection.chosen
        or score.name == "dissector linear"
        or "dissector" not in score.name
    ]
    areas = ", ".join(
        f"{score.name} {score.auc.value:.3f}" for score in shown if score.auc.value is not None
    )
    return curves(
        "roc",
        "Right predictions accepted, for each share of wrong ones accepted with them.",
        {score.name: score.curve for score in shown},
        x="wrong predictions accepted",
        y="right predictions accepted",
        alt=f"ROC curves. Areas: {areas}.",
        diagonal=True,
    )


def _cuts(dissection: Dissection) -> Table:
    columns = (
        Column("Score"),
        Column("Threshold", "score"),
        Column("Right, rejected", "share"),
        Column("Wrong, rejected", "share"),
        Column("Accepted", "share"),
        Column("Accuracy of those", "share"),
    )
    rows = tuple(
        (score.name, score.cut.threshold, score.cut.false_rejections, score.cut.caught,
         score.cut.accepted, score.cut.accuracy)
        for score in dissection.scores
    )  # fmt: skip
    return Table(
        "thresholds",
        "What a threshold does, chosen on other examples",
        columns,
        rows,
        dissection.reported_on,
        "examples",
    )


def _overhead(dissection: Dissection) -> str:
    cost = dissection.overhead
    return (
        f"The guard costs {cost.guard_ms:.2f} ms in addition to the model's "
        f"{cost.model_ms:.2f} ms, for {cost.batch} input at a time on this machine."
    )


def _layers(dissection: Dissection) -> Table:
    columns = (
        Column("Layer", "identity"),
        Column("Features", "count"),
        Column("Accuracy of its sub-model", "share"),
        Column("Validity, model right", "score"),
        Column("Validity, model wrong", "score"),
    )
    rows = tuple(
        (
            layer.layer,
            layer.features or None,
            layer.accuracy,
            layer.validity_right,
            layer.validity_wrong,
        )
        for layer in dissection.layers
    )
    return Table(
        "layers",
        "What each layer knows, from the input to the outputs",
        columns,
        rows,
        dissection.reported_on,
        "examples",
        notes=("Validity is the mean snapshot validity of the model's final prediction.",),
    )


def _validity(dissection: Dissection) -> Figure:
    return bars(
        "validity",
        "How far the final prediction stands at each layer, where it is right and where it is wrong.",
        [layer.layer for layer in dissection.layers],
        {
            "model right": [layer.validity_right or 0.0 for layer in dissection.layers],
            "model wrong": [layer.validity_wrong or 0.0 for layer in dissection.layers],
        },
        axis="mean snapshot validity, %",
    )
