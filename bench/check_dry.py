"""Which failures a check with a dry run predicts, and what it says wrongly of jobs that run well.

``epochzero check --dry`` in a fresh process for each job, or with ``--serve`` by a check server: those made for it (``lab/dry``), those of
``lab/jobs`` that only a run without a GPU can show, and all that `check_lab` measures. Predicted: an
error of the right category at the right file and line, give or take one, whether it was found by
reading or by running. Half of the jobs, drawn by their names, are held out: ``--misses`` shows the
others only. Good jobs: every error is a false one. A job that only a run can judge is not counted
where its Python lacks a library; the result names those.

Each outcome is stored as soon as it is known, and a later call of the same code with the same options
measures only what is missing: a call that was interrupted, or that ends after ``--minutes``, is continued.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from check_jobs import CheckJob, check_jobs, copied, dry_jobs
from check_outcomes import Outcome, Said, false_errors, print_misses, shares
from check_server import EPOCHZERO, running
from common import REPOSITORY, content_digest, percentile, rate, save, scratch
from rivals.analysers import ANALYSERS, installed
from split import held

from epochzero.check.rules import DRY_RUN
from epochzero.check.target import read_target

KINDS = ("dry", "jobs", "check")
DRY_S = 60
"""Time limit of a dry run unless ``--dry-time`` sets another one: that of the command itself."""
LONGEST = 5
"""A whole check may take so many times the limit of its dry run."""
FAST_DEV_RUN = Path(__file__).parent / "rivals" / "fast_dev_run.py"
PREFLIGHT = next(each for each in ANALYSERS if each.name == "torch_preflight")
_NO_MODULE = re.compile(r"the Python of the dry run has no module (\w+)")


@dataclass(frozen=True, slots=True)
class Run:
    """A job that was checked.

    Attributes:
        outcome: what was said of it.
        seconds: by the clock, from the start of the process to its end.
        rules: that found an error.
        lacks: the library without which it could not be run here; empty for none.
        unknown: what could not be tried, for people.
        whole: whether the job was run to its end.
    """

    outcome: Outcome
    seconds: float
    rules: frozenset[str] = frozenset()
    lacks: str = ""
    unknown: tuple[str, ...] = ()
    whole: bool = False

    @property
    def counts(self) -> bool:
        """Whether the job could be judged here."""
        return not (self.lacks and (self.outcome.job.run or self.outcome.job.good))


def main() -> None:
    """Measures, prints, and keeps the result."""
    options = _options()
    jobs = [job for job in (*dry_jobs(), *check_jobs()) if job.name.startswith(options.only)]
    if options.development:
        jobs = [job for job in jobs if not held(job.name)]
    os.environ["PYTHONPATH"] = str(REPOSITORY / "src")
    libraries = _libraries(options.python)
    outcomes = _Outcomes(options, libraries, jobs)
    left = [job for job in jobs if job.name not in outcomes.runs]
    ends = time.monotonic() + 60 * options.minutes
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(options.at_once))
        if options.serve:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="check-dry-"))
            os.environ["XDG_RUNTIME_DIR"] = stack.enter_context(running(Path(folder))).environment[
                "XDG_RUNTIME_DIR"
            ]
        for run in pool.map(lambda job: _checked(job, options, ends), left):
            if run is not None:
                outcomes.add(run)
                print(f"{run.seconds:6.1f} s  {run.outcome.job.name}", file=sys.stderr, flush=True)
    if missing := len(jobs) - len(outcomes.runs):
        sys.exit(f"{missing} of {len(jobs)} jobs are left: the same command continues.")
    runs = [outcomes.runs[job.name] for job in jobs]
    numbers: dict[str, Any] = {"epochzero": _numbers(runs)}
    version = installed(options.rivals, PREFLIGHT)
    if version:
        numbers["torch_preflight"] = _told([_preflight(job, options.rivals) for job in jobs])
    lightning = [run for run in runs if run.counts and _uses_lightning(run.outcome.job)]
    if lightning:
        short = [_fast_dev_run(run.outcome.job, options.python) for run in lightning]
        numbers["fast_dev_run"] = _told(short)
        numbers["epochzero_where_fast_dev_run_applies"] = _told([r.outcome for r in lightning])
    if options.misses:
        print_misses(run.outcome for run in runs if run.counts)
        _print_unknowns(runs)
    _print(numbers)
    if options.result:
        save(options.result, halves([_case(run) | {"name": run.outcome.job.name} for run in runs]))
        outcomes.path.unlink()
        return
    whole = [kind for kind in KINDS if f"{kind}/" in options.only]
    if len(whole) == len(options.only) and not options.development:
        data = [
            {"name": ", ".join(f"lab/{kind}" for kind in whole), **_counts(jobs)},
            {"at_once": options.at_once, "dry_time": options.dry_time, "served": options.serve},
        ]
        rivals = {"torch_preflight": version or "not run", **libraries}
        save("check_dry", numbers, data=data, rivals=rivals)
        outcomes.path.unlink()


class _Outcomes:
    """The outcomes so far, in a file whose first line names the code and the options that they are of.

    Attributes:
        path: of the file.
        runs: by the names of the jobs.
    """

    def __init__(
        self, options: argparse.Namespace, libraries: Mapping[str, str], jobs: Sequence[CheckJob]
    ) -> None:
        self.path: Path = options.state or scratch() / "check_dry.jsonl"
        self.runs: dict[str, Run] = {}
        measured = ["src/epochzero", *(f"lab/{kind}" for kind in KINDS)]
        of = {"content": content_digest(measured), "libraries": dict(libraries)}
        of |= {name: getattr(options, name) for name in ("at_once", "dry_time", "serve")}
        lines = self.path.read_text("utf-8").splitlines() if self.path.is_file() else []
        if not lines or json.loads(lines[0]) != of:
            self.path.write_text(json.dumps(of) + "\n", encoding="utf-8")
            return
        by_name = {job.name: job for job in jobs}
        for stored in map(json.loads, lines[1:]):
            if (job := by_name.get(stored["name"])) is not None:
                said = [Said(*each) for each in stored["said"]]
                rules, unknown = frozenset(stored["rules"]), tuple(stored["unknown"])
                self.runs[job.name] = Run(
                    Outcome(job, said),
                    stored["seconds"],
                    rules,
                    stored["lacks"],
                    unknown,
                    stored["whole"],
                )

    def add(self, run: Run) -> None:
        """Store one more."""
        self.runs[run.outcome.job.name] = run
        stored = {
            "name": run.outcome.job.name,
            "said": [astuple(said) for said in run.outcome.said],
            "seconds": run.seconds,
            "rules": sorted(run.rules),
            "lacks": run.lacks,
            "unknown": run.unknown,
            "whole": run.whole,
        }
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(stored), file=file)


def halves(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The outcomes of jobs that were written for one purpose, by half."""
    numbers: dict[str, Any] = {}
    for half, is_held in (("open", False), ("held_out", True)):
        of_half = [one for one in cases if held(one["name"]) is is_held and "lacks" not in one]
        failing = [one for one in of_half if "told" in one]
        good = [one for one in of_half if "false" in one]
        predicted = sum(one["told"] == "predicted" for one in failing)
        numbers[half] = {
            "n": len(failing),
            "predicted": predicted,
            "share": rate(predicted, len(failing)),
            "strict": sum(one["strict"] for one in failing),
            "good": len(good),
            "good_with_false_errors": sum(bool(one["false"]) for one in good),
        }
    return numbers | {"cases": list(cases)}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python",
        type=Path,
        metavar="VENV",
        default=Path(sys.prefix),
        help="virtual environment in which the jobs run; this one if not given",
    )
    parser.add_argument(
        "--rivals", type=Path, metavar="VENV", help="virtual environment with the rivals"
    )
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="jobs at the same time")
    parser.add_argument(
        "--dry-time",
        type=int,
        default=DRY_S,
        metavar="SECONDS",
        help="limit of a dry run; a long one lets no busy machine decide an outcome",
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="stores the outcomes until the result is saved"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        metavar="N",
        help="begin no job after so long",
    )
    parser.add_argument(
        "--serve", action="store_true", help="use one check server for all jobs (less load)"
    )
    parser.add_argument("--misses", action="store_true", help="print what was not found")
    parser.add_argument("--development", action="store_true", help="nothing that is held out")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        default=[f"{kind}/" for kind in KINDS],
        help="jobs whose names begin so; the result is kept of whole collections, such as dry/ jobs/",
    )
    parser.add_argument("--result", metavar="NAME", help="store the outcomes of these jobs by half")
    options = parser.parse_args()
    options.only = tuple(options.only)
    options.python = options.python.absolute()
    if not options.python.is_dir():
        options.python = options.python.parent.parent  # its interpreter
    if not (options.python / "bin" / "python").exists():
        parser.error(f"{options.python} has no bin/python")
    return options


