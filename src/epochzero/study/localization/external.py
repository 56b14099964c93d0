"""Rankings by other tools, for example from coverage or from a watched training."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from epochzero.errors import reading
from epochzero.study.localization.measuring import Measured
from epochzero.study.localization.ranks import ranked_paths

Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""Paths, most suspicious first, by id of a report and then name of a technique."""


def read_rankings(path: Path) -> tuple[Rankings, Mapping[str, int]]:
    """Read the rankings of a JSON Lines file with ``id``, ``technique`` and ``files``.

    Returns:
        The rankings, and the number of unusable lines by reason.

    Raises:
        InputError: the file cannot be read.
    """
    found: defaultdict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    left_out: Counter[str] = Counter()
    with reading(path):
        lines = path.read_bytes().splitlines()
    for line in lines:
        try:
            row = json.loads(line)
            name, technique, files = str(row["id"]), str(row["technique"]), row["files"]
        except (ValueError, TypeError, KeyError, RecursionError):
            left_out["a ranking is not a JSON object with id, technique and files"] += 1
            continue
        if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
            left_out["the files of a ranking are not a list of paths"] += 1
        else:
            found[name][technique] = files
    return dict(found), dict(left_out)


def with_rankings(measured: Sequence[Measured], rankings: Rankings) -> list[Measured]:
    """Return the bugs with these rankings added to the measured ones."""
    found = []
    for measurement in measured:
        own = {
            technique: ranked_paths(files, measurement.facts.wanted)
            for technique, files in rankings.get(measurement.bug.report.id, {}).items()
        }
        found.append(replace(measurement, ranks={**measurement.ranks, **own}))
    return found
