"""RQ1: techniques on deep-learning and traditional systems, on project classes, and on similar files."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

import numpy as np

from epochzero.reports.figures import Point, bars, forest
from epochzero.reports.tables import Cell, Column, Row, Table
from epochzero.study.analyses import Parts
from epochzero.study.comparison import Difference, compare
from epochzero.study.localization.subjects import (
    DEEP_LEARNING,
    FEW_BUGS,
    SYSTEMS,
    TRADITIONAL,
    Scores,
    StudyBug,
    difference,
    projects,
    scores_of,
)
from epochzero.study.published import jahan2025

PUBLISHED_LINES = (170, 284)
"""Lines of the files of the study's size-matched subset (its Table 10)."""
BOUNDED = f"{PUBLISHED_LINES[0]} to {PUBLISHED_LINES[1]} lines"
BY_LINES, BY_COMPLEXITY = "matched by lines", "matched by complexity"
STRATA = 5
"""Number of quantile groups in which files are matched."""
SCORES = (
    Column("Bugs", "count", cases="Bugs"),
    Column("Top@1", "share", cases="Bugs"), Column("Top@5", "share", cases="Bugs"),
    Column("Top@10", "share", cases="Bugs"),
    Column("MRR", "score", cases="Bugs"), Column("MAP", "score", cases="Bugs"),
    Column("MAP, 95 %", "interval", cases="Bugs", interval_of="score"),
)  # fmt: skip
_GAP = (
    Column("Deep learning", "count", cases="Deep learning"),
    Column("Traditional", "count", cases="Traditional"),
    Column("Difference", "score"),
    Column("95 %", "interval", interval_of="score"),
    Column("Test"), Column("p", "p"), Column("Effect"), Column("Size", "score"), Column("Is"),
)  # fmt: skip


def score_cells(scores: Scores) -> Row:
    """Return the cells of `SCORES`."""
    value = scores.precision
    return (scores.n, *scores.tops, scores.reciprocal_rank, value.value, value.interval)


def gap_cells(found: Difference) -> Row:
    """Return both numbers of bugs, the difference of MAP with its interval, the test and the effect."""
    return (
        *found.n, found.mean.value, found.mean.interval, found.test or None, found.p,
        found.effect or None, found.size, found.word or None,
    )  # fmt: skip


def sides(subjects: Sequence[StudyBug]) -> dict[str, list[StudyBug]]:
    """Return the bugs of each system."""
    return {
        system: [subject for subject in subjects if subject.system == system] for system in SYSTEMS
    }


def titles_beside_texts(subjects: Sequence[StudyBug]) -> str:
    """Return a warning if most reports of one system are only titles and those of the other are not."""
    shares = [fmean(s.described for s in own) for own in sides(subjects).values() if own]
    if len(shares) == len(SYSTEMS) and min(shares) < 0.5 <= max(shares):
        return "most reports of one side have only a title; measure both with --titles-only"
    return ""


# Systems


