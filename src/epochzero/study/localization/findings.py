"""Findings of Jahan et al. (EMSE 2025), each with the interval that decides whether it holds for these bugs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from epochzero.locate.techniques import TECHNIQUES
from epochzero.reports.statistics import Estimate
from epochzero.reports.tables import FEW, Column, Table
from epochzero.study.analyses import Parts
from epochzero.study.comparison import compare, mean
from epochzero.study.localization.subjects import (
    DEEP_LEARNING,
    SYSTEMS,
    TRADITIONAL,
    StudyBug,
    difference,
    precisions,
    projects,
    ranked_by,
)
from epochzero.study.localization.systems import (
    BY_COMPLEXITY,
    BY_LINES,
    alike_subsets,
    sides,
    titles_beside_texts,
)

HOLDS, HOLDS_NOT, OPEN = "holds", "does not hold", "undecided"
UNTRAINED = ("buglocator", "bluir", "blia")
"""Techniques of the study that are not trained on bugs: their mean decides."""
TRAINED = tuple(name for name, method in TECHNIQUES.items() if method.training_projects)


@dataclass(frozen=True, slots=True)
class StudyFinding:
    """A finding of the study.

    Attributes:
        text: the study's statement.
        source: section or table of the study.
        measure: quantity that is positive if the finding holds.
        value: of that quantity for these bugs.
        n: numbers of bugs on both sides.
        verdict: `HOLDS` if the interval is above 0, `HOLDS_NOT` if it is below, otherwise `OPEN`.
        why: why it cannot be decided, other than an interval that contains 0.
    """

    text: str
    source: str
    measure: str
    value: Estimate
    n: tuple[int, int]
    verdict: str
    why: str = ""


def findings(
    subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int = 0
) -> list[StudyFinding]:
    """Return all findings, including those that these bugs cannot decide.

    Args:
        subjects: the bugs.
        techniques: that were measured; those of the study that are not trained on bugs decide, or all if none
            of these was measured.
        seed: of the bootstrap.
    """
    used = [name for name in UNTRAINED if name in techniques] or list(techniques)
    return [
        *_of_systems(subjects, used, seed),
        *_of_groups(subjects, used, seed),
        *_of_extrinsic(subjects, used, seed),
        _of_learning(subjects, techniques, used, seed),
    ]


def findings_table(found: Sequence[StudyFinding], subjects: Sequence[StudyBug]) -> Parts:
    """Return the closing table."""
    columns = (
        Column("The study's value"), Column("There"), Column("Above 0 where it holds"),
        Column("Bugs"), Column("Here", "score"), Column("95 %", "interval", interval_of="score"),
        Column("Verdict"),
    )  # fmt: skip
    rows = tuple(
        (finding.text, finding.source, finding.measure, " and ".join(f"{n:,}" for n in finding.n), finding.value.value,
         finding.value.interval, finding.verdict + (f": {finding.why}" if finding.why else ""))
        for finding in found
    )  # fmt: skip
    notes = (
        f"{HOLDS.capitalize()}: the interval lies above 0. {HOLDS_NOT.capitalize()}: the interval lies below 0. "
        f"{OPEN.capitalize()}: the interval contains 0, or there are too few bugs for an interval.",
        f"MAP is the mean over {', '.join(UNTRAINED)}, as far as they were measured; these techniques are not trained on bugs.",
    )
    return [
        Table(
            "findings", "Findings that hold here", columns, rows, len(subjects), "bugs", notes=notes
        )
    ]


def _finding(
    text: str, source: str, measure: str, value: Estimate, n: tuple[int, int], why: str = ""
) -> StudyFinding:
    verdict = OPEN
    if min(n) < FEW:
        why = why or f"fewer than {FEW} bugs on one side"
    elif value.interval is not None and not why:
        low, high = value.interval
        verdict = HOLDS if low > 0 else HOLDS_NOT if high < 0 else OPEN
    return StudyFinding(text, source, measure, value, n, verdict, why)


def _of_systems(subjects: Sequence[StudyBug], used: Sequence[str], seed: int) -> list[StudyFinding]:
    measure = "MAP, traditional − deep learning"
    of, unfair = sides(subjects), titles_beside_texts(subjects)
    pairs: Mapping[str, tuple[str, Mapping[str, Sequence[StudyBug]]]] = {
        "Techniques perform worse on deep-learning systems": ("Table 8", of),
        "They perform worse among files of similar size": ("Table 10", alike_subsets(of, seed)[BY_LINES]),
        "They perform worse among files of similar complexity": ("RQ1", alike_subsets(of, seed)[BY_COMPLEXITY]),
    }  # fmt: skip
    found = []
    for text, (source, side) in pairs.items():
        gap = difference(side[TRADITIONAL], side[DEEP_LEARNING], used, seed)
        found.append(_finding(text, source, measure, gap.mean, gap.n, unfair))
    return found


def _of_groups(subjects: Sequence[StudyBug], used: Sequence[str], seed: int) -> list[StudyFinding]:
    deep = sides(subjects)[DEEP_LEARNING]
    single = [subject for subject in deep if len(subject.classes) == 1]
    labelled = [subject for subject in deep if not subject.predicted]

    def one_against_others(
        text: str,
        source: str,
        measure: str,
        own: Sequence[StudyBug],
        is_one: Callable[[StudyBug], bool],
    ) -> StudyFinding:
        others = [subject for subject in own if not is_one(subject)]
        gap = difference(others, [subject for subject in own if is_one(subject)], used, seed)
        return _finding(text, source, measure, gap.mean, gap.n)

    return [
        one_against_others("Frameworks are the hardest class of project", "Table 14",
                           "MAP, other classes − frameworks", single, lambda s: s.classes[0] == "framework"),
        one_against_others("GPU bugs are the hardest type", "Tables 22 and 28",
                           "MAP, other types − GPU", labelled, lambda s: s.kind == "gpu"),
    ]  # fmt: skip


def _of_extrinsic(
    subjects: Sequence[StudyBug], used: Sequence[str], seed: int
) -> list[StudyFinding]:
    labelled = [subject for subject in subjects if subject.extrinsic is not None]
    of = sides(labelled)
    shares = [
        [float(bool(subject.extrinsic)) for subject in of[s]] for s in (DEEP_LEARNING, TRADITIONAL)
    ]
    groups = [
        projects(of[s]) or [subject.id for subject in of[s]] for s in (DEEP_LEARNING, TRADITIONAL)
    ]
    gap = compare(shares[0], shares[1], (groups[0], groups[1]), seed=seed)
    found = [
        _finding("More bugs of deep-learning systems are extrinsic", "RQ3",
                 "share, deep learning − traditional", gap.mean, gap.n)
    ]  # fmt: skip
    gpu = [
        subject for subject in of[DEEP_LEARNING] if subject.kind == "gpu" and not subject.predicted
    ]
    above = [float(bool(subject.extrinsic)) - 0.5 for subject in gpu]
    found.append(_finding("Most GPU bugs are extrinsic", "Table 29", "share − 0.5",
                          mean(above, projects(gpu), seed=seed), (len(gpu), len(gpu))))  # fmt: skip
    for system, title in SYSTEMS.items():
        out = [subject for subject in of[system] if subject.extrinsic]
        within = [subject for subject in of[system] if not subject.extrinsic]
        gap = difference(within, out, used, seed)
        found.append(_finding(f"Extrinsic bugs are harder, {title}", "Table 30",
                              "MAP, intrinsic − extrinsic", gap.mean, gap.n))  # fmt: skip
    return found


def _training_projects(technique: str) -> Collection[str]:
    listed = TECHNIQUES[technique].training_projects
    return listed() if listed else ()


def _of_learning(
    subjects: Sequence[StudyBug], techniques: Sequence[str], used: Sequence[str], seed: int
) -> StudyFinding:
    """Compare trained techniques with the others on bugs of projects that they were not trained on."""
    trained = [name for name in TRAINED if name in techniques]
    known = {project for name in trained for project in _training_projects(name)}
    ranked = ranked_by(subjects, (*trained, *used)) if trained else []
    both = [subject for subject in ranked if subject.project.lower() not in known]
    pairs = zip(precisions(both, trained or used), precisions(both, used), strict=True)
    value = mean([own - other for own, other in pairs], projects(both), seed=seed)
    why = ""
    if len(both) < FEW <= len(ranked):
        why = f"the models were trained on other bugs of all except {len({s.project for s in both})} projects"
    return _finding("Trained techniques perform better than retrieval techniques", "Table 8",
                    f"MAP, {' and '.join(trained or TRAINED)} − the others", value, (len(both), len(both)), why)  # fmt: skip
