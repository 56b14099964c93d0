"""Logs in the store: cut at line ends, compressed, and equal parts kept once.

A part ends after a line whose checksum has a certain form, not at a fixed size: where a log differs
from another by some lines, the parts before and after these are still equal (content-defined
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

import zstandard
from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import Session

from epochzero.store.bulk_insert import insert_each_once, insert_rows
from epochzero.store.schema import Chunk, Output, OutputChunk

_LEAST = 64 << 10
_MOST = 1 << 20
# One line in so many ends a part: about 100 kB of usual lines beyond the least.
_ONE_LINE_IN = 1024
_LEVEL = 6
_PARTS_AT_ONCE = 250
_BYTES_AT_ONCE = 2 << 20
"""So many parts, or bytes of them, are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a log.

    Attributes:
        first: number of the first of them; 1 is the first of the log.
        is_end: whether the log ends after them.
    """

    first: int
    lines: tuple[str, ...]
    is_end: bool


def lines_of(parts: Iterable[bytes], first: int, count: int) -> Lines:
    """So many lines of a log from one on; fewer where it ends. No more of it is read than needed.

    Args:
        parts: the bytes of the log, cut anywhere.
        first: number of the first line, from 1.
        count: how many lines.
    """
    # One line more than asked for tells that the log goes on.
    found = b"".join(cut_lines(parts, first, count + 1)).split(b"\n")
    if not found[-1]:
        found.pop()
    return Lines(first, _texts(found[:count]), is_end=len(found) <= count)


def cut_lines(parts: Iterable[bytes], first: int, count: int | None) -> Iterator[bytes]:
    """The same as bytes, in parts; None for all lines from the first on."""
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
    """The place after so many line ends, which must be there."""
    for _ in range(lines):
        begin = part.index(b"\n", begin) + 1
    return begin


def _texts(lines: list[bytes]) -> tuple[str, ...]:
    return tuple(line.decode("utf-8", "replace").removesuffix("\r") for line in lines)


Parts = Callable[[Output], Iterable[bytes] | None]
"""The bytes of a log, cut at line ends; None where they are gone."""


def parts_in(folder: Path, text: Callable[[bytes], bytes]) -> Parts:
    """The logs that lie in a folder, as far as they are its own.

    Args:
        folder: of the attempt.
        text: what is kept of a part of a log.
    """

    def parts(output: Output) -> Iterable[bytes] | None:
        paths = [folder / path for path in output.paths]
        if not paths or not all(_is_ours(path, folder) for path in paths):
            return None
        return (text(chunk) for path in paths for chunk in chunks_of(path))

    return parts


def parts_of(log: IO[bytes], text: Callable[[bytes], bytes]) -> Parts:
    """A log that is open, from its beginning."""

    def parts(_: Output) -> Iterable[bytes]:
        log.seek(0)
        return map(text, _chunks(log))

    return parts


_Piece = tuple[dict[str, Any], bytes]
"""A part of a log: its place there, and its bytes."""


def store_outputs(session: Session, parts: Mapping[int, Parts]) -> None:
    """Takes in the logs of ranks that have ended; one whose bytes are gone stays without.

    Args:
        session: that writes.
        parts: where the logs of each rank are, by its number.
    """
    if not parts:
        return
    outputs = session.scalars(
        select(Output).where(Output.rank_id.in_(parts), Output.stored.is_(None))
    ).all()
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    for some in _together(_pieces(outputs, parts)):
        chunks = {place["digest"]: chunk for place, chunk in some}
        known = set(session.scalars(select(Chunk.digest).where(Chunk.digest.in_(chunks))))
        new = [
            {"digest": digest, "size": len(chunk), "data": compressor.compress(chunk)}
            # In order: two writers that wait for each other's rows would wait for ever.
            for digest, chunk in sorted(chunks.items())
            if digest not in known
        ]
        insert_each_once(session, Chunk, new)
        insert_rows(session, OutputChunk, [place for place, _ in some])


def _together(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """The parts in groups, each of which is written at once."""
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


def _pieces(outputs: Iterable[Output], parts: Mapping[int, Parts]) -> Iterator[_Piece]:
    """The parts of logs, each with its place in its log."""
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
    """Whether the log of a rank is a certain one; of a log that was pruned only the size is known.

    Args:
        session: that reads.
        rank: number of its row.
        log: the one in question.
        size: its bytes as it was written.
    """
    for output in session.scalars(select(Output).where(Output.rank_id == rank)):
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
    """Takes the logs of ranks out of the store; their parts stay, since others may have them too."""
    outputs = select(Output.id).where(Output.rank_id.in_(ranks))
    session.execute(delete(OutputChunk).where(OutputChunk.output_id.in_(outputs)))
    session.execute(update(Output).where(Output.rank_id.in_(ranks)).values(stored=None))


def read_output(session: Session, output: Output) -> Iterator[bytes]:
    """The bytes of a log, in parts."""
    decompressor = zstandard.ZstdDecompressor()
    digests = session.scalars(
        select(OutputChunk.digest)
        .where(OutputChunk.output_id == output.id)
        .order_by(OutputChunk.position)
    )
    for digest in digests.all():
        chunk = session.get_one(Chunk, digest)
        yield decompressor.decompress(chunk.data, max_output_size=chunk.size)
        session.expunge(chunk)


def _is_ours(part: Path, folder: Path) -> bool:
    """Whether a file is there and in the folder: a journal is no proof that its files are its own."""
    return part.resolve().is_relative_to(folder.resolve()) and part.is_file()


def chunks_of(path: Path) -> Iterator[bytes]:
    """The parts of a file, cut at line ends."""
    with open(path, "rb") as file:
        yield from _chunks(file)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Parts that end at line ends; a line longer than a part is cut."""
    part = io.BytesIO()
    while line := file.readline(_MOST - part.tell()):
        part.write(line)
        size = part.tell()
        if size >= _MOST or (size >= _LEAST and zlib.crc32(line) % _ONE_LINE_IN == 0):
            yield part.getvalue()
            part = io.BytesIO()
    if part.tell():
        yield part.getvalue()
