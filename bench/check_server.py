"""What `epochzero check --serve` saves, and whether its answers are those of a check without it.

On a project of 20,000 lines, one line of one file is changed before each check. Processor time: of the client with all
processes that it starts, and of the server with all that it starts, preparation for the next check included. The
same for a dry run of a small job with torch. Then every job of ``lab/check`` is checked in both ways, and the answers
are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_jobs import TARGETS, check_jobs, copied
from check_project import write_project
from common import SEED, save

LINES = 20_000
SECONDS = 0.5
"""What is wanted of the second check."""
EPOCHZERO = Path(sysconfig.get_path("scripts"), "epochzero")
DRY_JOB = """\
import torch

model = torch.nn.Linear(8, 4)
for step in range(1000):
    model(torch.randn(2, 8)).sum().backward()
"""
_TICKS = os.sysconf("SC_CLK_TCK")
_TIME = re.compile(rb"\d+\.\d s\b|(?<=\"seconds\": )[\d.]+")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    process: subprocess.Popen[str]
    environment: Mapping[str, str]

    def processor_seconds(self) -> float:
        """Of the server and its fork server, and of their children that have ended; waits until both are idle."""
        pids = [self.process.pid, *self._children()]
        while any(_state(pid)[0] != "S" for pid in pids) or len(pids) != 1 + len(self._children()):
            time.sleep(0.05)
            pids = [self.process.pid, *self._children()]
        return sum(int(part) for pid in pids for part in _state(pid)[11:15]) / _TICKS

    def _children(self) -> list[int]:
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def memory_mb(self) -> float:
        """Resident."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return round(int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024, 1)  # type: ignore[index]


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server that listens in this directory."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    process = subprocess.Popen(
        [EPOCHZERO, "check", "--serve"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    try:
        yield Server(process, environment)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        os.environ |= {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        }
        project, dry = folder / "project", folder / "dry"
        lines = write_project(project, LINES, SEED)
        dry.mkdir()
        (dry / "train.py").write_text(DRY_JOB)
        target = str(TARGETS / "a100-cluster.toml")
        static = ["--target", target, "--", "python", "train.py"]
        dry_run = ["--dry", "--", sys.executable, "train.py"]
        alone = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "nobody")}
        with running(folder) as server:
            numbers: dict[str, Any] = {"lines": lines}
            for kind, place, arguments in (("static", project, static), ("dry", dry, dry_run)):
                edited = place / "train.py"
                without, served = [], []
                for number in range(options.repeats + 1):
                    for environment, taken in ((alone, without), (server.environment, served)):
                        with edited.open("a") as file:
                            file.write(f"# {number}\n")
                        before = server.processor_seconds()
                        own = _processor_seconds([*arguments], place, environment)
                        other = server.processor_seconds() - before if taken is served else 0.0
                        taken.append(own + other)
                # The first check fills the caches of both ways.
                numbers[kind] = {
                    "without": round(statistics.median(without[1:]), 3),
                    "first": round(served[0], 3),
                    "served": round(statistics.median(served[1:]), 3),
                    "n": options.repeats,
                }
            numbers["server_mb"] = server.memory_mb()
            numbers["same"] = _compared(server, folder, alone)
    numbers["reached"] = {"served_seconds": numbers["static"]["served"] <= SECONDS}
    print(json.dumps(numbers, indent=1))
    save("check_server", numbers, data=[{"name": "synthetic project", "lines": lines}])


def _processor_seconds(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> float:
    process = subprocess.Popen(
        [EPOCHZERO, "check", *arguments], cwd=folder, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"check exited with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _state(pid: int) -> list[str]:
    """The fields of a process after its name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _compared(server: Server, folder: Path, alone: Mapping[str, str]) -> dict[str, Any]:
    """How many answers are the same, for all jobs of the collection."""
    jobs = check_jobs()
    different = []
    for job in jobs:
        place = copied(job, folder / "jobs")
        arguments = ["--format", "json", "--target", str(job.target), "--", *job.arguments]
        answers = [
            subprocess.run(
                [EPOCHZERO, "check", *arguments], cwd=place, env={**environment, **job.environment},
                capture_output=True, check=False,
            )
            for environment in (alone, server.environment)
        ]  # fmt: skip
        first, second = (
            (one.returncode, _TIME.sub(b"0", one.stdout), one.stderr) for one in answers
        )
        if first != second:
            different.append(job.name)
        shutil.rmtree(folder / "jobs")
    return {"n": len(jobs), "different": different}


if __name__ == "__main__":
    main()
