"""How long the first answer takes, the next commit, and a query, and how much memory.

Each is measured in a new process, with all cores that it may use; the repository is any clone with
some 1,500 source files. ``command_seconds`` is the whole process, from the start of Python to its
end: what a person waits for. A yardstick is measured with each repeat, as machines differ and a
shared one differs from itself: what git alone takes to list the tree and to read all of its files.

    python bench/localization_speed.py --repo DIR
    python bench/localization_speed.py --merge DIR    # all clones in DIR as one repository

With ``--merge`` the result is ``localization_scale``. Processor seconds are of this process and its
children; they depend less than seconds on what else the machine does.
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
from collections.abc import Sequence
from pathlib import Path

from common import save

import epochzero
from epochzero.code import Cache, Repository
from epochzero.locate import DEFAULT_METHOD
from epochzero.study.localization.bugs import clones

REPORT = """Training crashes in the data loader when the last batch is smaller

`ValueError: shapes do not match` is raised by the optimizer after an epoch, with several workers.
The loss of the last batch is nan before. I expected that the batch is padded or dropped.
"""
QUERIES = 20


def main() -> None:
    """Measures, prints and keeps."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--repo", type=Path)
    which.add_argument("--merge", type=Path, metavar="DIR", help="folder of clones")
    parser.add_argument("--rev", default="HEAD")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("CACHE", "REV"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_one(options.repo, *options.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.merge:
            repo = Path(folder) / "merged.git"
            numbers = merged(sorted(clones(options.merge).values()), repo)
        else:
            repo, numbers = options.repo, {"repository": options.repo.parent.name}
        runs = [_repeat(repo, options.rev) for _ in range(options.repeats)]
    numbers["method"] = DEFAULT_METHOD
    for name in ("cold", "next_commit", "same_commit"):
        for key in (
            "seconds",
            "cpu_seconds",
            "command_seconds",
            "query_ms",
            "query_cpu_ms",
            "memory_mb",
            "files",
        ):
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
    save("localization_scale" if options.merge else "localization_speed", numbers)


def merged(repositories: Sequence[Path], target: Path) -> dict[str, object]:
    """Makes one repository of several: all their commits, and their files in one tree.

    Of two files with the same path the first counts. Files that a partial clone lacks are left out. The objects
    stay where they are.

    Args:
        repositories: git directories.
        target: of the new bare repository.

    Returns:
        How many repositories, files and commits it has.
    """
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", target], check=True
    )
    objects = "".join(f"{repository.resolve()}/objects\n" for repository in repositories)
    (target / "objects/info/alternates").write_text(objects)
    tips: list[str] = []
    entries: dict[bytes, bytes] = {}
    folders: set[bytes] = set()
    for repository in repositories:
        tips.append(
            _git(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
            .split()[0]
            .decode()
        )
        lines = _git(repository, "ls-tree", "-r", "-z", tips[-1]).split(b"\0")[:-1]
        names = b"\n".join(line.split()[2] for line in lines)
        known = _git(repository, "cat-file", "--batch-check", given=names).splitlines()
        for line, object_ in zip(lines, known, strict=True):
            if object_.endswith(b" missing"):
                continue
            entry, path = line.split(b"\t", 1)
            parts = path.split(b"/")
            above = {b"/".join(parts[:n]) for n in range(1, len(parts))}
            if path not in folders and entries.keys().isdisjoint({path, *above}):
                entries[path] = entry
                folders |= above
    rows = [b" ".join((e.split()[0], e.split()[2])) + b"\t" + p + b"\0" for p, e in entries.items()]
    _git(target, "update-index", "-z", "--index-info", given=b"".join(rows))
    tree = _git(target, "write-tree", "--missing-ok").decode().strip()
    for _ in range(2):  # the first has all parents, so that the second has a commit before it
        parents = [word for tip in tips for word in ("-p", tip)]
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
        tips = [
            _git(target, *who, "commit-tree", "-m", "All files", *parents, tree).decode().strip()
        ]
    _git(target, "update-ref", "refs/heads/main", tips[0])
    commits = int(_git(target, "rev-list", "--count", "main"))
    return {"repositories": len(repositories), "all_files": len(entries), "commits": commits}


def _git(repository: Path, *command: str, given: bytes = b"") -> bytes:
    whole = ["git", "--git-dir", str(repository), *command]
    return subprocess.run(whole, input=given, stdout=subprocess.PIPE, check=True).stdout


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
    start, cpu = time.perf_counter(), _cpu_seconds()
    locator = epochzero.Locator(Repository(repo), cache=Cache(cache))
    ranking = locator.locate(REPORT, rev)
    first, first_cpu = time.perf_counter() - start, _cpu_seconds() - cpu
    taken, cpu_taken = [], []
    for number in range(QUERIES):
        start, cpu = time.perf_counter(), _cpu_seconds()
        locator.locate(f"{REPORT} number {number}", rev)
        taken.append(time.perf_counter() - start)
        cpu_taken.append(_cpu_seconds() - cpu)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    largest = own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "seconds": round(first, 3),
        "cpu_seconds": round(first_cpu, 3),
        "query_ms": round(1000 * statistics.median(taken), 1),
        "query_cpu_ms": round(1000 * statistics.median(cpu_taken), 1),
        "memory_mb": round(largest / 1024, 1),
        "files": ranking.searched,
    }


def _cpu_seconds() -> float:
    """Of this process and the children that have ended."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


if __name__ == "__main__":
    main()
