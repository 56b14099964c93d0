"""RQ2: techniques by type of bug. RQ3: extrinsic and intrinsic bugs."""

from __future__ import annotations

from collections.abc import Sequence

from epochzero.locate.bug_kind import TYPES
from epochzero.reports.figures import Figure, bars
from epochzero.reports.statistics import wilson
from epochzero.reports.tables import Column, Row, Table
from epochzero.study.analyses import Parts
from epochzero.study.comparison import chi_square
from epochzero.study.localization.subjects import FEW_BUGS, SYSTEMS, StudyBug, difference, scores_of
from epochzero.study.localization.systems import SCORES, gap_cells, score_cells, sides
from epochzero.study.published import jahan2025

TITLES = {"model": "model", "training": "training", "tensor": "tensor and input", "api": "API",
          "gpu": "GPU", "ndl": "not deep learning"}  # fmt: skip
_STUDY = (Column("Study, MRR", "score"), Column("Study, MAP", "score"))


# Types


def types(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    """Compare the techniques on each type of bug of deep-learning systems, labeled and predicted."""
    of = next(iter(sides(subjects).values()))
    labelled = [subject for subject in of if not subject.predicted]
    predicted = [subject for subject in of if subject.predicted]
    parts: Parts = []
    if labelled:
        parts.append(
            _types("types", "Techniques by labeled type of bug", labelled, techniques, seed)
        )
        parts.append(_types_figure(labelled, techniques, seed))
    if predicted:
        parts.append("The types in the next table are predictions from the reports by EpochZero, which are "
                     "less reliable than labels. The classifier was trained on labels of Denchmark's bugs.")  # fmt: skip
        parts.append(_types("types-predicted", "Techniques by predicted type of bug", predicted, techniques, seed))  # fmt: skip
    return parts


def _types(
    name: str, caption: str, of: Sequence[StudyBug], techniques: Sequence[str], seed: int
) -> Table:
    study = jahan2025()
    rows: list[Row] = []
    for kind in TYPES:
        own = [subject for subject in of if subject.kind == kind]
        for technique in techniques:
            published = study.types[kind].get(technique, (None, None))
            rows.append(
                (TITLES[kind], technique, *score_cells(scores_of(own, technique, seed)), *published)
            )
    return Table(name, caption, (Column("Type"), Column("Technique"), *SCORES, *_STUDY), tuple(rows), len(of),
                 "bugs", notes=(f"Study: {study.short}, Tables 22 and 28.", *study.footnotes["types"]),
                 few=FEW_BUGS)  # fmt: skip


def _types_figure(labelled: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Figure:
    best = techniques[0]
    own = [[subject for subject in labelled if subject.kind == kind] for kind in TYPES]
    found = [scores_of(side, best, seed).precision for side in own]
    labels = [f"{TITLES[kind]} (n = {len(side)})" for kind, side in zip(TYPES, own, strict=True)]
    return bars("types-figure", f"MAP of {best} by labeled type of bug, with 95 % intervals", labels,
                {best: [estimate.value or 0 for estimate in found]}, axis="MAP", percent=False,
                intervals={best: [estimate.interval for estimate in found]})  # fmt: skip


# Extrinsic and intrinsic


def extrinsic(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    """Report the shares of extrinsic bugs by system and type, and each technique's loss on them."""
    labelled = [subject for subject in subjects if subject.extrinsic is not None]
    if not labelled:
        return []
    return [
        *_shares(labelled),
        *_by_type([subject for subject in labelled if not subject.predicted]),
        _compared(labelled, techniques, seed),
    ]


def counts_of(subjects: Sequence[StudyBug]) -> tuple[int, int]:
    """Return the numbers of extrinsic and intrinsic bugs among the labeled ones."""
    labels = [subject.extrinsic for subject in subjects if subject.extrinsic is not None]
    return sum(labels), len(labels) - sum(labels)


def _shares(labelled: Sequence[StudyBug]) -> Parts:
    study, counts = jahan2025(), {s: counts_of(own) for s, own in sides(labelled).items()}
    rows: list[Row] = [
        (SYSTEMS[s], out + own, out, out / (out + own) if out + own else None, wilson(out, out + own),
         study.extrinsic_share[s])
        for s, (out, own) in counts.items()
    ]  # fmt: skip
    found = chi_square(list(counts.values()))
    tested = (
        f"Chi-square with Yates's correction: {found.statistic:.2f}, p = {found.p:.3g}."
        if found
        else "No chi-square test: it requires labels of both systems and bugs of both kinds."
    )
    columns = (
        Column("System"), Column("Labelled", "count"), Column("Extrinsic", "count"),
        Column("%", "share", cases="Labelled"), Column("95 %", "interval", cases="Labelled"),
        Column("Study, %", "share"),
    )  # fmt: skip
    notes = (tested, f"Study: {study.short}, RQ3.", *study.footnotes["extrinsic_share"])
    return [Table("extrinsic", "Extrinsic bugs by kind of system", columns, tuple(rows), len(labelled),
                  "labelled bugs", notes=notes, few=FEW_BUGS)]  # fmt: skip


def _by_type(labelled: Sequence[StudyBug]) -> Parts:
    if not labelled:
        return []
    study = jahan2025()
    counts = {
        kind: counts_of([subject for subject in labelled if subject.kind == kind]) for kind in TYPES
    }
    rows: list[Row] = [
        (TITLES[kind], out + own, out, out / (out + own) if out + own else None, wilson(out, out + own),
         study.extrinsic_by_type[kind])
        for kind, (out, own) in counts.items()
    ]  # fmt: skip
    found = chi_square([pair for pair in counts.values() if sum(pair)])
    tested = (f"Chi-square: {found.statistic:.2f}, p = {found.p:.3g}.",) if found else ()
    columns = (
        Column("Type"), Column("Labelled", "count"), Column("Extrinsic", "count"),
        Column("%", "share", cases="Labelled"), Column("95 %", "interval", cases="Labelled"),
        Column("Study, %", "share"),
    )  # fmt: skip
    notes = (*tested, f"Study: {study.short}, Table 29.", *study.footnotes["extrinsic_by_type"])
    return [Table("extrinsic-types", "Extrinsic bugs by labeled type", columns, tuple(rows), len(labelled),
                  "labelled bugs", notes=notes, few=FEW_BUGS)]  # fmt: skip


def _compared(labelled: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Table:
    study = jahan2025()
    rows: list[Row] = []
    for system, own in sides(labelled).items():
        out = [subject for subject in own if subject.extrinsic]
        within = [subject for subject in own if not subject.extrinsic]
        for name in techniques:
            a, b = (scores_of(side, name, seed).precision.value for side in (out, within))
            n, m, *rest = gap_cells(difference(within, out, [name], seed))
            published = study.extrinsic[system].get(name)
            rows.append(
                (
                    SYSTEMS[system],
                    name,
                    m,
                    n,
                    a,
                    b,
                    *rest,
                    published[1] - published[0] if published else None,
                )
            )
    columns = (
        Column("System"), Column("Technique"),
        Column("Extrinsic", "count", cases="Extrinsic"), Column("Intrinsic", "count", cases="Intrinsic"),
        Column("MAP, extrinsic", "score", cases="Extrinsic"),
        Column("MAP, intrinsic", "score", cases="Intrinsic"), Column("Difference", "score"),
        Column("95 %", "interval", interval_of="score"), Column("Test"), Column("p", "p"),
        Column("Effect"), Column("Size", "score"), Column("Is"), Column("Study, difference", "score"),
    )  # fmt: skip
    notes = ("Above 0: intrinsic bugs are easier.", f"Study: {study.short}, Table 30.")
    return Table("extrinsic-techniques", "Extrinsic and intrinsic bugs by technique", columns, tuple(rows),
                 len(labelled), "labelled bugs", notes=notes, few=FEW_BUGS)  # fmt: skip
