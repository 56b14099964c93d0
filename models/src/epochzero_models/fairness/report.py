"""The report of a fairness measurement, and its files of instances."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from epochzero.errors import InputError, writing
from epochzero.reports.figures import Figure, curves
from epochzero.reports.page import Part, ReportPage, Section
from epochzero.reports.tables import Column, Row, Table
from epochzero_models.fairness.groups import RATES
from epochzero_models.fairness.measurement import DiscriminatoryPair, Fairness
from epochzero_models.fairness.search_plan import EXHAUSTIVE
from epochzero_models.fairness.table import PeopleTable

_INTERVAL = Column("95 % interval", "interval")


def described(example: DiscriminatoryPair) -> str:
    """Return what both variants share, and their classes."""

    def listed(values: Mapping[str, str]) -> str:
        return ", ".join(f"{name} {value}" for name, value in values.items())

    return (
        f"{listed(example.variant)} → {example.output}, {listed(example.other)} → {example.other_output}; "
        f"both: {listed(example.shared)}"
    )


def remark(fairness: Fairness) -> str:
    """Return a remark about the relation of the searches' results; empty if none is necessary."""
    best = max(fairness.searches, key=lambda search: search.found)
    if best.search == EXHAUSTIVE:
        return "The exhaustive search checks each input once: what it finds is all there is."
    if best.search != "random" or not best.found:
        return ""
    share = 100 * (fairness.discriminated.value or 0)
    return (
        f"Random search found the most: {share:.1f} % of the inputs are discriminated, so that chance meets them "
        "often, and a walk comes back to what it knows."
    )


def fairness_report(fairness: Fairness) -> ReportPage:
    """Report the extent of discrimination, the results of the searches, its drivers, and the effect of retraining.

    Raises:
        InputError: matplotlib is not installed.
    """
    share = 100 * (fairness.discriminated.value or 0)
    lead = (
        f"{fairness.model} judges {share:.1f} % of inputs drawn from the domain otherwise when only "
        f"{' or '.join(fairness.protected)} differs."
    )
    sections = [
        Section("How much", [_shares(fairness)]),
        Section("Groups", list(_groups(fairness))),
        Section("Searches", [_searches(fairness), *_courses(fairness)]),
        Section("What drives it", list(_drivers(fairness))),
        Section("Examples", [f"{described(example)}." for example in fairness.examples]),
        Section("Left out", [f"{what}: {why}" for what, why in fairness.left_out.items()]),
    ]
    return ReportPage(
        f"Fairness on {fairness.data}", lead, [section for section in sections if section.parts]
    )


def write_instances(fairness: Fairness, people: PeopleTable, folder: Path) -> None:
    """Write ``instances.csv``: one instance per row, with the protected attributes of both variants.

    Raises:
        InputError: it cannot be written.
    """
    domain = people.domain
    names = [attribute.name for attribute in domain.attributes]
    head = [
        "search",
        *names,
        *(f"other {text}" for text in fairness.protected),
        "output",
        "other output",
    ]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "instances.csv").open(
            "w", encoding="utf-8", newline="", errors="replace"
        ) as file:
            writer = csv.writer(file)
            writer.writerow(head)
            for search, found in fairness.instances.items():
                every = zip(found.levels.tolist(), found.partners.tolist(), found.outputs.tolist(),
                            found.others.tolist(), strict=True)  # fmt: skip
                for levels, partner, output, other in every:
                    writer.writerow((
                        search,
                        *(attribute.shown(level) for attribute, level in zip(domain.attributes, levels, strict=True)),
                        *(domain.attributes[at].shown(partner[at]) for at in domain.protected),
                        people.called(output),
                        people.called(other),
                    ))  # fmt: skip


def write_weights(fairness: Fairness, folder: Path) -> None:
    """Write the state dicts ``retrained.pt`` and ``reweighed.pt`` as far as these models exist.

    Raises:
        InputError: it cannot be written.
    """
    retrained = fairness.retrained.module if fairness.retrained is not None else None
    for name, module in (("retrained.pt", retrained), ("reweighed.pt", fairness.reweighed)):
        if module is not None:
            try:
                torch.save(module.state_dict(), folder / name)
            except (OSError, RuntimeError) as error:
                raise InputError(f"{folder / name} cannot be written: {error}") from error


def _shares(fairness: Fairness) -> Table:
    shares = {
        "discriminated, of inputs drawn from the domain": fairness.discriminated,
        "discriminated, of the rows": fairness.discriminated_rows,
        "right, of the rows": fairness.accuracy,
    }
    after = fairness.retrained
    if after is not None:
        shares |= {
            "retrained: discriminated, of the same inputs": after.discriminated,
            "before: right, of rows left out": after.accuracy_before,
            "retrained: right, of rows left out": after.accuracy,
        }
    rows: tuple[Row, ...] = tuple(
        (name, share.value, share.interval) for name, share in shares.items()
    )
    notes = ["Intervals are Wilson's."]
    if after is not None:
        notes.append(f"Retrained with {after.instances:,} instances and their variants.")
    columns = (Column("What"), Column("Share", "share"), _INTERVAL)
    return Table(
        "shares", "Discrimination and accuracy", columns, rows, fairness.rows, "rows", tuple(notes)
    )