def systems(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    """Compare the techniques on each kind of system, and the systems with each other."""
    study, of = jahan2025(), sides(subjects)
    rows: list[Row] = []
    found: dict[str, list[Scores]] = {system: [] for system in SYSTEMS}
    for technique in techniques:
        for system, title in SYSTEMS.items():
            scores = scores_of(of[system], technique, seed)
            found[system].append(scores)
            published = study.systems[system].get(technique)
            if scores.n or published:
                rows.append(
                    (
                        technique,
                        title,
                        *score_cells(scores),
                        *(published[3:] if published else (None, None)),
                    )
                )
    columns = (Column("Technique"), Column("System"), *SCORES, Column("Study, MRR", "score"), Column("Study, MAP", "score"))  # fmt: skip
    table = Table("systems", "Techniques by kind of system", columns, tuple(rows), len(subjects), "bugs",
                  notes=(f"Study: {study.short}, Table 8.", *study.footnotes["systems"]), few=FEW_BUGS)  # fmt: skip
    known = [system for system in SYSTEMS if of[system]]
    precisions = {f"{SYSTEMS[s]} (n = {len(of[s]):,})": [of_technique.precision for of_technique in found[s]] for s in known}  # fmt: skip
    values = {
        system: [precision.value or 0 for precision in row] for system, row in precisions.items()
    }
    intervals = {
        system: [precision.interval for precision in row] for system, row in precisions.items()
    }
    drawn = bars("systems-figure", "MAP of each technique by kind of system, with 95 % intervals",
                 techniques, values, axis="MAP", percent=False, intervals=intervals)  # fmt: skip
    return [table, drawn, *_gaps(subjects, techniques, seed)] if len(known) > 1 else [table, drawn]


def _warning(subjects: Sequence[StudyBug]) -> tuple[str, ...]:
    unfair = titles_beside_texts(subjects)
    return (f"Not comparable: {unfair}.",) if unfair else ()


def _gaps(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    study, of = jahan2025(), sides(subjects)
    gaps = {
        name: difference(of[TRADITIONAL], of[DEEP_LEARNING], [name], seed) for name in techniques
    }
    rows = tuple(
        (name, *_swapped(gap), _published_gap(name), study.effects.get(name))
        for name, gap in gaps.items()
    )
    columns = (Column("Technique"), *_GAP, Column("Study, difference", "score"), Column("Study, Cohen's d", "score"))  # fmt: skip
    table = Table(
        "gaps", "MAP on traditional systems minus MAP on deep-learning systems", columns, rows,
        len(subjects), "bugs", few=FEW_BUGS,
        notes=(*_warning(subjects), "Above 0: traditional systems are easier. The test treats bugs as independent, as in the "
               "study; the interval draws whole projects if there are ten or more, because bugs of one project are similar.",),
    )  # fmt: skip
    ours = [
        None if (e := gap.mean).value is None else (e.value, e.interval) for gap in gaps.values()
    ]
    theirs = [None if (value := _published_gap(name)) is None else (value, None) for name in gaps]
    points: Mapping[str, Sequence[Point | None]] = {"here": ours, "study": theirs}
    drawn = forest("gaps-figure", "How much easier traditional systems are, with 95 % intervals",
                   techniques, points, axis="difference of MAP, traditional − deep learning")  # fmt: skip
    return [table, drawn]


def _swapped(gap: Difference) -> Row:
    """Return the cells with the deep-learning systems' number first."""
    first, second, *rest = gap_cells(gap)
    return (second, first, *rest)


def _published_gap(technique: str) -> float | None:
    published = [
        jahan2025().systems[system].get(technique) for system in (TRADITIONAL, DEEP_LEARNING)
    ]
    return published[0][4] - published[1][4] if published[0] and published[1] else None


# Project classes


def classes(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    """Compare the techniques on each class of project; projects of several classes are excluded."""
    known = [subject for subject in subjects if subject.classes]
    single = [subject for subject in known if len(subject.classes) == 1]
    if not single:
        return []
    study = jahan2025()
    rows: list[Row] = []
    for word in sorted({subject.classes[0] for subject in single}):
        own = [subject for subject in single if subject.classes[0] == word]
        for technique in techniques:
            published = study.classes.get(word, {}).get(technique, (None, None))
            rows.append(
                (word, technique, *score_cells(scores_of(own, technique, seed)), *published)
            )
    columns = (Column("Class"), Column("Technique"), *SCORES, Column("Study, MRR", "score"), Column("Study, MAP", "score"))  # fmt: skip
    notes = (
        f"Study: {study.short}, Table 14.",
        f"{len(known) - len(single):,} bugs of projects with more than one class are excluded, as in the study.",
    )
    return [Table("classes", "Techniques by class of project", columns, tuple(rows), len(single), "bugs",
                  notes=notes, few=FEW_BUGS)]  # fmt: skip


# Similar files


def alike(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    """Compare the systems on files of similar size, and of similar complexity."""
    of = sides(subjects)
    if not all(of.values()):
        return []
    return [_files(of, seed), *_controlled(of, techniques, seed)]


def _files(of: Mapping[str, list[StudyBug]], seed: int) -> Table:
    rows: list[Row] = []
    for title, value in (("lines of code", _lines), ("mean cyclomatic complexity", _complexity)):
        own = {
            s: [subject for subject in side if value(subject) is not None] for s, side in of.items()
        }
        by_system = {s: [value(subject) or 0.0 for subject in side] for s, side in own.items()}
        groups = [projects(side) or [subject.id for subject in side] for side in own.values()]
        found = compare(
            by_system[DEEP_LEARNING], by_system[TRADITIONAL], (groups[0], groups[1]), seed=seed
        )
        middle: list[Cell] = [median(by_system[s]) if by_system[s] else None for s in SYSTEMS]
        rows.append((title, *found.n, *middle, found.test or None, found.p, found.effect or None, found.size, found.word or None))  # fmt: skip
    columns = (
        Column("Of the files of a fix"), _GAP[0], _GAP[1],
        Column("Median, deep learning", "number", cases="Deep learning"),
        Column("Median, traditional", "number", cases="Traditional"), *_GAP[4:],
    )  # fmt: skip
    note = "The study found no difference in complexity: cyclomatic 9.5 and 8.72, p = 0.15; it counts complexity differently."
    return Table("files", "Size and complexity of the files with the bug", columns, tuple(rows),
                 sum(map(len, of.values())), "bugs", notes=(note,), few=FEW_BUGS)  # fmt: skip


def _controlled(of: Mapping[str, list[StudyBug]], techniques: Sequence[str], seed: int) -> Parts:
    subsets = alike_subsets(of, seed)
    rows: list[Row] = []
    for title, subset in subsets.items():
        for name in techniques:
            gap = difference(subset[TRADITIONAL], subset[DEEP_LEARNING], [name], seed)
            published = jahan2025().size_matched.get(name) if title == BOUNDED else None
            rows.append(
                (title, name, *_swapped(gap), published[1] - published[0] if published else None)
            )
    columns = (Column("Files"), Column("Technique"), *_GAP, Column("Study, difference", "score"))
    notes = (
        f"Study: {jahan2025().short}, Table 10.",
        f"Matched: within each of {STRATA} groups of equal size, equal numbers of bugs of both systems are drawn at random.",
    )
    distinct = {s.id for subset in subsets.values() for side in subset.values() for s in side}
    return [Table("controlled", "Difference of MAP among similar files", columns, tuple(rows),
                  len(distinct), "bugs in the subsets, which overlap", notes=notes, few=FEW_BUGS)]  # fmt: skip


def alike_subsets(
    of: Mapping[str, list[StudyBug]], seed: int
) -> Mapping[str, Mapping[str, list[StudyBug]]]:
    """Return the bugs of each system within the published sizes, matched by lines, and by complexity."""
    low, high = PUBLISHED_LINES
    return {
        BOUNDED: {
            s: [subject for subject in side if low <= subject.lines <= high]
            for s, side in of.items()
        },
        BY_LINES: _matched(of, _lines, seed),
        BY_COMPLEXITY: _matched(of, _complexity, seed),
    }


def _matched(
    of: Mapping[str, list[StudyBug]], value: Callable[[StudyBug], float | None], seed: int
) -> dict[str, list[StudyBug]]:
    """Return equal numbers of bugs of both systems in each group of values.

    Args:
        of: the bugs of each system.
        value: quantity that is matched; bugs without it are excluded.
        seed: of the draw.
    """
    known = {
        s: [(v, subject) for subject in side if (v := value(subject)) is not None]
        for s, side in of.items()
    }
    every = [v for side in known.values() for v, _ in side]
    if not every:
        return {system: [] for system in of}
    edges = np.quantile(every, np.linspace(0, 1, STRATA + 1)[1:-1])
    draw = random.Random(seed)
    found: dict[str, list[StudyBug]] = {system: [] for system in of}
    for part in range(STRATA):
        own = {
            system: [
                subject for v, subject in side if int(np.searchsorted(edges, v, "left")) == part
            ]
            for system, side in known.items()
        }
        count = min(map(len, own.values()))
        for system, side in own.items():
            found[system] += draw.sample(side, count)
    return found


def _lines(subject: StudyBug) -> float:
    return subject.lines


def _complexity(subject: StudyBug) -> float | None:
    return subject.complexity
