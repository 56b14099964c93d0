"""Which fixes `epochzero study import` finds again, of bug reports whose fixes are known.

The reports of Denchmark (MSR 2021) are given as issues, number, title, text and times only, with clones
of their projects; found is a fix when the same commit is linked. Denchmark's own linking read messages
and pull requests; here there are no pull requests. Half of the projects is held out, as everywhere.

    python bench/study_import.py --repos DIR
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import data_file, rate, save
from split import held

from epochzero.errors import InputError
from epochzero.study.importing import import_reports
from epochzero.study.localization.bugs import clones


def main() -> None:
    """Imports each project that is there, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    reports = data_file("denchmark/reports.jsonl.gz")
    folders = clones(options.repos)
    by_project: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in reports.records:
        by_project[record["project"]].append(record)
    counts: dict[str, Counter[str]] = {"open": Counter(), "held_out": Counter()}
    began = time.perf_counter()
    for project in sorted(by_project.keys() & folders.keys()):
        part = counts["held_out" if held(f"{project}#1") else "open"]
        try:
            found = _imported(project, by_project[project], folders[project])
        except InputError as error:
            print(f"{project}: {error}")
            continue
        part["projects"] += 1
        part.update(_judged(by_project[project], found))
        print(f"{project}: {dict(part)}", flush=True)
    numbers: dict[str, Any] = {name: _rates(part) for name, part in counts.items()}
    numbers["seconds"] = round(time.perf_counter() - began, 1)
    print(json.dumps(numbers, indent=1))
    save("study_import", numbers, data=[reports.described()])


def _imported(
    project: str, records: Sequence[Mapping[str, Any]], clone: Path
) -> Mapping[int, Mapping[str, Any]]:
    issues = [
        {
            "number": record["number"],
            "title": record["summary"],
            "body": record["description"],
            "created_at": record["opened"],
            "closed_at": record["closed"],
        }
        for record in records
    ]
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder, "issues.json")
        export.write_text(json.dumps(issues))
        imported = import_reports(export, clone, project=project)
    return {record["number"]: record for record in imported.records}


def _judged(
    records: Sequence[Mapping[str, Any]], found: Mapping[int, Mapping[str, Any]]
) -> Counter[str]:
    counts = Counter({"reports": len(records)})
    for record in records:
        report = found.get(record["number"])
        if report is None:
            continue
        link = report["link"]
        right = report["fix"]["sha"] == record["fix"]["sha"]
        files = {file["new"] or file["old"] for file in record["fix"]["files"]}
        same_file = any((file["new"] or file["old"]) in files for file in report["fix"]["files"])
        for name in ("all", link["rule"]):
            counts[f"{name}/linked"] += 1
            counts[f"{name}/right"] += right
            counts[f"{name}/right_or_other"] += right or record["fix"]["sha"] in link["others"]
            counts[f"{name}/same_file"] += same_file
    return counts


def _rates(counts: Counter[str]) -> dict[str, Any]:
    rates: dict[str, Any] = {"projects": counts["projects"], "reports": counts["reports"]}
    for rule in sorted({key.partition("/")[0] for key in counts if "/" in key}):
        linked = counts[f"{rule}/linked"]
        rates[rule] = {
            "linked": linked,
            "precision": rate(counts[f"{rule}/right"], linked),
            "precision_among_others": rate(counts[f"{rule}/right_or_other"], linked),
            "same_file": rate(counts[f"{rule}/same_file"], linked),
            "recall": rate(counts[f"{rule}/right"], counts["reports"]),
        }
    return rates


if __name__ == "__main__":
    main()
