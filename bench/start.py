"""Processor time and memory that short commands take, compared with an earlier commit.

Each command runs in a fresh process with the same Python, once with the package of this working tree
and once with that of another commit, which `git worktree` checks out. Runs of both are interleaved. The
first run of each, which compiles bytecode and fills caches, is not counted, except where a row says so.
Counted is the processor time of the command and all processes that it waited for, and the memory of the
largest of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common import REPOSITORY, save

BEFORE = "8e543112"
REPEATS = 5
WANTED_S = {"diagnose": 0.2, "run_exit_code_1": 0.65, "help": 0.15}
"""The most processor time that is wanted."""

LOG = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    x.cuda()
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB
"""
SCRIPT = 'import json\njson.loads("{")\n'


@dataclass(frozen=True, slots=True)
class Row:
    """A command.

    Attributes:
        arguments: of ``epochzero``.
        first: whether caches and bytecode are removed before each run.
    """

    arguments: tuple[str, ...]
    first: bool = False


ROWS = {
    "help": Row(("--help",)),
    "diagnose": Row(("diagnose", "tiny.log")),
    "diagnose_first_start": Row(("diagnose", "tiny.log"), first=True),
    "run_success": Row(("run", "--", sys.executable, "-c", "pass")),
    "run_one_second": Row(("run", "--", sys.executable, "-c", "import time; time.sleep(1)")),
    "run_exit_code_1": Row(("run", "--", sys.executable, "-c", "raise SystemExit(1)")),
    "run_exception": Row(("run", "--", sys.executable, "two.py")),
    "check": Row(("check", "--", sys.executable, "two.py")),
    "jobs": Row(("jobs",)),
}


@dataclass(frozen=True, slots=True)
class Tree:
    """A version of the package, with a home of its own."""

    source: Path
    home: Path

    def environment(self) -> Mapping[str, str]:
        """Of its commands."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PYTHONPATH": str(self.source),
            "PYTHONPYCACHEPREFIX": str(self.home / "bytecode"),
        }


def main() -> None:
    """Measures, prints, and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help="what to compare with")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="start-") as name, _checked_out(options.before) as old:
        work = Path(name)
        (work / "tiny.log").write_text(LOG, encoding="utf-8")
        (work / "two.py").write_text(SCRIPT, encoding="utf-8")
        trees = {
            "before": Tree(old / "src", work / "before"),
            "after": Tree(REPOSITORY / "src", work / "after"),
        }
        rows = {}
        for what, row in ROWS.items():
            rows[what] = _measured(row, trees, work, options.repeats)
            print(what, rows[what])
    save(
        "start",
        {
            "before": options.before,
            "repeats": options.repeats,
            "wanted_processor_s": WANTED_S,
            "rows": rows,
        },
    )


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """A commit of this repository in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="start-tree-") as name:
        git = ("git", "-C", str(REPOSITORY), "worktree")
        subprocess.run([*git, "add", "--detach", "--quiet", f"{name}/tree", commit], check=True)
        try:
            yield Path(name, "tree")
        finally:
            subprocess.run([*git, "remove", "--force", f"{name}/tree"], check=True)


def _measured(
    row: Row, trees: Mapping[str, Tree], folder: Path, repeats: int
) -> dict[str, dict[str, float]]:
    """Processor seconds and megabytes of a command, by the tree."""
    seconds: dict[str, list[float]] = {name: [] for name in trees}
    memory: dict[str, list[float]] = {name: [] for name in trees}
    for number in range(repeats + 1):
        for name, tree in trees.items():
            if row.first:
                shutil.rmtree(tree.home, ignore_errors=True)
            tree.home.mkdir(exist_ok=True)
            used, megabytes = _run(row, tree, folder)
            if number:
                seconds[name].append(used)
                memory[name].append(megabytes)
    return {
        name: {
            "best_s": round(min(seconds[name]), 3),
            "median_s": round(statistics.median(seconds[name]), 3),
            "memory_mb": round(statistics.median(memory[name]), 1),
        }
        for name in trees
    }


def _run(row: Row, tree: Tree, folder: Path) -> tuple[float, float]:
    """Processor seconds of a command with its children, and megabytes of the largest of them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "epochzero", *row.arguments],
        cwd=folder,
        env=tree.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{row.arguments}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
