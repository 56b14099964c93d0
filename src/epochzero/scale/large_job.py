"""A large job: several workers read pieces of its logs, which are then joined."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import BinaryIO, cast

from epochzero.diagnose import Facts, LogRead, find_facts
from epochzero.errors import InputError
from epochzero.logs.parts import PartScan, starts_of
from epochzero.logs.source import HEAD_BYTES, Log, find_logs, is_encoded, last_attempts, rank_of
from epochzero.scale import sources
from epochzero.scale.results import Row, ScaleRun, diagnosed, not_diagnosed
from epochzero.scale.sources import JobFile, SourceJob
from epochzero.scale.storage import Storage
from epochzero.scale.work import diagnoser, placed

READ_AT_ONCE = 8 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """What one worker reads: a log, or a part of a large one.

    Attributes:
        log: its name and rank.
        file: of the log.
        starts: approximate starts of the parts of the log.
        number: of the part.
    """

    log: Log
    file: JobFile
    starts: tuple[int, ...] = (0,)
    number: int = 0


Read = LogRead | PartScan | str | None
"""Result of reading a piece; a text if it cannot be read, None if the log must be read sequentially."""


def pieces_of(run: ScaleRun, job: SourceJob) -> list[Piece]:
    """Return the pieces in which a job is read; one if it is small."""
    if job.problem or job.size <= sources.BYTES_PER_PART:
        return []
    files = {_name(job, file): file for file in job.logs}
    logs = last_attempts([Log(name, rank=rank_of(name)) for name in files])
    return [
        Piece(log, files[log.name], starts, number)
        for log in logs
        for starts in [_starts(run, files[log.name])]
        for number in range(len(starts))
    ]


def _name(job: SourceJob, file: JobFile) -> str:
    return file.name if job.folder else job.id


def _starts(run: ScaleRun, file: JobFile) -> tuple[int, ...]:
    """Return approximate starts of the parts of a log; a compressed log can only be read from its start."""
    starts = starts_of(file.size, sources.BYTES_PER_PART) if file.data is None else (0,)
    if len(starts) == 1:
        return starts
    try:
        with _opened(run, file) as stream:
            return (0,) if is_encoded(stream.read(HEAD_BYTES)) else starts
    except InputError:  # reported by the worker that reads it
        return (0,)


@contextmanager
def _opened(run: ScaleRun, file: JobFile) -> Iterator[BinaryIO]:
    with Storage.at(run.source).open(file.place) as raw:
        yield cast("BinaryIO", io.BufferedReader(raw, READ_AT_ONCE))


def read_piece(run: ScaleRun, job: SourceJob, piece: Piece) -> Read:
    """Read one piece of a job."""
    try:
        if len(piece.starts) == 1:
            return _read_log(run, job, piece)
        with _opened(run, piece.file) as stream:
            reader = diagnoser(run.signatures, run.redact)
            return reader.read_part(stream, piece.file.size, piece.starts, piece.number)
    except InputError as error:
        return str(error)
    except Exception as error:  # one log of a million must not end the others
        return f"{type(error).__name__}: {error}"


def _read_log(run: ScaleRun, job: SourceJob, piece: Piece) -> LogRead:
    log, file = piece.log, piece.file
    with placed(run, job.only(file.name)) as folder:
        (found,) = find_logs([folder / file.name])
        named = replace(found, name=log.name, rank=log.rank, restarts=log.restarts)
        return diagnoser(run.signatures, run.redact).read(named)


def conclude(run: ScaleRun, job: SourceJob, pieces: Sequence[Piece], reads: Sequence[Read]) -> Row:
    """Return the row of a job whose pieces have all been read.

    Args:
        run, job: to which they belong.
        pieces: all of them.
        reads: the result of reading each.
    """
    for read in reads:
        if isinstance(read, str):
            return not_diagnosed(job.id, read)
    try:
        logs = [
            _joined(run, job, [piece for piece, _ in of], [read for _, read in of])
            for _, group in groupby(zip(pieces, reads, strict=True), lambda pair: pair[0].log)
            for of in [list(group)]
        ]
        facts = _facts(run, job)
        found = diagnoser(run.signatures, run.redact).conclude(logs, facts)
        return diagnosed(job.id, found, facts)
    except InputError as error:
        return not_diagnosed(job.id, str(error))


def _joined(
    run: ScaleRun, job: SourceJob, pieces: Sequence[Piece], reads: Sequence[Read]
) -> LogRead:
    """Return one log, whose pieces have all been read."""
    (first, *_) = reads
    if isinstance(first, LogRead):
        return first
    parts = [read for read in reads if isinstance(read, PartScan)]
    if len(parts) == len(reads):
        log, size = pieces[0].log, pieces[0].file.size
        if joined := diagnoser(run.signatures, run.redact).join(log, parts, size):
            return joined
    return _read_log(run, job, pieces[0])


def _facts(run: ScaleRun, job: SourceJob) -> Facts:
    """Return the facts next to the logs of a job in its directory."""
    logs = {log.name for log in job.logs}
    beside = [file.name for file in job.files if file.name not in logs]
    if not beside:
        return Facts()
    with placed(run, job.only(*beside)) as folder:
        return find_facts([folder])