# -- Each job ----------------------------------------------------------------------------------


def _checked(job: CheckJob, options: argparse.Namespace, ends: float) -> Run | None:
    if time.monotonic() > ends:
        return None
    command = [str(EPOCHZERO), "check", "--dry", "--format", "json"]
    command += ["--dry-time", str(options.dry_time)]
    command += ["--target", str(job.target), "--", *job.arguments]
    with tempfile.TemporaryDirectory(prefix="check-dry-") as scratch:
        folder = copied(job, Path(scratch))
        began = time.perf_counter()
        done = _run(command, folder, job, options.python, LONGEST * options.dry_time)
        seconds = time.perf_counter() - began
    if done.returncode not in (0, 1):
        said = [Said("<command>", 0, "", f"cannot be checked: {done.stderr[-300:]}", error=False)]
        return Run(Outcome(job, said), seconds)
    return _read(job, json.loads(done.stdout), seconds)


def _run(
    command: Sequence[str], folder: Path, job: CheckJob, python: Path, seconds: int
) -> subprocess.CompletedProcess[str]:
    """With the job's environment, the Python of the jobs first on the path; its directory is left out of the output."""
    programs = python / "bin"
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["timeout", str(seconds), *command],
        cwd=folder,
        env={**os.environ, **job.environment, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    done.stdout = done.stdout.replace(f"{programs}{os.sep}", "")
    return done


def _read(job: CheckJob, checked: Mapping[str, Any], seconds: float) -> Run:
    findings = checked["findings"]
    said = [
        Said(
            one["place"]["path"],
            one["place"]["line"],
            one["category"],
            f"{one['rule']}: {one['message']} {one['consequence']}",
            one["severity"] == "error",
        )
        for one in findings
    ]
    reasons = [one["reason"] for run in checked["dry"] for one in run["unknowns"]]
    lacking = next(filter(None, map(_NO_MODULE.search, reasons)), None)
    return Run(
        Outcome(job, said),
        seconds,
        frozenset(one["rule"] for one in findings if one["severity"] == "error"),
        lacking[1] if lacking else "",
        tuple(reasons) if checked["dry"] else ("not run dry",),
        bool(checked["dry"]) and all(run["ended"] == "finished" for run in checked["dry"]),
    )


def _case(run: Run) -> dict[str, Any]:
    """The outcome of a job: how well its failure was predicted, or its false errors."""
    outcome = run.outcome
    case: dict[str, Any] = {"seconds": round(run.seconds, 1), "unknown": run.unknown}
    if run.lacks:
        case["lacks"] = run.lacks
    if outcome.job.good:
        return case | {"false": [f"{one.path}:{one.line} {one.text}" for one in outcome.false]}
    errors = [
        f"{one.path}:{one.line} {one.category} {one.text}" for one in outcome.said if one.error
    ]
    return case | {"told": outcome.told, "strict": outcome.strictly, "errors": errors}


# -- Rivals ------------------------------------------------------------------------------------


def _preflight(job: CheckJob, environment: Path) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="check-dry-") as scratch:
        folder = copied(job, Path(scratch))
        messages = PREFLIGHT.messages(environment, folder, read_target(job.target))
    return Outcome(
        job, [Said(each.path, each.line, "", each.text, each.error) for each in messages]
    )


