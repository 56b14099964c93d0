"""How long a check takes on a project of 20,000 lines, and with how much memory.

Each run is a process of its own, from its start to its end, the page cache warm; beside it the start
of Python alone, ruff (which check asks) and, where it is installed, pyflakes over the same files.
Runs are interleaved; the medians and the fastest are kept. Then projects that are hard to read (`check_strange.py`), and how long ``epochzero target
capture`` takes on this machine. The bytecode of what is installed is there, as after ``pip install``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_jobs import TARGETS
from check_project import write_project
from check_strange import STRANGE, write_strange
from common import SEED, save
from ruff import find_ruff_bin

LINES = 20_000
SECONDS, MEGABYTES, CAPTURE_SECONDS = 1.0, 300, 10.0
"""What is wanted."""
STRANGE_REPEATS = 2


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process took; megabytes are of its largest resident memory.

    Linux counts what the process that started it had, so that no number is below this script's own.
    """

    elapsed: float
    processor: float
    megabytes: float
    status: int


def main() -> None:
    """Measures, prints, and keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, metavar="N")
    parser.add_argument("--lines", type=int, default=LINES, metavar="N")
    parser.add_argument("--rivals", type=Path, metavar="VENV", help="has pyflakes, if this has not")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="check-speed-") as name:
        folder = Path(name)
        project = folder / "project"
        lines = write_project(project, options.lines, SEED)
        files = sorted(path.relative_to(project).as_posix() for path in project.rglob("*.py"))
        commands = _commands(files, options.rivals)
        os.environ |= {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        }
        runs = _interleaved(commands, project, options.repeats)
        numbers: dict[str, Any] = {"lines": lines, "files": len(files)}
        numbers |= {name: _medians(taken) for name, taken in runs.items()}
        numbers |= {
            name: _medians(_strange(folder / str(number), name, commands["epochzero_check"]))
            for number, name in enumerate(STRANGE)
        }
        capture = [sys.executable, "-m", "epochzero", "target", "capture", "-o"]
        output = folder / "captured.toml"
        taken = [_run([*capture, str(output)], folder) for _ in range(3)]
        size = output.stat().st_size if output.exists() else None
        numbers["target_capture"] = _medians(taken) | {"file_bytes": size}
    numbers["reached"] = _reached(numbers)
    _print(numbers)
    save("check_speed", numbers, data=[{"name": "synthetic project", "lines": lines}])


def _commands(files: Sequence[str], rivals: Path | None) -> dict[str, list[str]]:
    check = ["check", "--target", str(TARGETS / "a100-cluster.toml"), "--", "python", "train.py"]
    commands = {
        "python_start": [sys.executable, "-c", "pass"],
        "epochzero_check": [sys.executable, "-m", "epochzero", *check],
        "ruff": [
            find_ruff_bin(),
            "check",
            "--isolated",
            "--no-cache",
            "--quiet",
            "--exit-zero",
            ".",
        ],
    }
    if rivals is not None and (rivals / "bin" / "pyflakes").exists():
        commands["pyflakes"] = [str(rivals / "bin" / "python"), "-m", "pyflakes", *files]
    elif importlib.util.find_spec("pyflakes"):
        commands["pyflakes"] = [sys.executable, "-m", "pyflakes", *files]
    return commands


def _interleaved(
    commands: Mapping[str, Sequence[str]], folder: Path, repeats: int
) -> dict[str, list[Taken]]:
    """One run of each that does not count, then as many as asked for, taking turns."""
    runs: dict[str, list[Taken]] = {name: [] for name in commands}
    for number in range(repeats + 1):
        for name, command in commands.items():
            taken = _run(command, folder)
            if number:
                runs[name].append(taken)
    return runs


def _strange(folder: Path, name: str, command: Sequence[str]) -> list[Taken]:
    write_strange(folder, name)
    return [_run(command, folder) for _ in range(STRANGE_REPEATS)]


def _run(command: Sequence[str], folder: Path) -> Taken:
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return Taken(
        elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode
    )


def _medians(taken: Sequence[Taken]) -> dict[str, Any]:
    return {
        "seconds": round(statistics.median(one.elapsed for one in taken), 3),
        "fastest": round(min(one.elapsed for one in taken), 3),
        "processor_seconds": round(statistics.median(one.processor for one in taken), 3),
        "megabytes": round(max(one.megabytes for one in taken), 1),
        "status": sorted({one.status for one in taken}),
    }


def _reached(numbers: Mapping[str, Any]) -> dict[str, bool]:
    check, capture = numbers["epochzero_check"], numbers["target_capture"]
    ran = set(check["status"]) <= {0, 1}
    return {
        "check_seconds": ran and check["seconds"] <= SECONDS,
        "check_megabytes": ran and check["megabytes"] <= MEGABYTES,
        "capture_seconds": capture["status"] == [0] and capture["seconds"] <= CAPTURE_SECONDS,
    }


def _print(numbers: Mapping[str, Any]) -> None:
    print(f"{numbers['lines']} lines in {numbers['files']} files")
    for name, each in numbers.items():
        if isinstance(each, dict) and "seconds" in each:
            print(
                f"{name:18}{each['seconds']:>8.3f} s (fastest {each['fastest']:.3f}, processor "
                f"{each['processor_seconds']:.3f}){each['megabytes']:>8.1f} MB  exit {each['status']}"
            )
    print(
        "reached:",
        ", ".join(f"{what} {'yes' if ok else 'NO'}" for what, ok in numbers["reached"].items()),
    )


if __name__ == "__main__":
    main()
