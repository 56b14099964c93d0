"""What a job would have left behind: files, connections, programs. Nothing of it lasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from epochzero.check.dryrun.contain.model import Change, Ended
from epochzero.check.dryrun.model import Effects, Written
from epochzero.check.dryrun.records import Network, Record, Spawned
from epochzero.check.job.model import Job

__all__ = ["effects_of"]

MOST = 5
"""Places, addresses and programs that are named of each."""


def effects_of(ended: Sequence[Ended], records: Iterable[Record], job: Job) -> Effects:
    """Of several attempts, what the one that wrote most would have written."""
    told = list(records)
    most = max(ended, key=lambda one: sum(change.size for change in one.changes))
    written = [change for change in most.changes if change.how != "deleted"]
    return Effects(
        containment=most.containment.description,
        leaks=most.containment.leaks,
        written=tuple(_by_folder(written, job)),
        deleted=_named(_shown(one.path, job.base) for one in most.changes if one.how == "deleted"),
        addresses=_named(one.address for one in told if isinstance(one, Network)),
        programs=_named(one.program for one in told if isinstance(one, Spawned)),
    )


def _by_folder(changes: Iterable[Change], job: Job) -> Iterable[Written]:
    """By the first folder below that of the job, or by the folder elsewhere; the largest first."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for change in changes:
        folder = _folder(change.path, job.base)
        if change.size:
            files[folder] += 1
            sizes[folder] += change.size
    return [Written(folder, files[folder], size) for folder, size in sizes.most_common(MOST)]


def _shown(path: Path, base: Path) -> str:
    return str(path.relative_to(base) if path.is_relative_to(base) and path != base else path)


def _folder(path: Path, base: Path) -> str:
    if not path.is_relative_to(base):
        return str(path.parent)
    inside = path.relative_to(base).parts
    return f"{inside[0]}/" if len(inside) > 1 else path.name


def _named(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))[:MOST]
