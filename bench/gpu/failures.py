"""Failures of a real GPU: the jobs of ``lab/gpu``, recorded, run by `epochzero run`, and diagnosed.

What each job must be diagnosed as was written before any of them ran on a GPU. Of each is counted: the exit code, the
category (strict: the one expected; lenient: one that is as good), the root line, whether a retry is worthwhile, and
the user's frame; from the recorded log alone, and from `epochzero run`. ``--judge`` measures the recorded
logs in the repository, without running anything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import LAB, REPOSITORY, require_all, require_gpus, save

JOBS = LAB / "gpu" / "jobs"
AT_ONCE = max(1, min(6, (os.cpu_count() or 1) // 2))
MEASURES = ("outcome", "strict", "lenient", "root", "retry", "frame")


def main() -> None:
    """Runs all jobs, prints, and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stand-in", action="store_true", help="without a GPU")
    parser.add_argument("--judge", action="store_true", help="the recorded logs only")
    parser.add_argument(
        "--which", choices=("together", "alone"), help="jobs that fill the GPU, or the others"
    )
    parser.add_argument("names", nargs="*", help="jobs; default: all")
    options = parser.parse_args()
    if not (options.judge or options.stand_in):
        require_gpus()
    names = options.names or sorted(path.parent.name for path in JOBS.glob("*/job.toml"))
    copy = LAB if options.judge else _copied_lab(10 if options.stand_in else 1)
    described = {
        name: tomllib.loads((copy / "gpu" / "jobs" / name / "job.toml").read_text("utf-8"))
        for name in names
    }
    if options.judge:
        rows = [_judged_log(name, described[name], LAB / "gpu" / "logs") for name in names]
    else:
        if options.which:
            alone = options.which == "alone"
            described = {
                name: job for name, job in described.items() if job.get("alone", False) == alone
            }
        rows = []
        # Jobs that fill the GPU run one by one. Each result is saved at once, because the time limit may end this part.
        for alone in (False, True):
            with ThreadPoolExecutor(1 if alone else AT_ONCE) as pool:
                runs = [pool.submit(_played, name, job, copy)
                        for name, job in described.items() if job.get("alone", False) == alone]  # fmt: skip
                for run in as_completed(runs):
                    rows.append(run.result())
                    _save(rows, options)
    numbers = _save(rows, options)
    for row in rows:
        missed = [measure for measure in MEASURES if row.get("log", {}).get(measure) is False]
        print(f"{row['job']:32} {row.get('log', {}).get('category', '')!s:24} {', '.join(missed)} {row.get('recording', '')[:200]}")  # fmt: skip
    print(json.dumps({key: value for key, value in numbers.items() if key != "jobs"}))
    judged = [numbers[way]["jobs"] for way in ("from_the_log", "from_run") if way in numbers]
    require_all(min(judged), sum("skipped" not in row for row in rows), "jobs")


