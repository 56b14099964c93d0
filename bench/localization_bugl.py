"""Deep-learning projects beside traditional ones: Denchmark's and BuGL's bugs, by titles alone.

BuGL (Muvva, Rao, Chimalakonda, 2020) has titles without descriptions and without the time of the
report, so that is all that is used of Denchmark's, too: no past reports, and history up to the
fix's parent, whose tree is searched. The learned ranking learns from deep-learning projects only,
never from the project in question, and from titles.

    python bench/localization_bugl.py --repos DIR
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from common import data_file, data_path, save
from localization import REPORTED, measured_of, options_of, ranks_of
from localization_data import Measured
from localization_tables import cliffs_delta, drawn_means, show, table

from epochzero.study.localization.ranks import Ranked

Ranks = Mapping[str, Sequence[Ranked]]

LEAST_MATCH = 0.5
"""Overlap of the fix that was found in the history with the files that BuGL lists."""
SIDES = ("deep learning", "traditional")


def main() -> None:
    """Measures, prints the tables and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser, "localization_bugl")
    bugl = data_file("bugl/reports.jsonl.gz")
    matched = [raw for raw in bugl.records if raw["match"] >= LEAST_MATCH]
    described = [options.data.described(), bugl.described()]
    options.data.records = [_title_only(raw) for raw in (*options.data.records, *matched)]
    options.kept = options.kept / "titles"
    options.kept.mkdir(exist_ok=True)
    measured, _ = measured_of(options)
    traditional = {raw["project"].lower() for raw in matched}
    bugs = {
        SIDES[0]: [m for m in measured if m.example.project.lower() in REPORTED],
        SIDES[1]: [m for m in measured if m.example.project.lower() in traditional],
    }
    learned_from = [m for m in measured if m.example.project.lower() not in traditional]
    ranks = _ranks(options.methods, learned_from, bugs)
    tables = {
        side: {name: table(found) for name, found in of.items()} for side, of in ranks.items()
    }
    for side in SIDES:
        show(side, tables[side])
    save(
        options.out,
        {
            "bugs": {side: _described(found) for side, found in bugs.items()},
            "tables": tables,
            "gap": _gaps(ranks, bugs),
            "published": json.loads(data_path("jahan2025/published.json").read_bytes())["table8"],
        },
        data=described,
    )


def _title_only(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "description": "", "opened": None, "closed": None}


def _ranks(
    methods: Sequence[str], learned_from: Sequence[Measured], bugs: Mapping[str, Sequence[Measured]]
) -> Mapping[str, Ranks]:
    """The ranks of both sides; those of the learned ranking from the same models."""
    asked = [m for side in SIDES for m in bugs[side]]
    found = ranks_of(methods, learned_from, asked)
    first = len(bugs[SIDES[0]])
    return {
        SIDES[0]: {name: ranks[:first] for name, ranks in found.items()},
        SIDES[1]: {name: ranks[first:] for name, ranks in found.items()},
    }


def _described(found: Sequence[Measured]) -> Mapping[str, object]:
    return {
        "bugs": len(found),
        "projects": sorted({m.example.project for m in found}),
        "files_searched_median": statistics.median(len(m.example.table) for m in found),
        "files_wanted_mean": round(statistics.fmean(len(m.example.wanted) for m in found), 2),
        "one_file_wanted": round(statistics.fmean(len(m.example.wanted) == 1 for m in found), 3),
        "names_a_wanted_file": round(statistics.fmean(m.localized for m in found), 3),
    }


# -- The gap -------------------------------------------------------------------------------------


def _gaps(
    ranks: Mapping[str, Ranks], bugs: Mapping[str, Sequence[Measured]]
) -> Mapping[str, Mapping[str, object]]:
    """MAP of traditional projects less that of deep learning, by method.

    The 95 % interval is that of a bootstrap which draws whole projects on both sides.
    """
    projects = {side: [m.example.project for m in found] for side, found in bugs.items()}
    rows: dict[str, Mapping[str, object]] = {}
    for name in ranks[SIDES[0]]:
        deep, other = (np.array([rank.precision for rank in ranks[s][name]]) for s in SIDES)
        drawn = drawn_means(other, projects[SIDES[1]]) - drawn_means(deep, projects[SIDES[0]])
        rows[name] = {
            "map": round(float(other.mean() - deep.mean()), 4),
            "interval": [round(float(edge), 4) for edge in np.quantile(drawn, (0.025, 0.975))],
            "cliffs_delta": round(cliffs_delta(other, deep), 3),
        }
        print(f"gap {name:14s}" + "  ".join(f"{key} {value}" for key, value in rows[name].items()))
    return rows


if __name__ == "__main__":
    main()
