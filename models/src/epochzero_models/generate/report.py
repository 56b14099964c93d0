"""The report of a generation."""

from __future__ import annotations

from epochzero.reports.page import Report, Section
from epochzero.reports.tables import Column, Row, Table
from epochzero_models.generate.measurement import Generation


def generation_report(generation: Generation) -> Report:
    """Return a table of all networks.

    Raises:
        InputError: matplotlib is not installed.
    """
    sections = [Section("Networks", [_networks(generation)])]
    told = f"{len(generation.networks)} networks of the feature model of FeatureNET"
    if generation.distance is not None:
        told += f", at a mean distance of {generation.distance:.3f} when they were drawn"
    return Report("Generated networks", f"{told}. After Ghamizi et al. (SPLC 2019).", sections)


def _networks(generation: Generation) -> Table:
    columns = (
        Column("Network", "identity"), Column("Parameters", "count"),
        Column("Epochs", "count"), Column("Validated", "share"), Column("Accuracy", "share"),
        Column("95 % interval", "interval"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            one.name, one.plan.parameters,
            one.score.epochs if one.score else None,
            one.score.validation if one.score else None,
            one.accuracy.value if one.accuracy else None,
            one.accuracy.interval if one.accuracy else None,
        )
        for one in generation.networks
    ]  # fmt: skip
    return Table(
        "networks", "The networks, the best on held-back examples first", columns, tuple(rows),
        generation.tested_on, "test examples",
        ("Validated is the accuracy on examples that were held back, which chose the best: it flatters.",),
    )  # fmt: skip
