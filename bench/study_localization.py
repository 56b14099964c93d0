"""What a study of localization costs, and whether its statistics are right.

Time of `epochzero study localization` in a fresh process over Denchmark's bugs in the projects of the
localization benchmark, from nothing and again from what is kept; processor time beside it, since other
processes of the machine lengthen the wall's. Statistics beside SciPy and scikit-learn, pair by pair, and
values that were published.

    python bench/study_localization.py --repos DIR --kept DIR
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from common import data_file, data_path, save
from localization import REPORTED
from scipy import stats
from sklearn import metrics

from epochzero.reports.statistics import confusion, kappa
from epochzero.study.comparison import chi_square, cliffs_delta, compare
from epochzero.study.localization.bugs import bugs_of, clones

PUBLISHED_P = 1.795e-14
"""Chi-square of 154 of 385 and 58 of 385 extrinsic bugs (Jahan et al., EMSE 2025)."""
LIMIT_MINUTES = {"first": 90, "second": 2}


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True, help="folder of clones, owner+name")
    parser.add_argument("--kept", type=Path, help="an empty folder that keeps what was measured")
    parser.add_argument("--bugs", type=int, help="measure so many only")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    data = data_file("denchmark/reports.jsonl.gz")
    records = [raw for raw in data.records if raw["project"].lower() in REPORTED]
    known = clones(options.repos)
    usable = [bug for bug in bugs_of(records) if bug.project.lower() in known]
    statistics = _statistics(data.records)
    print(statistics)
    numbers = {
        "bugs_of_all_projects": len(usable),
        "statistics": statistics,
        "cost": _cost(
            records, options.repos, options.kept, options.bugs or len(usable), options.jobs
        ),
    }
    save(
        "study_localization",
        numbers,
        data=[data.described()],
        rivals={name: version(name) for name in ("scipy", "scikit-learn")},
    )


def _cost(
    records: Sequence[Mapping[str, object]], repos: Path, kept: Path | None, bugs: int, jobs: int
) -> Mapping[str, object]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        reports = folder / "reports.jsonl"
        reports.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
        command = [
            sys.executable, "-m", "epochzero", "study", "localization", "--reports", str(reports),
            "--repos", str(repos), "--out", f"{folder}/out", "--work", f"{folder}/work",
            "--sample", str(bugs), "--jobs", str(jobs), "--format", "json",
        ]  # fmt: skip
        runs = {name: _run(name, command) for name in ("first", "second")}
    return {"runs": runs, "jobs": jobs, "limit_minutes": LIMIT_MINUTES}


def _run(name: str, command: Sequence[str]) -> Mapping[str, float]:
    """One run: seconds, and processor seconds of all of its processes."""
    print(f"{name} run ...", flush=True)
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    elapsed, after = time.perf_counter() - began, os.times()
    used = sum(after[2:4]) - sum(before[2:4])
    numbers = {
        "bugs": json.loads(done.stdout)["bugs"],
        "seconds": round(elapsed, 1),
        "processor_seconds": round(used, 1),
    }
    print(f"    {numbers}", flush=True)
    return numbers


def _statistics(records: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    """What the package gives, and what the others do, of the published files and labels."""
    deep, other = (_precisions(f"jahan2025/per_bug_{name}.csv") for name in ("denchmark", "bugl"))
    found = compare(deep, other)
    pairs = float(np.mean(np.sign(np.subtract.outer(deep, other))))
    table = [[154, 231], [58, 327]]
    square = chi_square(table)
    both = [(raw["label"], raw["label_second"]) for raw in records if raw.get("label_second")]
    labels = [[str(one.get("type")) for one in side] for side in zip(*both, strict=True)]
    _, matrix = confusion(labels[0], labels[1])
    return {
        "buglocator_deep_learning_and_traditional": {
            "n": found.n,
            "test": found.test,
            "p": found.p,
            "scipy_p": float(stats.mannwhitneyu(deep, other).pvalue),
            "cliffs_delta": cliffs_delta(deep, other),
            "by_all_pairs": pairs,
        },
        "chi_square_p": square.p if square else None,
        "published_chi_square_p": PUBLISHED_P,
        "kappa_of_types": kappa(matrix),
        "scikit_learn_kappa": float(metrics.cohen_kappa_score(labels[0], labels[1])),
    }


def _precisions(name: str) -> list[float]:
    with data_path(name).open(encoding="utf-8") as file:
        return [float(row["ap"]) for row in csv.DictReader(file) if row["method"] == "buglocator"]


if __name__ == "__main__":
    main()
