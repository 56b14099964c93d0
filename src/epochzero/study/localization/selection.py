"""Which bugs a study is about, of what was read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from epochzero.study.localization.bugs import Bug, bug_of
from epochzero.study.localization.readers import Reports


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be measured.

    Attributes:
        bugs: all that can be used; those that are not asked for serve as past reports.
        asked: ids of those to measure.
        baseline: ids of those of traditional systems.
        left_out: how many cannot be used, by the reason.
    """

    bugs: tuple[Bug, ...]
    asked: frozenset[str]
    baseline: frozenset[str]
    left_out: Mapping[str, int]


def select(
    reports: Reports,
    baseline: Reports | None = None,
    *,
    sample: int | None = None,
    titles_only: bool = False,
    seed: int = 0,
) -> Selection:
    """The bugs of reports, and of those of traditional systems.

    Args:
        reports: of deep-learning systems, but for those whose records say otherwise.
        baseline: of traditional systems.
        sample: measure so many of each file at most, drawn at random.
        titles_only: forget descriptions, for reports of which one file has none.
        seed: of the draw.
    """
    left_out: Counter[str] = Counter()
    found: dict[str, Bug] = {}
    asked: set[str] = set()
    of_file: list[list[str]] = []
    for file in (reports, baseline) if baseline else (reports,):
        left_out.update(file.left_out)
        own = []
        for record in file.records:
            bug = bug_of({**record, "description": ""} if titles_only else record)
            if isinstance(bug, str):
                left_out[bug] += 1
            elif bug.report.id in found:
                left_out["its id came before"] += 1
            else:
                found[bug.report.id] = replace(bug, raw=record)
                own.append(bug.report.id)
        few = sample is None or sample >= len(own)
        asked.update(own if few else random.Random(seed).sample(own, sample or 0))
        of_file.append(own)
    return Selection(
        tuple(found.values()),
        frozenset(asked),
        frozenset(of_file[1] if baseline else ()),
        dict(left_out),
    )
