"""What a simulated fleet costs: time and memory of `epochzero study simulate` in a fresh process, and how far
its means are from the closed form.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
from common import SEED, save

from epochzero.study.fleet import assumptions, expected, simulated

JOBS_PER_DAY = 100_000
DAYS = 30


def main() -> None:
    """Measures, prints, and keeps the result."""
    numbers = {"command": _command(), "closed_form": _closed_form()}
    print(json.dumps(numbers, indent=2))
    save("study_simulate", numbers, data=[])


def _command() -> Mapping[str, object]:
    print(f"{JOBS_PER_DAY:,} jobs a day, {DAYS} days ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = (
            sys.executable, "-m", "epochzero", "study", "simulate", "--jobs-per-day", str(JOBS_PER_DAY),
            "--days", str(DAYS), "--seed", str(SEED), "--out", folder, "--format", "json",
        )  # fmt: skip
        began = time.perf_counter()
        with tempfile.TemporaryFile() as answer:
            child = subprocess.Popen(command, stdout=answer)
            _, status, used = os.wait4(child.pid, 0)
            elapsed = time.perf_counter() - began
            answer.seek(0)
            if status:
                sys.exit(f"the simulation ended with {os.waitstatus_to_exitcode(status)}")
            summary = json.load(answer)
    (fleet,) = summary["fleets"]
    return {
        "jobs": JOBS_PER_DAY * DAYS,
        "draws": summary["draws"],
        "seconds": round(elapsed, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_memory_mb": round(used.ru_maxrss / 1024, 1),
        "wasted_share": fleet["wasted_share"],
        "saved_share": {name: one["share"] for name, one in fleet["saved"].items()},
    }


def _closed_form() -> Mapping[str, float]:
    """Relative difference of one simulation, all assumptions at their medians."""
    values = {name: float(one.at(0.5)) for name, one in assumptions().items()}
    jobs = JOBS_PER_DAY * DAYS
    drawn = asdict(simulated(values, jobs, np.random.default_rng(SEED)))
    means = asdict(expected(values, jobs))
    return {name: round(drawn[name] / mean - 1, 5) for name, mean in means.items()}


if __name__ == "__main__":
    main()