def _uses_lightning(job: CheckJob) -> bool:
    runs_script = job.arguments[0] == "python" and job.arguments[1].endswith(".py")
    texts = (path.read_text(encoding="utf-8") for path in job.folder.rglob("*.py"))
    return runs_script and any(re.search(r"^import lightning", text, re.M) for text in texts)


def _fast_dev_run(job: CheckJob, python: Path) -> Outcome:
    """What the script ends with; counts as right when the innermost frame of the job is."""
    with tempfile.TemporaryDirectory(prefix="check-dry-") as scratch:
        folder = copied(job, Path(scratch)).resolve()
        command = [str(python / "bin" / "python"), str(FAST_DEV_RUN), *job.arguments[1:]]
        done = _run(command, folder, job, python, LONGEST * DRY_S)
        told = json.loads(done.stdout.splitlines()[-1])
        frames = [(folder / path, line) for path, line in told.get("frames", ())]
        own = [(path, line) for path, line in frames if path.is_relative_to(folder)]
    if told["ended_well"]:
        return Outcome(job, [])
    path, line = own[-1] if own else (folder / "<command>", 0)
    return Outcome(job, [Said(path.relative_to(folder).as_posix(), line, "", told["text"])])


# -- Numbers -----------------------------------------------------------------------------------


def _numbers(runs: Sequence[Run]) -> dict[str, Any]:
    judged = [run for run in runs if run.counts]
    failing = [run for run in judged if not run.outcome.job.good]
    numbers = _told([run.outcome for run in judged])
    for kind in KINDS:
        numbers[kind] = shares([r.outcome for r in failing if r.outcome.job.name.startswith(kind)])
    only_run = [run.outcome for run in failing if run.outcome.job.run]
    numbers["only_a_run_can_show"] = shares(only_run)
    numbers["development"] = shares([r.outcome for r in failing if not held(r.outcome.job.name)])
    numbers["held_out"] = shares([r.outcome for r in failing if held(r.outcome.job.name)])
    predicted = [run for run in failing if run.outcome.told == "predicted"]
    numbers["predicted_without_a_dry_finding"] = sum(
        not run.rules & set(DRY_RUN) for run in predicted
    )
    numbers["good"]["run_to_the_end"] = sum(run.whole for run in judged if run.outcome.job.good)
    numbers["not_run"] = Counter(run.lacks for run in runs if not run.counts)
    return numbers | {"seconds": _seconds([run.seconds for run in judged])}


