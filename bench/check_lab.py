"""Which failures a check predicts before the job runs, and what it says of jobs that run well.

Failing jobs: those that were made for it, with a platform that differs from where they were written,
and those of the lab that reading can see. Predicted: an error of the right category at the right
file and line, give or take one. Half of the jobs, drawn by their names, are held out: rules are
built by looking at the others, and ``--misses`` shows those only. Analysers that know no categories
count when they say anything at the line. Good jobs: every error is a false one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from check_jobs import CheckJob, check_jobs, copied, fresh_jobs
from check_outcomes import PROGRAMS, Outcome, Said, false_errors, print_misses, shares
from common import save
from rivals.analysers import ANALYSERS, Analyser, installed
from split import held

from epochzero.check import check
from epochzero.check.target import read_target
from epochzero.errors import EpochZeroError

KINDS = ("check", "jobs", "fresh")
"""The collections of jobs."""

Tool = Callable[[CheckJob, Path], Sequence[Said]]


def main() -> None:
    """Measures, prints, and keeps the result."""
    options = _options()
    versions = {each.name: installed(options.rivals, each) for each in ANALYSERS}
    tools: dict[str, Tool] = {"epochzero": _checked}
    for each in ANALYSERS:
        if versions[each.name]:
            tools[each.name] = partial(_analysed, options.rivals, each)
    jobs = [*check_jobs(), *fresh_jobs()]
    numbers: dict[str, Any] = {}
    for name, tool in tools.items():
        started = time.perf_counter()
        outcomes = [_outcome(tool, job) for job in jobs]
        numbers[name] = _numbers(outcomes) | {"seconds": round(time.perf_counter() - started, 1)}
        if name == "epochzero":
            only = Counter(one.only_rule for one in outcomes if not one.job.good and one.only_rule)
            numbers["predicted_by_one_rule_only"] = dict(sorted(only.items()))
        if options.misses and name in ("epochzero", options.of):
            print_misses(outcomes)
    _print({name: numbers[name] for name in tools})
    counts = {
        kind: sum(not job.good and job.name.startswith(kind) for job in jobs) for kind in KINDS
    } | {"good": sum(job.good for job in jobs)}
    data = [{"name": "lab/check, lab/jobs and lab/fresh", **counts}]
    save("check_lab", numbers, data=data, rivals={n: v or "not run" for n, v in versions.items()})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rivals", type=Path, metavar="VENV", help="virtual environment with the rivals"
    )
    parser.add_argument("--misses", action="store_true", help="print what was not found")
    parser.add_argument("--of", default="epochzero", help="also of this rival")
    return parser.parse_args()


def _outcome(tool: Tool, job: CheckJob) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="check-lab-") as folder:
        return Outcome(job, tool(job, copied(job, Path(folder))))


def _checked(job: CheckJob, folder: Path) -> list[Said]:
    try:
        environment = dict(job.environment)
        found = check(job.arguments, job.target, folder=folder, environment=environment)
    except EpochZeroError as error:
        return [Said("<command>", 0, "", f"cannot be checked: {error}", error=False)]
    return [
        Said(
            each.place.path,
            each.place.line,
            each.category,
            f"{each.rule}: {each.message}",
            each.severity == "error",
        )
        for each in found.findings
    ]


def _analysed(environment: Path, analyser: Analyser, job: CheckJob, folder: Path) -> list[Said]:
    messages = analyser.messages(environment, folder, read_target(job.target))
    return [Said(each.path, each.line, "", each.text, each.error) for each in messages]


def _numbers(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """By collection; ``all`` and its halves are those of the lab, without the fresh ones."""
    failing = [outcome for outcome in outcomes if not outcome.job.good]
    good = [outcome for outcome in outcomes if outcome.job.good]
    lab = [one for one in failing if not _is_of(one, "fresh")]
    return {
        "all": shares(lab),
        **{kind: shares([one for one in failing if _is_of(one, kind)]) for kind in KINDS},
        "held_out": shares([one for one in lab if held(one.job.name)]),
        "development": shares([one for one in lab if not held(one.job.name)]),
        "made_good": false_errors(one for one in good if _is_of(one, "check")),
        "recorded_good": false_errors(one for one in good if _is_of(one, "jobs")),
        "fresh_good": false_errors(one for one in good if _is_of(one, "fresh")),
    }


def _is_of(outcome: Outcome, kind: str) -> bool:
    return outcome.job.name.startswith(f"{kind}/")


def _print(numbers: Mapping[str, Any]) -> None:
    print(
        f"{'':16}{'predicted':>11}{'strict':>8}{'made':>9}{'lab':>9}{'held out':>10}{'fresh':>8}"
        f"{'false/30':>10}{'lab':>7}{'fresh':>7}{'s':>7}"
    )
    for name, each in numbers.items():
        of = [
            f"{each[kind]['predicted']}/{each[kind]['n']}"
            for kind in ("all", "check", "jobs", "held_out", "fresh")
        ]
        wrong = [
            each[kind][f"errors_of_{PROGRAMS}"]
            for kind in ("made_good", "recorded_good", "fresh_good")
        ]
        print(
            f"{name:16}{of[0]:>11}{each['all']['strict']:>8}{of[1]:>9}{of[2]:>9}{of[3]:>10}{of[4]:>8}"
            f"{wrong[0]:>10.1f}{wrong[1]:>7.1f}{wrong[2]:>7.1f}{each['seconds']:>7.1f}"
        )


if __name__ == "__main__":
    main()