def _save(rows: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> Mapping[str, Any]:
    """The numbers so far, saved unless only some jobs were asked for."""
    rows = sorted(rows, key=lambda row: str(row["job"]))
    numbers: dict[str, Any] = {"jobs": rows, "from_the_log": _counted(rows, "log")}
    if not options.judge:
        numbers["from_run"] = _counted(rows, "run")
    if not options.names:
        which = "recorded" if options.judge else options.which or "all"
        save(f"gpu_failures_{which}", numbers)
    return numbers


def _copied_lab(slower: int) -> Path:
    """Return a copy of the lab to record in, with time limits multiplied by `slower`.

    The repository's logs are replaced only by hand, after they were inspected.
    """
    lab = Path(os.environ.get("EPOCHZERO_BENCH_LAB") or tempfile.mkdtemp())
    shutil.copy2(LAB / "record", lab / "record")
    shutil.copytree(JOBS, lab / "gpu" / "jobs", dirs_exist_ok=True)
    for job in lab.glob("gpu/jobs/*/job.toml"):
        limit = re.compile(r"(?m)^timeout = (\d+)$")
        text = limit.sub(
            lambda found: f"timeout = {int(found[1]) * slower}", job.read_text("utf-8")
        )
        job.write_text(text, encoding="utf-8")
    source = lab.parent / "src"  # The recorder reads the taxonomy there.
    if not source.exists():
        source.symlink_to(REPOSITORY / "src")
    return lab


def _played(name: str, job: Mapping[str, Any], lab: Path) -> dict[str, Any]:
    """A job recorded, judged by its log, then run by `epochzero run` and judged by what that stored."""
    recorder = [sys.executable, str(lab / "record"), "--gpu", name]
    done = subprocess.run(recorder, capture_output=True, text=True, check=False)
    row = _judged_log(name, job, lab / "gpu" / "logs")
    row["recording"] = (done.stdout + done.stderr).strip()[-500:]
    if any(_module_missing(module) for module in job["needs"]):
        return {**row, "skipped": "a module is missing"}
    with tempfile.TemporaryDirectory(prefix="gpu-failure-", ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        shutil.copytree(JOBS / name, work / "job")
        environment = {**os.environ, "EPOCHZERO_HOME": str(work / "home")}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', '')}"
        command = [sys.executable, "-m", "epochzero"]
        try:
            done = subprocess.run(
                [*command, "run", "--", *job["command"]],
                cwd=work / "job", env=environment, capture_output=True, text=True, check=False, timeout=job["timeout"],
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {**row, "run": {"error": f"not finished after {job['timeout']} s"}}
        shown = subprocess.run([*command, "show", "last", "--format", "json"], env=environment,
                               capture_output=True, text=True, check=False)  # fmt: skip
        row["screen"] = done.stderr[-3000:]
        try:
            last = json.loads(shown.stdout)["attempts"][-1]
        except (ValueError, LookupError):
            return {**row, "run": {"error": shown.stderr[-500:]}}
        found = last.get("diagnosis") or next(
            (rank["diagnosis"] for rank in last["ranks"] if rank.get("diagnosis")), None
        )
        row["run"] = _judged(found, job["expect"], last["exit_code"])
    return row


def _module_missing(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is None


def _judged_log(name: str, job: Mapping[str, Any], logs: Path) -> dict[str, Any]:
    """The diagnosis of a recorded log with the facts next to it, compared with what is expected."""
    folder = logs / name
    if not (folder / "facts.json").is_file():
        return {"job": name}
    command = [sys.executable, "-m", "epochzero", "diagnose", "--format", "json", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"job": name, "log": {"error": done.stderr[-500:]}}
    code = json.loads((folder / "facts.json").read_text("utf-8"))["exit_code"]
    return {"job": name, "log": _judged(json.loads(done.stdout), job["expect"], code)}


def _judged(
    found: Mapping[str, Any] | None, expect: Mapping[str, Any], exit_code: int | None
) -> dict[str, Any]:
    if found is None:
        good = expect["outcome"] == "no_failure"
        return {"outcome": good, "category": "", "exit_code": exit_code}
    judged: dict[str, Any] = {
        "exit_code": exit_code,
        "exit": exit_code == expect["exit"],
        "category": found.get("category"),
        "signature": found.get("signature"),
        "outcome": found.get("outcome") == expect["outcome"],
    }
    if "category" not in expect:
        return judged
    root, frame = found.get("root") or {}, found.get("user_frame") or {}
    judged |= {
        "strict": found.get("category") == expect["category"],
        "lenient": found.get("category") in (expect["category"], *expect["also"]),
        "root": expect["root_text"] in (root.get("text") or ""),
        "root_text": (root.get("text") or "")[:300],
        "retry": found.get("retry") == expect["retry"],
        "phase": found.get("phase") == expect["phase"],
    }
    if wanted := expect.get("user_frame"):
        judged["frame"] = (
            Path(frame.get("file") or "").name == wanted["file"]
            and frame.get("line") == wanted["line"]
        )
        judged["user_frame"] = f"{frame.get('file')}:{frame.get('line')}"
    return judged


def _counted(rows: Sequence[Mapping[str, Any]], which: str) -> dict[str, Any]:
    judged = [row[which] for row in rows if which in row and "error" not in row[which]]
    counted: dict[str, Any] = {"jobs": len(judged)}
    for measure in MEASURES:
        each = [one[measure] for one in judged if measure in one]
        counted[measure] = [sum(each), len(each)]
    return counted


if __name__ == "__main__":
    main()
