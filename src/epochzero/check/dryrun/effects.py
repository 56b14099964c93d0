"""The side effects that a job would have: files, connections, programs. None of them persists."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from epochzero.check.dryrun.attempt import DryRunPlan
from epochzero.check.dryrun.contain.model import Exit, FileChange
from epochzero.check.dryrun.model import Effects, ProvidedFiles, WrittenFiles
from epochzero.check.dryrun.records import Network, Record, SaveRecord, SpawnRecord
from epochzero.check.launch.model import Job

MOST = 5
"""Maximum number of locations, addresses and programs that are listed."""


def effects_of(
    ended: Sequence[Exit],
    records: Iterable[Record],
    job: Job,
    plans: Iterable[DryRunPlan] = (),
) -> Effects:
    """The side effects of the attempt that wrote most.

    Args:
        ended: how each attempt ended.
        records: records of all attempts.
        job: the job.
        plans: their plans; files that a plan places are not effects of the job.
    """
    all_records = list(records)
    made = [p for plan in plans for p in plan.made if p.source]
    saved = {
        Path(value.path): value.bytes for value in all_records if isinstance(value, SaveRecord)
    }
    written = max(
        ([_in_full(c, saved) for c in process.changes if _is_own(c, made)] for process in ended),
        key=lambda changes: (sum(change.size for change in changes), len(changes)),
    )
    deleted = dict.fromkeys(
        _shown(change.path, job.base)
        for process in ended
        for change in process.changes
        if change.how == "deleted"
    )
    return Effects(
        containment=ended[0].containment.description,
        leaks=ended[0].containment.leaks,
        written=tuple(_by_folder(written, job)),
        deleted=_named(deleted),
        addresses=_named(value.address for value in all_records if isinstance(value, Network)),
        programs=_named(value.program for value in all_records if isinstance(value, SpawnRecord)),
        deletions=len(deleted),
    )


def _is_own(change: FileChange, made: Iterable[ProvidedFiles]) -> bool:
    """Whether the job wrote it; a file that was placed for it still has its original size."""
    for provided_files in made:
        if change.path.is_relative_to(provided_files.path):
            source = Path(provided_files.source, os.path.relpath(change.path, provided_files.path))
            if source.is_file() and source.stat().st_size == change.size:
                return False
    return change.how != "deleted"


def _in_full(change: FileChange, saved: Mapping[Path, int]) -> FileChange:
    """The file with the size that it would have on the platform."""
    return replace(change, size=max(change.size, saved.get(change.path, 0)))


def _by_folder(changes: Iterable[FileChange], job: Job) -> Iterable[WrittenFiles]:
    """Sizes by top-level directory of the job, or by directory elsewhere; the largest first."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for change in changes:
        folder = _folder(change.path, job.base)
        if not change.directory:
            files[folder] += 1
            sizes[folder] += change.size
    return [WrittenFiles(folder, files[folder], size) for folder, size in sizes.most_common(MOST)]


def _shown(path: Path, base: Path) -> str:
    return str(path.relative_to(base) if path.is_relative_to(base) and path != base else path)


def _folder(path: Path, base: Path) -> str:
    if not path.is_relative_to(base):
        return str(path.parent)
    inside = path.relative_to(base).parts
    return f"{inside[0]}/" if len(inside) > 1 else path.name


def _named(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))[:MOST]