def _told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    good = [outcome for outcome in outcomes if outcome.job.good]
    false = false_errors(good)
    return {
        "all": shares([outcome for outcome in outcomes if not outcome.job.good]),
        "good": false | {"share": rate(false["programs"], len(good))},
    }


def _seconds(taken: Sequence[float]) -> dict[str, float]:
    if not taken:
        return {}
    return {
        "median": round(statistics.median(taken), 1),
        "p90": round(percentile(taken, 0.9), 1),
        "most": round(max(taken), 1),
    }


def _counts(jobs: Sequence[CheckJob]) -> dict[str, int]:
    failing = {kind: sum(j.name.startswith(kind) and not j.good for j in jobs) for kind in KINDS}
    return failing | {"good": sum(job.good for job in jobs)}


def _libraries(python: Path) -> dict[str, str]:
    """Versions of the libraries that the jobs use, in their Python."""
    names = ("torch", "lightning", "transformers", "accelerate", "keras")
    command = [str(python / "bin" / "python"), "-m", "pip", "list", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    versions = {one["name"]: one["version"] for one in json.loads(done.stdout)}
    return {name: versions.get(name, "not there") for name in names}


def _print_unknowns(runs: Sequence[Run]) -> None:
    for run in runs:
        job = run.outcome.job
        if run.unknown and not held(job.name) and run.outcome.told != "predicted":
            print(f"{job.name}: unknown: {'; '.join(run.unknown)[:200]}")


def _print(numbers: Mapping[str, Any]) -> None:
    for name, each in numbers.items():
        told, good = each["all"], each["good"]
        print(
            f"{name:38}{told['predicted']:>4}/{told['n']} predicted, "
            f"{good['programs']}/{good['n']} good programs with false errors"
        )
    ours = numbers["epochzero"]
    for name in (*KINDS, "only_a_run_can_show", "development", "held_out"):
        print(f"    {name:34}{ours[name]['predicted']:>4}/{ours[name]['n']}")
    print(f"    good programs run to their end: {ours['good']['run_to_the_end']}")
    print(f"    seconds: {ours['seconds']}, not run for want of: {dict(ours['not_run'])}")


if __name__ == "__main__":
    main()
