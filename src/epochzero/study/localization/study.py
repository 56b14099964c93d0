"""The study of localization: from bugs with their ranks to the report.

The questions are those of Jahan et al., "Towards Understanding the Challenges of Bug Localization in
Deep Learning Systems" (EMSE 2025). The section "Data" names what the bugs lack; the analyses that need it are
omitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from epochzero.locate.ranker import LEARNED
from epochzero.reports.figures import require_matplotlib
from epochzero.reports.page import ReportPage, Section, StudyResult
from epochzero.reports.tables import Column, Row, Table
from epochzero.study.analyses import Parts
from epochzero.study.comparison import require_scipy
from epochzero.study.localization.findings import TRAINED, StudyFinding, findings, findings_table
from epochzero.study.localization.kinds import counts_of, extrinsic, types
from epochzero.study.localization.pairs import pairs
from epochzero.study.localization.subjects import (
    FEW_BUGS,
    SYSTEMS,
    StudyBug,
    projects,
    scores_of,
    with_technique,
)
from epochzero.study.localization.systems import SCORES, alike, classes, score_cells, sides, systems
from epochzero.study.published import jahan2025

SCHEMA = "epochzero.study.localization/2"
LEARNED_HERE = (LEARNED, *TRAINED)
"""Techniques whose models come with the package."""
_WITHOUT = {
    "Pairs of techniques": "no bug was ranked by two techniques",
    "Project classes": "no bug names a single class for its project (project_class)",
    "Files that are alike": "all bugs are of one kind of system",
    "Types of bugs": "no bug is of a deep-learning system",
    "Extrinsic bugs": "no bug is labeled extrinsic or intrinsic (label.extrinsic)",
    "Spectrum and dynamic techniques": (
        "no rankings were passed; run such a technique on each bug, for coverage with "
        "`epochzero locate --coverage FILE --format json`, and pass all results with --rankings"
    ),
}


def study_localization(
    subjects: Sequence[StudyBug],
    techniques: Sequence[str],
    left_out: Mapping[str, int],
    *,
    external: Sequence[str] = (),
    source: str = "bug reports",
    seed: int = 0,
) -> StudyResult:
    """Compare techniques over kinds of systems, projects and bugs.

    Args:
        subjects: the bugs with their ranks.
        techniques: those that ranked every bug.
        left_out: number of excluded bugs by reason.
        external: techniques whose rankings were made elsewhere, for some of the bugs.
        source: of the bugs, for the title.
        seed: of the bootstrap and of matching.

    Raises:
        InputError: matplotlib or SciPy is not installed.
    """
    require_matplotlib()
    require_scipy()
    analyses: dict[str, Parts] = {}
    if subjects:
        analyses = {
            "Kinds of systems": systems(subjects, techniques, seed),
            "Pairs of techniques": pairs(subjects, techniques, seed),
            "Project classes": classes(subjects, techniques, seed),
            "Files that are alike": alike(subjects, techniques, seed),
            "Types of bugs": types(subjects, techniques, seed),
            "Extrinsic bugs": extrinsic(subjects, techniques, seed),
            "Spectrum and dynamic techniques": _external(subjects, techniques, external, seed),
        }
    missing = {title: _WITHOUT[title] for title, parts in analyses.items() if not parts}
    found = findings(subjects, techniques, seed) if subjects else []
    sections = [Section(title, parts) for title, parts in analyses.items() if parts]
    if found:
        sections.append(
            Section("Which findings of the study hold", findings_table(found, subjects))
        )
    sections.append(_data(subjects, left_out, missing))
    report = ReportPage(f"Localization of {source}", _lead(subjects, found), sections)
    summary = _summary(subjects, (*techniques, *external), left_out, missing, found, seed)
    return StudyResult(report, summary)


def _lead(subjects: Sequence[StudyBug], found: Sequence[StudyFinding]) -> str:
    if not subjects:
        return "No bug could be localized; the reasons are below."
    counts = ", ".join(
        f"{len(own):,} of {SYSTEMS[system]} systems" for system, own in sides(subjects).items()
    )
    verdicts = [finding.verdict for finding in found]
    by_verdict = "; ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
    return (
        f"{len(subjects):,} bugs of {len({s.project for s in subjects})} projects: {counts}. Of "
        f"{len(found)} findings of {jahan2025().short}: {by_verdict}. The numbers of that study are shown next to these."
    )


def _external(
    subjects: Sequence[StudyBug], techniques: Sequence[str], external: Sequence[str], seed: int
) -> Parts:
    """Compare each external technique with the others on the same bugs."""
    rows: list[Row] = []
    for name in external:
        own = with_technique(subjects, name)
        for technique in (name, *techniques) if own else ():
            rows.append(
                (f"ranked by {name}", technique, *score_cells(scores_of(own, technique, seed)))
            )
    if not rows:
        return []
    n = len({subject.id for name in external for subject in with_technique(subjects, name)})
    return [Table("external", "External techniques, and the others on the same bugs",
                  (Column("Bugs that are"), Column("Technique"), *SCORES), tuple(rows), n, "bugs", few=FEW_BUGS)]  # fmt: skip


def _data(
    subjects: Sequence[StudyBug], left_out: Mapping[str, int], missing: Mapping[str, str]
) -> Section:
    rows: list[Row] = [(f"Left out: {why}", n) for why, n in sorted(left_out.items(), key=lambda p: -p[1])]  # fmt: skip
    rows += [(f"Studied, {SYSTEMS[system]}", len(own)) for system, own in sides(subjects).items()]
    total = len(subjects) + sum(left_out.values())
    table = Table("data", "What was read", (Column("Bugs"), Column("No.", "count")), tuple(rows), total, "bugs")  # fmt: skip
    return Section("Data", [
        table,
        *(f"“{title}” is left out: {why}." for title, why in missing.items()),
        "Each bug is localized among the Python files that are not tests, without information that became known only "
        "after its report was opened. Average precision is the mean over all files of the fix; MRR and "
        f"Top@k count the first. Intervals are 95 % bootstrap intervals; they resample {_drawn(subjects)}.",
        f"The models of {', '.join(LEARNED_HERE)} are included in the package and were trained on bugs of "
        "Denchmark's projects; on those bugs their numbers are too high.",
    ])  # fmt: skip


def _drawn(subjects: Sequence[StudyBug]) -> str:
    """Return what the bootstrap draws: it depends on the number of projects of each group."""
    kinds = {projects(own) is not None for own in sides(subjects).values() if own}
    if kinds == {True}:
        return "whole projects; in groups with fewer than ten projects, bugs"
    return (
        "bugs, because there are fewer than ten projects"
        if kinds == {False}
        else ("whole projects in groups with ten projects or more, bugs in the others")
    )


def _summary(
    subjects: Sequence[StudyBug],
    techniques: Sequence[str],
    left_out: Mapping[str, int],
    missing: Mapping[str, str],
    found: Sequence[StudyFinding],
    seed: int,
) -> dict[str, Any]:
    out, within = counts_of(subjects)
    return {
        "schema": SCHEMA,
        "bugs": len(subjects),
        "projects": len({subject.project for subject in subjects}),
        "left_out": dict(left_out),
        "techniques": {
            name: {system: _scores(own, name, seed) for system, own in sides(subjects).items()}
            for name in techniques
        },
        "extrinsic": {"extrinsic": out, "intrinsic": within},
        "findings": [
            {"text": finding.text, "source": finding.source, "measure": finding.measure, "bugs": finding.n,
             **asdict(finding.value), "verdict": finding.verdict, "why": finding.why}
            for finding in found
        ],
        "missing": dict(missing),
    }  # fmt: skip


def _scores(own: Sequence[StudyBug], name: str, seed: int) -> dict[str, Any]:
    found = scores_of(own, name, seed)
    return {"bugs": found.n, "mrr": found.reciprocal_rank, "map": asdict(found.precision)}
