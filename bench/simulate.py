"""Does a job fail in simulation as it would on its platform? On the jobs of ``lab/simulate``.

Beside ``epochzero run --simulate`` the same jobs run plainly, and in what people make by hand: an empty
environment with the platform's variables, in bubblewrap with its read-only places and without its network
where that is installed. The category is the diagnosis of each run; how long the start takes is measured on a
program that does nothing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from common import LAB, rate, save
from split import held

from epochzero.check.target import parse_target
from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import Conclusion, End

JOBS = LAB / "simulate"
PATIENCE_S = 180
AT_ONCE = 8
"""Most of a job's time is a start that waits for files."""
STARTS = 5
WAYS = ("plain", "by_hand", "simulated")
PROGRAM = (sys.executable, "-m", "epochzero", "run", "--quiet", "--retries", "never")


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the lab.

    Attributes:
        name: of its folder.
        source: its files.
        expected: categories in which it fails on its target, the strict one first; none for a good job.
        ranks: how many run it there; 0 for one.
    """

    name: str
    source: Path
    expected: tuple[str, ...]
    ranks: int

    @property
    def held(self) -> bool:
        """Whether nobody looks at what is found in it."""
        return held(self.name)


@dataclass(frozen=True, slots=True)
class Result:
    """How a job ended in one of the ways, and the category of its diagnosis; empty where there is none."""

    exit_code: int
    category: str
    seconds: float

    def fits(self, job: Job) -> bool:
        """Whether it ended as it would on its target."""
        if not job.expected:
            return self.exit_code == 0
        return self.exit_code != 0 and self.category in job.expected


def main() -> None:
    """Runs them all and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python",
        type=Path,
        default=Path(sys.executable),
        help="of the jobs: a program, or a virtual environment",
    )
    parser.add_argument("--misses", action="store_true", help="print what was missed")
    parser.add_argument("--only", action="append", help="this job; nothing is written")
    options = parser.parse_args()
    if options.python.is_dir():
        options.python /= "bin/python"
    jobs = [job for job in lab_jobs() if not options.only or job.name in options.only]
    results: dict[str, dict[str, Result]] = {way: {} for way in WAYS}
    with _Server() as server, ThreadPoolExecutor(AT_ONCE) as pool:
        ended = pool.map(
            lambda job: {way: ran(job, way, options.python, server.address) for way in WAYS}, jobs
        )
        for number, (job, ways) in enumerate(zip(jobs, ended, strict=True), 1):
            for way, result in ways.items():
                results[way][job.name] = result
            told = "  ".join(f"{way} {_told(result, job)}" for way, result in ways.items())
            print(f"{number:>3}/{len(jobs)} {job.name:42}{told}", flush=True)
    numbers: dict[str, Any] = {way: counted(jobs, results[way]) for way in WAYS}
    numbers["start_seconds"] = starts(options.python)
    numbers["bubblewrap"] = shutil.which("bwrap") is not None
    _print(numbers)
    if options.misses:
        _misses(jobs, results["simulated"])
    if not options.only:
        save("simulate", numbers)


def lab_jobs() -> list[Job]:
    """All jobs of ``lab/simulate``, the failing ones first."""
    jobs = []
    for kind in ("failing", "good"):
        for folder in sorted((JOBS / kind).iterdir()):
            told = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
            names = (told["category"], *told["also"]) if kind == "failing" else ()
            jobs.append(Job(folder.name, folder, names, told.get("ranks", 0)))
    return jobs


def ran(job: Job, way: str, python: Path, server: str) -> Result:
    """Runs a job in a copy of its folder, with this machine's files beside it."""
    with tempfile.TemporaryDirectory(prefix="simulate-") as scratch:
        top = Path(scratch).resolve()
        top.chmod(0o755)
        folder, here = top / "job", top / "here"
        names = shutil.ignore_patterns("command", "target.toml", "expected.toml", "environment")
        shutil.copytree(job.source, folder, ignore=names)
        shutil.copytree(JOBS / "here", here)
        (here / "results").mkdir()

        def text(name: str) -> str:
            path = job.source / name
            written = path.read_text(encoding="utf-8") if path.is_file() else ""
            for word, value in (("here", here), ("folder", folder), ("server", server)):
                written = written.replace(f"{{{word}}}", str(value))
            return written

        target = top / "target.toml"
        target.write_text(text("target.toml"), encoding="utf-8")
        variables = dict(line.split("=", 1) for line in text("environment").splitlines())
        mode = variables.pop("PRIVATE", "0644")
        (here / "data" / "private.csv").chmod(int(mode, 8))
        command = shlex.split(text("command"))
        return _run(job, way, command, target, top, _environment(python, top, variables))


