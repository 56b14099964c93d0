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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from check_jobs import CheckJob, check_jobs, copied
from check_outcomes import PROGRAMS, Outcome, Said, false_errors, print_misses, shares
from common import save
from rivals.analysers import ANALYSERS, Analyser, installed
from split import held

from epochzero.check import check
from epochzero.check.target import read_target
from epochzero.errors import EpochZeroError

Tool = Callable[[CheckJob, Path], Sequence[Said]]


def main() -> None:
    """Measures, prints, and keeps the result."""
    options = _options()
    versions = {each.name: installed(options.rivals, each) for each in ANALYSERS}
    tools: dict[str, Tool] = {"epochzero": _checked}
    for each in ANALYSERS:
        if versions[each.name]:
            tools[each.name] = partial(_analysed, options.rivals, each)
    jobs = check_jobs()
    numbers: dict[str, Any] = {}
    for name, tool in tools.items():
        started = time.perf_counter()
        outcomes = [_outcome(tool, job) for job in jobs]
        numbers[name] = _numbers(outcomes) | {"seconds": round(time.perf_counter() - started, 1)}
        if options.misses and name in ("epochzero", options.of):
            print_misses(outcomes)
    _print(numbers)
    counts = {
        kind: sum(job.good == good and job.name.startswith(kind) for job in jobs)
        for kind, good in (("check", False), ("jobs", False))
    } | {"good": sum(job.good for job in jobs)}
    data = [{"name": "lab/check and lab/jobs", **counts}]
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
    failing = [outcome for outcome in outcomes if not outcome.job.good]
    good = [outcome for outcome in outcomes if outcome.job.good]
    numbers: dict[str, Any] = {}
    for kind in ("all", "check", "jobs"):
        of_kind = [o for o in failing if kind == "all" or o.job.name.startswith(f"{kind}/")]
        numbers[kind] = shares(of_kind)
    numbers["held_out"] = shares([o for o in failing if held(o.job.name)])
    numbers["development"] = shares([o for o in failing if not held(o.job.name)])
    numbers["made_good"] = false_errors(o for o in good if o.job.name.startswith("check/"))
    numbers["recorded_good"] = false_errors(o for o in good if o.job.name.startswith("jobs/"))
    return numbers


def _print(numbers: Mapping[str, Any]) -> None:
    print(
        f"{'':16}{'predicted':>11}{'strict':>8}{'made':>9}{'lab':>9}{'held out':>10}{'false/30':>10}"
        f"{'lab':>7}{'s':>7}"
    )
    for name, each in numbers.items():
        of = [
            f"{each[kind]['predicted']}/{each[kind]['n']}"
            for kind in ("all", "check", "jobs", "held_out")
        ]
        wrong = [each[kind][f"errors_of_{PROGRAMS}"] for kind in ("made_good", "recorded_good")]
        print(
            f"{name:16}{of[0]:>11}{each['all']['strict']:>8}{of[1]:>9}{of[2]:>9}{of[3]:>10}"
            f"{wrong[0]:>10.1f}{wrong[1]:>7.1f}{each['seconds']:>7.1f}"
        )


if __name__ == "__main__":
    main()
