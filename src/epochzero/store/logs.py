"""Logs in the store: split at line ends, compressed, with equal parts stored once.

A part ends after a line whose checksum has a certain form, not at a fixed size: if two logs differ
in some lines, the parts before and after these lines are still equal (content-defined
chunking; Muthitacharoen et al., "A Low-bandwidth Network File System", SOSP 2001, Section 3.1).
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import Session

from epochzero import zstd
from epochzero.store.bulk_insert import insert_each_once, insert_rows
from epochzero.store.schema import Chunk, OutputChunk, OutputRow

_LEAST = 64 << 10
_MOST = 1 << 20
# One in this many lines ends a part: about 100 kB of typical lines beyond the minimum.
_ONE_LINE_IN = 1024
_LEVEL = 6
_PARTS_AT_ONCE = 250
_BYTES_AT_ONCE = 2 << 20
"""Maximum size of the parts in memory at a time."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Consecutive lines of a log.

    Attributes:
        first: number of the first line, counted from 1.
        is_end: whether the log ends after these lines.
    """

    first: int
    lines: tuple[str, ...]
    is_end: bool


def lines_of(parts: Iterable[bytes], first: int, count: int) -> Lines:
    """A number of consecutive lines of a log, fewer at its end. No more of the log is read than needed.

    Args:
        parts: the bytes of the log, split anywhere.
        first: number of the first line, from 1.
        count: number of lines.
    """
    # Reading one more line than requested shows whether the log continues.
    found = b"".join(cut_lines(parts, first, count + 1)).split(b"\n")
    if not found[-1]:
        found.pop()
    return Lines(first, _texts(found[:count]), is_end=len(found) <= count)


def last_lines(parts: Iterable[bytes], count: int) -> tuple[str, ...]:
    """The last lines of a log, from at most the last `_MOST` bytes."""
    end = b""
    for part in parts:
        end = (end + part)[-_MOST:]
    lines = end.removesuffix(b"\n").split(b"\n") if end else []
    return _texts(lines[-count:])


def cut_lines(parts: Iterable[bytes], first: int, count: int | None) -> Iterator[bytes]:
    """The same lines as bytes, in parts; a count of None means all lines from the first on."""
    before, left = first - 1, count
    for part in parts:
        begin = 0
        if before:
            ends = part.count(b"\n")
            if ends < before:
                before -= ends
                continue
            begin, before = _after(part, 0, before), 0
        if left is not None:
            ends = part.count(b"\n", begin)
            if ends >= left:
                yield part[begin : _after(part, begin, left)]
                return
            left -= ends
        yield part[begin:]


def _after(part: bytes, begin: int, lines: int) -> int:
    """The offset after a number of line ends, which must exist."""
    for _ in range(lines):
        begin = part.index(b"\n", begin) + 1
    return begin


def _texts(lines: list[bytes]) -> tuple[str, ...]:
    return tuple(line.decode("utf-8", "replace").removesuffix("\r") for line in lines)


Parts = Callable[[OutputRow], Iterable[bytes] | None]
"""The bytes of a log, split at line ends; None if they no longer exist."""


def parts_in(folder: Path, text: Callable[[bytes], bytes]) -> Parts:
    """The logs in a directory that belong to the attempt.

    Args:
        folder: of the attempt.
        text: transforms a part of a log before it is stored.
    """

    def parts(output: OutputRow) -> Iterable[bytes] | None:
        paths = [folder / path for path in output.paths]
        if not paths or not all(_is_ours(path, folder) for path in paths):
            return None
        return (text(chunk) for path in paths for chunk in chunks_of(path))

    return parts


def parts_of(log: IO[bytes], text: Callable[[bytes], bytes], sizes: Sequence[int] = ()) -> Parts:
    """An open log, from its start; its `part_sizes` if they are known already."""

    def parts(_: OutputRow) -> Iterable[bytes]:
        log.seek(0)
        return map(text, map(log.read, sizes) if sizes else _chunks(log))

    return parts


def part_sizes(log: IO[bytes]) -> list[int]:
    """The sizes of the parts that an open log is split into; for a large log this takes long."""
    log.seek(0)
    return [len(chunk) for chunk in _chunks(log)]


_Piece = tuple[dict[str, Any], bytes]
"""A part of a log: its offset and its bytes."""


def store_outputs(session: Session, parts: Mapping[int, Parts]) -> None:
    """Stores the logs of exited ranks; a log whose file no longer exists is skipped.

    Args:
        session: a writing session.
        parts: the logs of each rank, by rank number.
    """
    if not parts:
        return
    outputs = session.scalars(
        select(OutputRow).where(OutputRow.rank_id.in_(parts), OutputRow.stored.is_(None))
    ).all()
    for some in _together(_pieces(outputs, parts)):
        chunks = {place["digest"]: chunk for place, chunk in some}
        known = set(session.scalars(select(Chunk.digest).where(Chunk.digest.in_(chunks))))
        new = [
            {"digest": digest, "size": len(chunk), "data": zstd.compress(chunk, _LEVEL)}
            # In a fixed order: two writers that wait for each other's rows would deadlock.
            for digest, chunk in sorted(chunks.items())
            if digest not in known
        ]
        insert_each_once(session, Chunk, new)
        insert_rows(session, OutputChunk, [place for place, _ in some])


def _together(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Groups of parts; each group is written in one statement."""
    some: list[_Piece] = []
    size = 0
    for piece in pieces:
        some.append(piece)
        size += len(piece[1])
        if len(some) >= _PARTS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _pieces(outputs: Iterable[OutputRow], parts: Mapping[int, Parts]) -> Iterator[_Piece]:
    """The parts of logs, each with its position in its log."""
    for output in outputs:
        found = parts[output.rank_id](output)
        if found is None:
            continue
        stored = 0
        for position, chunk in enumerate(found):
            stored += len(chunk)
            place = {"output_id": output.id, "position": position, "digest": _digest(chunk)}
            yield place, chunk
        output.stored = stored


