"""Which rules of a static check report something on jobs that were not written for them, and what nothing else reports.

The jobs: those of the lab (`check_jobs`), the trainings of ``lab/watch`` with and without their faults, of which only
what the fault adds counts, and, if a directory with the repositories is given, the documented commands of
``check_public.toml``. A rule is needed for a failing job if no other rule predicts it. Rules that no job needs are
candidates for removal; whether they go is decided one by one. ``--findings`` stores all findings, and ``--before``
lists the jobs whose findings differ from stored ones, so that a change can be shown to lose nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from check_jobs import check_jobs, copied, dry_jobs, fresh_jobs
from check_outcomes import Outcome, Said
from check_public import public_commands
from common import REPOSITORY, commit, save

from epochzero.check import check
from epochzero.check.findings import Finding
from epochzero.check.rules import builtin
from epochzero.check.target import read_target
from epochzero.errors import EpochZeroError

sys.path.insert(0, str(REPOSITORY))
from lab.watch.cases import PAIRED, all_cases, family_cases, fresh_cases, pair_cases


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings on one job.

    Attributes:
        name: job of the lab, or repository, file and line of a documented command.
        kind: ``failing``, ``good``, ``training`` or ``public``.
        findings: rule, severity, category, path, line and message of each.
        needed: the rule without which the failure would not be predicted; empty for none.
    """

    name: str
    kind: str
    findings: tuple[tuple[str, str, str, str, int, str], ...]
    needed: str = ""


def main() -> None:
    """Check all jobs, print and save what each rule reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--public", type=Path, metavar="DIR", help="directory with the repositories"
    )
    parser.add_argument("--target", type=Path, help="target of the documented commands")
    parser.add_argument("--findings", type=Path, metavar="FILE", help="store all findings")
    parser.add_argument("--before", type=Path, metavar="FILE", help="findings to compare with")
    options = parser.parse_args()
    checked = [
        *_lab(),
        *_trainings(),
        *(_public(options.public, options.target) if options.public else ()),
    ]
    if options.findings:
        stored = {"commit": commit(), "findings": {each.name: each.findings for each in checked}}
        options.findings.write_text(json.dumps(stored), encoding="utf-8")
    numbers = _numbers(checked)
    if options.before:
        numbers["before"] = _compared(json.loads(options.before.read_text("utf-8")), checked)
    for name in ("jobs", "not_needed", "never"):
        print(name, numbers[name])
    print(json.dumps(numbers.get("before"), indent=1))
    save("check_rules", numbers, data=[{"name": "lab", "public": bool(options.public)}])


def _lab() -> Iterator[Checked]:
    jobs = {job.name: job for job in (*check_jobs(), *fresh_jobs(), *dry_jobs())}
    for job in jobs.values():
        with tempfile.TemporaryDirectory(prefix="check-rules-") as scratch:
            folder = copied(job, Path(scratch))
            found = _findings(job.arguments, job.target, folder, job.environment)
            rows = tuple((*row[:5], row[5].replace(scratch, "")) for row in found)
        said = [
            Said(path, line, of, f"{rule}:", severity == "error")
            for rule, severity, of, path, line, _ in rows
        ]
        needed = "" if job.good else Outcome(job, said).only_rule
        yield Checked(job.name, "good" if job.good else "failing", rows, needed)


def _trainings() -> Iterator[Checked]:
    """The faulty trainings, each with the findings that the healthy one has not."""
    target = next(iter(dry_jobs())).target
    paired = (case for name in PAIRED for case in pair_cases(name))
    with tempfile.TemporaryDirectory(prefix="check-rules-") as scratch:
        folder = Path(scratch)

        @cache
        def found(program: str) -> tuple[tuple[str, str, str, str, int, str], ...]:
            (folder / "train.py").write_text(program, encoding="utf-8")
            return tuple(_findings(["python", "train.py"], target, folder, {}))

        for case in (*all_cases(), *fresh_cases(), *family_cases(), *paired):
            before = {row[0] for row in found(case.healthy)}
            rows = tuple(row for row in found(case.faulty) if row[0] not in before)
            yield Checked(case.id, "training", rows)


def _public(folder: Path, target: Path) -> Iterator[Checked]:
    for each in public_commands(folder):
        rows = _findings(each.words, target, each.folder, each.environment)
        yield Checked(f"{each.repository} {each.file}:{each.line}", "public", tuple(rows))


def _findings(
    words: Sequence[str], target: Path, folder: Path, environment: Mapping[str, str]
) -> list[tuple[str, str, str, str, int, str]]:
    try:
        found = check(words, read_target(target), folder=folder, environment=dict(environment))
    except EpochZeroError as error:
        message = str(error).replace(str(folder), "")
        return [("<not checked>", "error", "", "<command>", 0, message)]
    return [_row(each) for each in found.findings]


def _row(finding: Finding) -> tuple[str, str, str, str, int, str]:
    place = finding.place
    return finding.rule, finding.severity, finding.category, place.path, place.line, finding.message


def _numbers(checked: Sequence[Checked]) -> dict[str, Any]:
    rules: dict[str, Counter[str]] = defaultdict(Counter)
    for each in checked:
        for rule in {row[0] for row in each.findings}:
            rules[rule][each.kind] += 1
        if each.needed:
            rules[each.needed]["needed"] += 1
    names = [rule.id for rule in builtin()]
    return {
        "jobs": dict(Counter(each.kind for each in checked)),
        "rules": {name: dict(rules[name]) for name in names},
        "not_needed": [name for name in names if rules[name] and not rules[name]["needed"]],
        "never": [name for name in names if not rules[name]],
    }


def _compared(before: Mapping[str, Any], checked: Sequence[Checked]) -> dict[str, Any]:
    """The findings that one of two versions has and the other has not."""
    differences = {}
    compared = [each for each in checked if each.name in before["findings"]]
    for each in compared:
        old = Counter(map(tuple, before["findings"][each.name]))
        new = Counter(each.findings)
        if old != new:
            differences[each.name] = {"lost": list(old - new), "added": list(new - old)}
    return {
        "commit": before["commit"],
        "equal": len(compared) - len(differences),
        "differences": differences,
    }


if __name__ == "__main__":
    main()
