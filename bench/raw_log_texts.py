"""Rebuilds the raw logs that ``labels/raw_logs*.jsonl`` refer to.

python bench/raw_log_texts.py --clones DIR

The logs belong to other projects, so only their references are part of the repository: repository,
commit, path and SHA-256. ``DIR`` contains a clone (or bare repository) of each repository in a
directory named ``owner+name``, directly or one level down. Each text is read from the clone's
objects, checked against its hash, and written to a cache outside of the repository.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import REPOSITORY, SEED, jsonl, scratch

__all__ = [
    "EVALUATED",
    "HALVES",
    "LABELS",
    "NUMBERED",
    "SETS",
    "RawLog",
    "Root",
    "all_logs",
    "cached",
    "half_of",
    "raw_logs",
    "rebuild",
]

LABELS = REPOSITORY / "bench" / "labels" / "raw_logs.jsonl"
NUMBERED = range(2, 9)
"""Numbers of the blind sets after the first one. A new set needs its file and a higher end here."""
SETS = (
    LABELS,
    LABELS.with_name("raw_logs_blind.jsonl"),
    *(LABELS.with_name(f"raw_logs_blind_{number}.jsonl") for number in NUMBERED),
)
EVALUATED = SETS[:4]
"""Sets whose logs have all been evaluated: used for development, and to train models."""
HALVES = ("open", "held_out")


@dataclass(frozen=True, slots=True)
class Root:
    """A line that names the failure.

    Attributes:
        line: its number, from 1; lines end at a line feed.
        hashes: of its text, and of the part that a terminal shows after a carriage return.
    """

    line: int
    hashes: frozenset[str]


@dataclass(frozen=True, slots=True)
class RawLog:
    """Reference and labels of a log.

    Attributes:
        id: ``owner+name#`` and the start of the hash.
        repository, commit, path: where the text is.
        sha256: of the text.
        half: "open" or "held_out", where all logs of a repository are in the same half; "blind"; or
            a half of a later blind set: "blind_2_open", "blind_2_held_out", and so on.
        ranks: "one" or "several".
        ended: "failed", "well", "cut" if the log does not show the end, or "disputed" if the two
            readings of the label differ; a disputed log is not measured.
        root: the line that names the failure; None unless the job failed.
        root_also: lines that are accepted too: the same message of other ranks, its wrapper.
        rank: of the process that failed first; None where the log does not show it.
        category, also, root_cause, phase, retry: as defined in the taxonomy; empty unless failed.
    """

    id: str
    repository: str
    commit: str
    path: str
    sha256: str
    half: str
    ranks: str
    ended: str
    root: Root | None
    root_also: tuple[Root, ...]
    rank: int | None
    category: str
    also: tuple[str, ...]
    root_cause: str
    phase: str
    retry: str


def half_of(repository: str) -> str:
    """The half that a repository is drawn into."""
    digest = hashlib.sha256(f"{SEED} raw logs {repository}".encode()).digest()
    return HALVES[digest[0] % 2]


def raw_logs(path: Path = LABELS) -> list[RawLog]:
    """The labelled logs of one file."""
    return [_raw_log(record) for record in jsonl(path)]


def all_logs() -> list[RawLog]:
    """The labelled logs of all sets."""
    return [log for path in SETS for log in raw_logs(path)]


def _raw_log(record: Mapping[str, Any]) -> RawLog:
    root = record.get("root")
    return RawLog(
        **{name: record[name] for name in ("id", "repository", "commit", "path", "sha256")},
        **{name: record[name] for name in ("half", "ranks", "ended")},
        root=_root(root) if root else None,
        root_also=tuple(_root(each) for each in record.get("root_also", ())),
        rank=record.get("rank"),
        category=record.get("category", ""),
        also=tuple(record.get("also", ())),
        root_cause=record.get("root_cause", "unknown"),
        phase=record.get("phase", "unknown"),
        retry=record.get("retry", "unknown"),
    )


def _root(record: Mapping[str, Any]) -> Root:
    return Root(record["line"], frozenset(record["hashes"]))


def default_cache() -> Path:
    """Where the texts are stored unless an option says otherwise."""
    return scratch() / "raw_logs"


def cached(log: RawLog, cache: Path) -> Path:
    """Where the text of a log is stored."""
    return cache / f"{log.sha256}.log"


def rebuild(log: RawLog, clones: Path, cache: Path) -> str:
    """Writes the text of a log to the cache unless it is there.

    Returns:
        What prevented it; empty if nothing did.
    """
    target = cached(log, cache)
    if target.is_file():
        return ""
    name = log.repository.replace("/", "+")
    for repository in _git_directories(clones / name):
        command = ("git", f"--git-dir={repository}", "cat-file", "blob", f"{log.commit}:{log.path}")
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            continue
        if hashlib.sha256(done.stdout).hexdigest() != log.sha256:
            return f"{name}: {log.path} at {log.commit[:12]} is not the text that was labelled"
        cache.mkdir(parents=True, exist_ok=True)
        target.write_bytes(done.stdout)
        return ""
    return f"{name}: no {log.path} at {log.commit[:12]} in {clones}"


def _git_directories(folder: Path) -> Iterator[Path]:
    """The repositories in a folder: itself or directly below, bare or not."""
    below = sorted(folder.iterdir()) if folder.is_dir() else []
    for place in (folder, *below):
        for candidate in (place, place / ".git"):
            if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
                yield candidate


def main() -> int:
    """Rebuilds all logs; returns 1 if one is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clones", type=Path, required=True, metavar="DIR")
    parser.add_argument("--cache", type=Path, default=default_cache(), metavar="DIR")
    options = parser.parse_args()
    logs = all_logs()
    problems = [text for log in logs if (text := rebuild(log, options.clones, options.cache))]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(logs) - len(problems)} of {len(logs)} logs are in {options.cache}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