def _digest(chunk: bytes) -> str:
    return hashlib.blake2b(chunk, digest_size=16).hexdigest()


def has_log(session: Session, rank: int, log: Parts, size: int) -> bool:
    """Whether the stored log of a rank equals a given log; for a pruned log, only the size is compared.

    Args:
        session: a reading session.
        rank: row number of the rank.
        log: the log to compare.
        size: its size as written, in bytes.
    """
    for output in session.scalars(select(OutputRow).where(OutputRow.rank_id == rank)):
        if output.stored is None:
            if output.size != size:
                return False
            continue
        digests = session.scalars(
            select(OutputChunk.digest)
            .where(OutputChunk.output_id == output.id)
            .order_by(OutputChunk.position)
        ).all()
        if list(digests) != [_digest(chunk) for chunk in log(output) or ()]:
            return False
    return True


def forget_outputs(session: Session, ranks: Select[int] | Sequence[int]) -> None:
    """Removes the logs of ranks from the store; their parts remain, because other logs may share them."""
    outputs = select(OutputRow.id).where(OutputRow.rank_id.in_(ranks))
    session.execute(delete(OutputChunk).where(OutputChunk.output_id.in_(outputs)))
    session.execute(update(OutputRow).where(OutputRow.rank_id.in_(ranks)).values(stored=None))


def read_output(session: Session, output: OutputRow) -> Iterator[bytes]:
    """The bytes of a log, in parts."""
    digests = session.scalars(
        select(OutputChunk.digest)
        .where(OutputChunk.output_id == output.id)
        .order_by(OutputChunk.position)
    )
    for digest in digests.all():
        chunk = session.get_one(Chunk, digest)
        yield zstd.decompress(chunk.data)
        session.expunge(chunk)


def _is_ours(part: Path, folder: Path) -> bool:
    """Whether a file exists inside the directory: a journal may name files that do not belong to it."""
    return part.resolve().is_relative_to(folder.resolve()) and part.is_file()


def chunks_of(path: Path) -> Iterator[bytes]:
    """The parts of a file, split at line ends."""
    with open(path, "rb") as file:
        yield from _chunks(file)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Parts that end at line ends; a line longer than a part is split."""
    part = io.BytesIO()
    while line := file.readline(_MOST - part.tell()):
        part.write(line)
        size = part.tell()
        if size >= _MOST or (size >= _LEAST and zlib.crc32(line) % _ONE_LINE_IN == 0):
            yield part.getvalue()
            part = io.BytesIO()
    if part.tell():
        yield part.getvalue()
