"""Pairs of techniques compared bug by bug, with paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from epochzero.reports.tables import Column, Row, Table
from epochzero.study.analyses import Parts
from epochzero.study.comparison import PairedDifference, compare_pairs, holm
from epochzero.study.localization.subjects import (
    FEW_BUGS,
    StudyBug,
    precisions,
    projects,
    ranked_by,
)


def pairs(subjects: Sequence[StudyBug], techniques: Sequence[str], seed: int) -> Parts:
    """Compare the average precision of every two techniques on the bugs that both have ranked."""
    compared: list[tuple[str, str, PairedDifference]] = []
    for first, second in combinations(techniques, 2):
        both = ranked_by(subjects, (first, second))
        if both:
            own, other = (precisions(both, [name]) for name in (first, second))
            found = compare_pairs(own, other, projects(both), seed=seed)
            compared.append((first, second, found))
    if not compared:
        return []
    adjusted = holm([found.p for _, _, found in compared])
    rows: list[Row] = [
        (first, second, found.n, found.mean.value, found.mean.interval, found.p, p,
         found.size, found.word or None)
        for (first, second, found), p in zip(compared, adjusted, strict=True)
    ]  # fmt: skip
    columns = (
        Column("Technique"), Column("Compared with"), Column("Bugs", "count"),
        Column("Difference of MAP", "score", cases="Bugs"),
        Column("95 %", "interval", interval_of="score", cases="Bugs"),
        Column("p", "p", cases="Bugs"), Column("p, Holm", "p", cases="Bugs"),
        Column("Rank-biserial correlation", "score", cases="Bugs"), Column("Effect"),
    )  # fmt: skip
    notes = (
        "Wilcoxon's signed-rank test on the average precision of each bug; p is also adjusted for the number of pairs "
        "(Holm 1979). A positive difference means that the first technique is better.",
    )
    return [Table("pairs", "Techniques compared on the same bugs", columns, tuple(rows),
                  len(subjects), "bugs", notes=notes, few=FEW_BUGS)]  # fmt: skip
