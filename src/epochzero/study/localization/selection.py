"""Selects the bugs of a study from what was read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from epochzero.study.localization.bugs import Bug, bug_of
from epochzero.study.localization.readers import Reports


@dataclass(frozen=True, slots=True)
class BugSelection:
    """What to measure.

    Attributes:
        bugs: all usable bugs; those that are not requested serve as past reports.
        asked: ids of the bugs to measure.
        baseline: ids of bugs of traditional systems.
        left_out: number of unusable reports by reason.
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
) -> BugSelection:
    """Select the bugs of reports, and those of traditional systems.

    Args:
        reports: of deep-learning systems, unless their records state otherwise.
        baseline: of traditional systems.
        sample: largest number of bugs per file, drawn at random.
        titles_only: ignore descriptions, for comparison with files that have none.
        seed: of the sample.
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
                left_out["has the id of an earlier report"] += 1
            else:
                found[bug.report.id] = replace(bug, raw=record)
                own.append(bug.report.id)
        few = sample is None or sample >= len(own)
        asked.update(own if few else random.Random(seed).sample(own, sample or 0))
        of_file.append(own)
    return BugSelection(
        tuple(found.values()),
        frozenset(asked),
        frozenset(of_file[1] if baseline else ()),
        dict(left_out),
    )