def _groups(fairness: Fairness) -> Iterator[Part]:
    found = fairness.groups
    if found is None:
        return
    rates = tuple(RATES)
    columns = (
        Column("Attribute", "identity"), Column("Group", "identity"), Column("Rows", "count"),
        *(Column(name.capitalize(), "share") for name in rates), Column("Overconfidence", "score"),
    )  # fmt: skip
    yield Table(
        "groups",
        f"Decisions and errors by group; {found.positive!r} counts as selected",
        columns,
        tuple(
            (group.attribute, group.value, group.rows,
             *(group.rates[name].value for name in rates), group.overconfidence)
            for group in found.groups
        ),
        fairness.rows,
        "rows",
        ("Overconfidence is the mean predicted probability of that class less its share among the labels.",),
    )  # fmt: skip
    yield Table(
        "disparities",
        "Largest difference between two groups",
        (Column("Attribute", "identity"), Column("Criterion"), Column("Difference", "share"), _INTERVAL),
        tuple(
            (d.attribute, d.criterion, d.difference.value, d.difference.interval)
            for d in found.disparities
        ),
        fairness.rows,
        "rows",
        (
            "Intervals by 1,000 draws of rows with replacement. The largest of several differences is biased upwards "
            "if groups are small; groups with fewer than 10 rows are left out. If base rates differ, not all criteria can hold.",
        ),
    )  # fmt: skip
    yield Table(
        "mitigations",
        "What would make groups selected equally often",
        (Column("Attribute", "identity"), Column("Method"), Column("Thresholds"), Column("Difference before", "share"),
         Column("Difference", "share"), _INTERVAL, Column("Accuracy before", "share"), Column("Accuracy", "share")),
        tuple(
            (m.attribute, m.method, ", ".join(f"{value} {cut:.3f}" for value, cut in m.thresholds.items()),
             m.difference_before.value, m.difference.value, m.difference.interval,
             m.accuracy_before.value, m.accuracy.value)
            for m in found.mitigations
        ),
        fairness.rows,
        "rows",
        ("One half of the rows chooses the thresholds, the other half measures them. Reweighing is measured on rows left out.",),
    )  # fmt: skip


def _searches(fairness: Fairness) -> Table:
    columns = (
        Column("Search", "identity"), Column("Instances", "count"), Column("Inputs checked", "count"),
        Column("Share", "share"), Column("Seconds", "number"),
    )  # fmt: skip
    rows: tuple[Row, ...] = tuple(
        (search.search, search.found, search.checked, search.share, search.seconds)
        for search in fairness.searches
    )
    notes = [
        f"Each input is compared with all {fairness.variants} variants of its protected attributes."
    ]
    notes += [text for text in (remark(fairness),) if text]
    return Table(
        "searches",
        "Discriminatory instances, no two alike without protected attributes",
        columns,
        rows,
        sum(search.checked for search in fairness.searches),
        "inputs",
        tuple(notes),
    )


def _courses(fairness: Fairness) -> Iterator[Figure]:
    longest = max(search.seconds for search in fairness.searches)
    most = max(search.found for search in fairness.searches)
    if most and longest:
        yield curves(
            "course",
            f"Instances found as time goes on, as shares of {most:,} and of {longest:.1f} seconds.",
            {
                search.search: (
                    [seconds / longest for seconds, _ in search.course],
                    [min(1.0, found / most) for _, found in search.course],
                )
                for search in fairness.searches
            },
            x="time",
            y="instances",
            alt=", ".join(f"{search.search} {search.found:,}" for search in fairness.searches),
        )


def _drivers(fairness: Fairness) -> Iterator[Part]:
    if fairness.drivers:
        rows: tuple[Row, ...] = tuple(
            (
                driver.attribute,
                "yes" if driver.protected else "",
                driver.share.value,
                driver.share.interval,
            )
            for driver in fairness.drivers
        )
        columns = (
            Column("Attribute", "identity"), Column("Protected"), Column("Share", "share"), _INTERVAL
        )  # fmt: skip
        yield Table(
            "drivers",
            "On which attributes discrimination depends",
            columns,
            rows,
            max(search.found for search in fairness.searches),
            "instances",
            (
                "Of a protected attribute: instances where it alone brings another class. Of another: instances "
                "that are no longer discriminated when it is redrawn. Of 2,000 instances at most.",
            ),
        )
