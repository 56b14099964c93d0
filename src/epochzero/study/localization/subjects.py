"""The bugs of a study with their groups, and the measures of a group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from epochzero.locate.bug_kind import TYPES
from epochzero.reports.statistics import Estimate
from epochzero.reports.tables import FEW
from epochzero.study.comparison import Difference, compare, mean
from epochzero.study.localization.measuring import Measured
from epochzero.study.localization.ranks import TOPS, Ranked

DEEP_LEARNING, TRADITIONAL = "deep_learning", "traditional"
SYSTEMS: Mapping[str, str] = {DEEP_LEARNING: "deep learning", TRADITIONAL: "traditional"}
"""The two kinds of systems with their titles."""
FEW_BUGS = 30
"""A cell with fewer bugs is marked."""


@dataclass(frozen=True, slots=True)
class StudyBug:
    """A bug of the study.

    Attributes:
        id: of its report.
        project: ``owner+name``.
        system: key of `SYSTEMS`.
        classes: of its project.
        kind: its type, of `epochzero.locate.bug_kind.TYPES`.
        predicted: whether its type is predicted rather than labeled.
        extrinsic: its label; None if there is none.
        described: whether its report has more than a title.
        lines, complexity: of the files of its fix, as in `Facts`.
        ranks: by technique.
    """

    id: str
    project: str
    system: str
    classes: tuple[str, ...]
    kind: str
    predicted: bool
    extrinsic: bool | None
    described: bool
    lines: float
    complexity: float | None
    ranks: Mapping[str, Ranked]


class Scores(NamedTuple):
    """Measures of a technique on some bugs; None without bugs."""

    n: int
    tops: tuple[float | None, ...]
    reciprocal_rank: float | None
    precision: Estimate


def subjects_of(measured: Iterable[Measured], baseline: Collection[str] = ()) -> list[StudyBug]:
    """Return the bugs with their groups.

    Args:
        measured: the bugs.
        baseline: ids of bugs of traditional systems, in addition to those whose records state it in ``system``. A
            project without a class may still be a deep-learning project, as many of Denchmark's are.
    """
    known = list(measured)
    classes: dict[str, tuple[str, ...]] = {}
    for measurement in known:
        names = measurement.bug.raw.get("project_class")
        own = (
            tuple(word for word in names if isinstance(word, str))
            if isinstance(names, list)
            else ()
        )
        classes[measurement.bug.project] = classes.get(measurement.bug.project) or own
    return [_subject(m, classes[m.bug.project], baseline) for m in known]


def _subject(measured: Measured, classes: tuple[str, ...], baseline: Collection[str]) -> StudyBug:
    stored = measured.bug.raw.get("label")
    label = stored if isinstance(stored, Mapping) else {}
    is_traditional = (
        measured.bug.report.id in baseline or measured.bug.raw.get("system") == TRADITIONAL
    )
    kind, extrinsic = label.get("type"), label.get("extrinsic")
    return StudyBug(
        id=measured.bug.report.id,
        project=measured.bug.project,
        system=TRADITIONAL if is_traditional else DEEP_LEARNING,
        classes=classes,
        kind=kind if kind in TYPES else measured.facts.kind,
        predicted=kind not in TYPES,
        extrinsic=extrinsic if isinstance(extrinsic, bool) else None,
        described=bool(measured.bug.report.text.strip()),
        lines=measured.facts.lines,
        complexity=measured.facts.complexity,
        ranks=measured.ranks,
    )


def with_technique(subjects: Iterable[StudyBug], technique: str) -> list[StudyBug]:
    """Return the bugs that a technique has ranked."""
    return [subject for subject in subjects if technique in subject.ranks]


def projects(subjects: Sequence[StudyBug]) -> list[str] | None:
    """Return the projects, if whole projects are drawn; None if there are so few that bugs are drawn."""
    found = [subject.project for subject in subjects]
    return found if len({*found}) >= FEW else None


def precisions(subjects: Iterable[StudyBug], techniques: Sequence[str]) -> list[float]:
    """Return the average precision of each bug, averaged over the techniques."""
    return [fmean(subject.ranks[name].precision for name in techniques) for subject in subjects]


def scores_of(subjects: Sequence[StudyBug], technique: str, seed: int = 0) -> Scores:
    """Return Top@k, MRR and MAP of a technique for the bugs that it has ranked."""
    known = with_technique(subjects, technique)
    ranks = [subject.ranks[technique] for subject in known]
    if not ranks:
        return Scores(0, (None,) * len(TOPS), None, Estimate(None))
    return Scores(
        len(ranks),
        tuple(fmean(rank.within(top) for rank in ranks) for top in TOPS),
        fmean(rank.reciprocal for rank in ranks),
        mean([rank.precision for rank in ranks], projects(known), seed=seed),
    )


def difference(
    first: Sequence[StudyBug], second: Sequence[StudyBug], techniques: Sequence[str], seed: int = 0
) -> Difference:
    """Compare the average precision of two groups of bugs.

    Args:
        first, second: the bugs; those that a technique has not ranked are excluded.
        techniques: whose mean is taken.
        seed: of the bootstrap.
    """
    sides = [ranked_by(side, techniques) for side in (first, second)]
    groups = [projects(side) for side in sides]
    a, b = (precisions(side, techniques) for side in sides)
    of = [group or [s.id for s in side] for group, side in zip(groups, sides, strict=True)]
    return compare(a, b, (of[0], of[1]), seed=seed)


def ranked_by(subjects: Iterable[StudyBug], techniques: Sequence[str]) -> list[StudyBug]:
    """Return the bugs that all these techniques have ranked."""
    return [subject for subject in subjects if all(name in subject.ranks for name in techniques)]