def _environment(python: Path, top: Path, variables: Mapping[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH") if name in os.environ}
    path = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
    home = top / "home"
    home.mkdir()
    return {
        **kept,
        "PATH": path,
        "HOME": str(home),
        "EPOCHZERO_HOME": str(top / "kept"),
        **variables,
    }


def _run(
    job: Job,
    way: str,
    command: Sequence[str],
    target: Path,
    top: Path,
    environment: Mapping[str, str],
) -> Result:
    folder = top / "job"
    options: list[str] = []
    if way == "simulated":
        options = ["--simulate", "--target", str(target)]
        options += ["--ranks", str(job.ranks)] if job.ranks else []
    elif way == "by_hand":
        command = [*_by_hand(target, folder, environment), *command]
    begin = time.monotonic()
    done = subprocess.run(
        ["timeout", str(PATIENCE_S), *PROGRAM, *options, "--", *command],
        cwd=folder, env=dict(environment), capture_output=True, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - begin
    journals = sorted((top / "kept").glob(f"runs/*/*/{NAME}"))
    category, code = "", done.returncode
    for journal in journals:
        for _, record in read_journal(journal):
            if isinstance(record, Conclusion) and record.diagnosis:
                category = record.diagnosis["category"]
            elif isinstance(record, End):
                code = record.exit_code
    return Result(code, category, seconds)


def _by_hand(target: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What a person would put in front of a command to try it as on the platform."""
    platform = parse_target(target.read_text(encoding="utf-8"), target.name, folder=target.parent)
    variables = {"PATH": environment["PATH"], "HOME": environment["HOME"]}
    # What keeps the job is no part of the platform.
    variables |= {name: word for name, word in environment.items() if name == "PYTHONPATH"}
    given = environment if platform.environment is None else {**variables, **platform.environment}
    words = ["env", "-i", *(f"{name}={value}" for name, value in given.items())]
    if shutil.which("bwrap") is None:
        return words
    words += ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--chdir", str(folder)]
    for mount in platform.mounts or ():
        if Path(mount.path).exists():
            words += ["--bind" if mount.writable else "--ro-bind", mount.path, mount.path]
    for path, there in platform.files.items():
        if not there and Path(path).is_dir():
            words += ["--tmpfs", path]
    if platform.network is not None and platform.network.internet is False:
        words.append("--unshare-net")
    return words


def starts(python: Path) -> dict[str, float]:
    """Median seconds of a program that does nothing, plainly and simulated, in turns."""
    seconds: dict[str, list[float]] = {"plain": [], "simulated": []}
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        (top / "job").mkdir()
        target = top / "target.toml"
        target.write_text('format = 1\nmemory_bytes = "8 GiB"\n[environment]\nA = "b"\n', "utf-8")
        nothing = Job("nothing", top / "job", (), 0)
        environment = _environment(python, top, {})
        for _ in range(STARTS):
            for way, times in seconds.items():
                command = ["python", "-c", "pass"]
                times.append(_run(nothing, way, command, target, top, environment).seconds)
    medians = {way: round(statistics.median(times), 3) for way, times in seconds.items()}
    return {**medians, "added": round(medians["simulated"] - medians["plain"], 3)}


def counted(jobs: Sequence[Job], results: Mapping[str, Result]) -> dict[str, Any]:
    """What is said of one way."""
    failing = [job for job in jobs if job.expected]
    parts = {
        "all": failing,
        "development": [job for job in failing if not job.held],
        "held_out": [job for job in failing if job.held],
    }
    good = [job for job in jobs if not job.expected]
    return {
        **{name: _share(part, results) for name, part in parts.items()},
        "failed_at_all": sum(results[job.name].exit_code != 0 for job in failing),
        "good": _share(good, results),
        "seconds": round(sum(result.seconds for result in results.values()), 1),
    }


def _share(jobs: Sequence[Job], results: Mapping[str, Result]) -> dict[str, Any]:
    fitting = sum(results[job.name].fits(job) for job in jobs)
    return {"n": len(jobs), "as_there": fitting, "share": rate(fitting, len(jobs))}


def _told(result: Result, job: Job) -> str:
    """Of a held-out job only whether it ended."""
    if job.held:
        return "(held out)"
    return "as there" if result.fits(job) else f"{result.exit_code} {result.category or '-'}"


def _print(numbers: Mapping[str, Any]) -> None:
    for way in WAYS:
        told = numbers[way]
        shares = "  ".join(
            f"{name} {told[name]['as_there']}/{told[name]['n']}"
            for name in ("all", "development", "held_out", "good")
        )
        print(f"{way:12}{shares}")
    print(f"start: {numbers['start_seconds']}")


def _misses(jobs: Sequence[Job], results: Mapping[str, Result]) -> None:
    missed = [job for job in jobs if not job.held and not results[job.name].fits(job)]
    for job in missed:
        result = results[job.name]
        wanted = " or ".join(job.expected) or "nothing"
        print(f"{job.name}: {wanted} expected; {result.exit_code} {result.category or 'nothing'}")
    counts = Counter(results[job.name].category for job in missed)
    print(f"missed: {dict(counts)}")


class _Server:
    """A web server on this machine that a job without a network does not reach."""

    def __init__(self) -> None:
        self._server = _Quiet(("0.0.0.0", 0), _Answering)
        # The address that this machine has for others; nothing is sent.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect(("192.0.2.1", 9))
            host = asking.getsockname()[0]
        self.address = f"{host}:{self._server.server_port}"

    def __enter__(self) -> _Server:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(ThreadingHTTPServer):
    """Says nothing of jobs that hang up."""

    def handle_error(self, *_: object) -> None:
        """See the class."""


class _Answering(BaseHTTPRequestHandler):
    """Answers everything with a few bytes."""

    def do_GET(self) -> None:
        """An answer of 4 bytes."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"data")

    do_POST = do_GET  # noqa: N815 - the name is the library's

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    main()
