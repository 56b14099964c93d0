"""How long the first answer takes, the next commit, and a query, and how much memory.

Each is measured in a new process, with all cores that it may use; the repository is any clone with
some 1,500 source files. ``command_seconds`` is the whole process, from the start of Python to its
end: what a person waits for. A yardstick is measured with each repeat, as machines differ and a
shared one differs from itself: what git alone takes to list the tree and to read all of its files.

    python bench/localization_speed.py --repo DIR
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

import epochzero
from epochzero.code import Cache, Repository
from epochzero.locate import DEFAULT_METHOD

REPORT = """Training crashes in the data loader when the last batch is smaller

`ValueError: shapes do not match` is raised by the optimizer after an epoch, with several workers.
The loss of the last batch is nan before. I expected that the batch is padded or dropped.
"""
QUERIES = 20


def main() -> None:
    """Measures, prints and keeps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--rev", default="HEAD")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("CACHE", "REV"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_one(options.repo, *options.one)))
        return
    numbers: dict[str, object] = {"repository": options.repo.parent.name, "method": DEFAULT_METHOD}
    runs = [_repeat(options.repo, options.rev) for _ in range(options.repeats)]
    for name in ("cold", "next_commit", "same_commit"):
        for key in ("seconds", "command_seconds", "query_ms", "memory_mb", "files"):
            numbers[f"{name}_{key}"] = statistics.median(run[name][key] for run in runs)
    yardsticks = [run["yardstick"]["seconds"] for run in runs]
    numbers["yardstick_seconds"] = statistics.median(yardsticks)
    numbers["next_commit_yardsticks"] = round(
        statistics.median(
            run["next_commit"]["seconds"] / run["yardstick"]["seconds"] for run in runs
        ),
        2,
    )
    print(json.dumps(numbers, indent=1))
    save("localization_speed", numbers)


def _repeat(repo: Path, rev: str) -> dict[str, dict[str, float]]:
    """The commit before ``rev`` without a cache, then ``rev``, then ``rev`` again; the yardstick."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            "cold": _measured(repo, cache, f"{rev}~1"),
            "next_commit": _measured(repo, cache, rev),
            "same_commit": _measured(repo, cache, rev),
            "yardstick": {"seconds": _yardstick(repo, rev)},
        }


def _yardstick(repo: Path, rev: str) -> float:
    """The seconds that git takes to list a tree and to give the content of all of its files."""
    start = time.perf_counter()
    command = ["git", "-C", str(repo), "ls-tree", "-r", rev]
    listing = subprocess.run(command, capture_output=True, check=True).stdout
    blobs = b"".join(line.split()[2] + b"\n" for line in listing.splitlines() if b" blob " in line)
    command = ["git", "-C", str(repo), "cat-file", "--batch"]
    subprocess.run(command, input=blobs, capture_output=True, check=True)
    return round(time.perf_counter() - start, 3)


def _measured(repo: Path, cache: str, rev: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--repo", str(repo), "--one", cache, rev]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found | {"command_seconds": _command_seconds(repo, f"{cache}/command", rev)}


def _command_seconds(repo: Path, cache: str, rev: str) -> float:
    """The seconds of ``epochzero locate``, with a cache of its own."""
    command = [sys.executable, "-m", "epochzero", "locate", "-", "--repo", str(repo), "--rev", rev]
    environment = os.environ | {"XDG_CACHE_HOME": cache}
    start = time.perf_counter()
    subprocess.run(
        command, input=REPORT, env=environment, capture_output=True, text=True, check=True
    )
    return round(time.perf_counter() - start, 3)


def _one(repo: Path, cache: str, rev: str) -> dict[str, float]:
    """In this process: the first answer, and queries after it."""
    start = time.perf_counter()
    locator = epochzero.Locator(Repository(repo), cache=Cache(cache))
    ranking = locator.locate(REPORT, rev)
    first = time.perf_counter() - start
    taken = []
    for number in range(QUERIES):
        start = time.perf_counter()
        locator.locate(f"{REPORT} number {number}", rev)
        taken.append(time.perf_counter() - start)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    largest = own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "seconds": round(first, 3),
        "query_ms": round(1000 * statistics.median(taken), 1),
        "memory_mb": round(largest / 1024, 1),
        "files": ranking.searched,
    }


if __name__ == "__main__":
    main()
