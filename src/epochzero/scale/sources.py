"""SOURCE -> jobs -> parts: what to diagnose, in portions that are diagnosed and written at once.

A directory or bucket contains jobs as for ``study failures``: each subdirectory is a job, and so is each log directly
in it. Archives and Parquet files in it contain jobs too. Workers read objects; archives and Parquet files are read
here sequentially, since neither supports random access.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from epochzero.errors import InputError
from epochzero.logs.source import is_facts_name, is_log_name
from epochzero.parquet import STREAMED
from epochzero.scale.storage import Storage, Stored, arrow

LOGS_PER_PART = 250
"""On average; at most twice as many."""
BYTES_PER_PART = 64 << 20
LARGEST_MEMBER = 1 << 30
"""Limit for a file in an archive or Parquet file, which is held in memory; a larger one must be unpacked."""
ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip")
TABLE = ".parquet"
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job.

    Attributes:
        name: within the job's directory; the log's name if the job is a single log.
        place: path relative to SOURCE.
        size: in bytes.
        stamp: changes with its content.
        data: its content, if it comes from an archive or Parquet file.
    """

    name: str
    place: str
    size: int
    stamp: str
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SourceJob:
    """A job with logs.

    Attributes:
        id: unique in SOURCE.
        files: its logs, and facts next to them.
        folder: whether the files have a directory of their own.
        problem: why it cannot be diagnosed; empty if it can.
    """

    id: str
    files: tuple[JobFile, ...]
    folder: bool = False
    problem: str = ""

    @property
    def size(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def logs(self) -> tuple[JobFile, ...]:
        """The files that are logs; if there are none, the files with facts (see `find_logs`)."""
        if not self.folder:
            return self.files
        named = tuple(file for file in self.files if is_log_name(PurePosixPath(file.name).name))
        return named or self.files

    def only(self, *names: str) -> SourceJob:
        """Return the job with only these of its files."""
        return replace(self, files=tuple(file for file in self.files if file.name in names))


@dataclass(frozen=True, slots=True)
class Part:
    """Jobs that are diagnosed and written together.

    Attributes:
        name: of its Parquet file: a hash of its input.
        jobs: at least one.
    """

    name: str
    jobs: tuple[SourceJob, ...]


def parts_of(jobs: Iterable[SourceJob], key: str) -> Iterator[Part]:
    """Divide jobs into parts, the same for the same jobs in the same order.

    The name of a job decides whether a part begins with it, so that a new job changes only its own part and those up to the next
    such name (content-defined chunking: Muthitacharoen, Chen and Mazieres, SOSP 2001).

    Args:
        jobs: in a reproducible order.
        key: of the run, so that parts of different runs have different names.
    """
    waiting: list[SourceJob] = []
    size = 0
    for job in jobs:
        full = len(waiting) == 2 * LOGS_PER_PART or size + job.size > BYTES_PER_PART
        if waiting and (full or _begins_part(job)):
            yield _part(waiting, key)
            waiting, size = [], 0
        waiting.append(job)
        size += job.size
    if waiting:
        yield _part(waiting, key)


def _begins_part(job: SourceJob) -> bool:
    digest = blake2b(job.id.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % LOGS_PER_PART == 0


def _part(jobs: list[SourceJob], key: str) -> Part:
    digest = blake2b(key.encode(), digest_size=12)
    for job in jobs:
        for text in (job.id, *(f"{file.place}\0{file.size}\0{file.stamp}" for file in job.files)):
            digest.update(f"{text}\n".encode())
    return Part(f"part-{digest.hexdigest()}.parquet", tuple(jobs))


def jobs_of(source: Storage) -> Iterator[SourceJob]:
    """Yield the jobs of SOURCE in a reproducible order.

    Raises:
        InputError: SOURCE does not exist, cannot be read, or contains no job.
    """
    kind = source.kind()
    if not kind:
        raise InputError(f"{source.name}: no such file, directory or bucket")
    found = False
    for job in _of_file(source) if kind == "file" else _of_folder(source):
        found = True
        yield job
    if not found:
        raise InputError(
            f"{source.name} contains no logs; expected directories of logs, logs named such as *.log or *.out, "
            "archives (.tar, .tar.gz, .zip), or Parquet files with a column `log`"
        )


def _of_file(source: Storage) -> Iterator[SourceJob]:
    (stored,) = source.listed()
    if reader := _reader(stored.name):
        yield from reader(source, stored, "", "")
    else:
        yield SourceJob(stored.name, (JobFile(stored.name, "", stored.size, stored.stamp),))


def _of_folder(source: Storage) -> Iterator[SourceJob]:
    for top, group in groupby(sorted(source.listed(), key=_top), key=_top):
        files = list(group)
        logs: list[JobFile] = []
        for stored in files:
            name = stored.name.removeprefix(f"{top}/")
            if reader := _reader(stored.name):
                yield from reader(source, stored, stored.name, f"{stored.name}/")
            elif stored.name == top:
                if is_log_name(top):
                    yield SourceJob(top, (JobFile(top, top, stored.size, stored.stamp),))
            elif _belongs_to_job(name):
                logs.append(JobFile(name, stored.name, stored.size, stored.stamp))
        if logs:
            yield _folder_job(top, logs)


def _top(stored: Stored) -> str:
    return stored.name.partition("/")[0]


def _belongs_to_job(name: str) -> bool:
    """Whether a file belongs to a job: logs at any depth, facts next to the topmost ones."""
    return is_log_name(PurePosixPath(name).name) or ("/" not in name and is_facts_name(name))


def _folder_job(name: str, files: list[JobFile]) -> SourceJob:
    return SourceJob(name, tuple(files), folder=True)


Reader = Callable[[Storage, Stored, str, str], Iterator[SourceJob]]
"""Yields the jobs of a file, from: its storage, the file, its name there, the prefix of the jobs' names."""


def _reader(name: str) -> Reader | None:
    lowered = name.lower()
    if lowered.endswith(TABLE):
        return _of_table
    return _of_archive if lowered.endswith(ARCHIVES) else None


# Parquet


def _of_table(source: Storage, stored: Stored, name: str, front: str) -> Iterator[SourceJob]:
    """Yield a job for each row, with its text in the column ``log`` and its name in ``id`` if that exists."""
    row = 0
    with source.open(name) as raw:
        try:
            table = arrow("pyarrow.parquet").ParquetFile(raw, **STREAMED)
            columns = [literal for literal in ("id", "log") if literal in table.schema_arrow.names]
            if "log" not in columns:
                raise InputError(
                    f"{source.path(name)} has no column named `log` that contains the text of each log"
                )
            for batch in table.iter_batches(_ROWS_AT_ONCE, columns=columns):
                for record in batch.to_pylist():
                    row += 1
                    yield _row(record, f"{front or stored.name + '/'}{row}", stored)
        except (OSError, arrow().ArrowException) as error:
            raise InputError(f"{source.path(name)} is not a readable Parquet file") from error


def _row(record: dict[str, Any], place: str, stored: Stored) -> SourceJob:
    log, given = record["log"], record.get("id")
    name = place if given is None else str(given)
    if not isinstance(log, str | bytes):
        return SourceJob(name, (), problem="its column `log` does not contain text")
    data = log.encode("utf-8", "replace") if isinstance(log, str) else log
    return SourceJob(name, (JobFile("log", place, len(data), stored.stamp, data),))


# Archives


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    size: int
    open: Callable[[], Any]

    def read(self) -> bytes:
        """Return its content, at most slightly more than the limit, whatever size the archive states."""
        with self.open() as file:
            data: bytes = file.read(LARGEST_MEMBER + 1)
        return data


def _of_archive(source: Storage, stored: Stored, name: str, front: str) -> Iterator[SourceJob]:
    """Yield the jobs of the directory in the archive, without a directory that all members share."""
    place = source.path(name)
    with _unpackable(place), source.open(name) as raw, _archive(raw, stored.name) as archive:
        members, damage = _readable(archive)
        shared = _shared_folder([member.name for member in members])
        # In the archive's order: a compressed one cannot be read backwards.
        groups: dict[str, list[tuple[str, _Member]]] = {}
        for member in members:
            inside = member.name.removeprefix(shared)
            groups.setdefault(inside.partition("/")[0], []).append((inside, member))
        for top, group in groups.items():
            yield from _of_members(top, group, stored, front)
        if damage:
            problem = (
                f"the archive is damaged ({damage}); only the jobs before the damage were read"
            )
            yield SourceJob(stored.name, (), problem=problem)


_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
"""Exceptions for a damaged archive, or one that requires a password."""


@contextmanager
def _unpackable(place: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise InputError(f"{place} cannot be extracted: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    return str(error) or "it is truncated"


def _readable(archive: tarfile.TarFile | zipfile.ZipFile) -> tuple[list[_Member], str]:
    """Return the members before the point where the archive is damaged, and a description of the damage."""
    members: list[_Member] = []
    try:
        for member in _members(archive):
            members.append(member)
    except _DAMAGE as error:
        if not members:
            raise
        return members, _reason(error)
    return members, ""


def _archive(raw: Any, name: str) -> tarfile.TarFile | zipfile.ZipFile:
    return zipfile.ZipFile(raw) if name.lower().endswith(".zip") else tarfile.open(fileobj=raw)


def _members(archive: tarfile.TarFile | zipfile.ZipFile) -> Iterator[_Member]:
    """Yield the regular files of an archive whose names do not lead outside of it."""
    found: Iterable[_Member]
    if isinstance(archive, zipfile.ZipFile):
        files = (member for member in archive.infolist() if not member.is_dir())
        found = (
            _Member(file.filename, file.file_size, partial(archive.open, file)) for file in files
        )
    else:
        regular = (member for member in archive if member.isreg())
        found = (_Member(m.name, m.size, partial(archive.extractfile, m)) for m in regular)
    for member in found:
        parts = PurePosixPath(member.name).parts
        if parts and ".." not in parts and parts[0] != "/":
            shown = "/".join(parts).encode("utf-8", "backslashreplace").decode()
            yield replace(member, name=shown)


def _shared_folder(names: list[str]) -> str:
    tops = {name.partition("/")[0] for name in names}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""


def _of_members(
    top: str, group: list[tuple[str, _Member]], stored: Stored, front: str
) -> Iterator[SourceJob]:
    alone = len(group) == 1 and group[0][0] == top
    wanted = [
        (name if alone else name.removeprefix(f"{top}/"), member)
        for name, member in group
        if (is_log_name(top) if alone else _belongs_to_job(name.removeprefix(f"{top}/")))
    ]
    if not wanted:
        return
    if sum(member.size for _, member in wanted) > LARGEST_MEMBER:
        problem = f"larger than {LARGEST_MEMBER >> 30} GiB in an archive: extract the archive first"
        yield SourceJob(front + top, (), not alone, problem)
        return
    try:
        files = [
            JobFile(name, f"{stored.name}/{member.name}", member.size, stored.stamp, member.read())
            for name, member in wanted
        ]
    except _DAMAGE as error:
        problem = f"the archive is damaged in this file: {_reason(error)}"
        yield SourceJob(front + top, (), not alone, problem)
        return
    yield SourceJob(front + top, tuple(files)) if alone else _folder_job(front + top, files)
