"""Logs in the store: cut at line ends, compressed, and equal parts kept once.

A part ends after a line whose checksum has a certain form, not at a fixed size: where a log differs
from another by some lines, the parts before and after these are still equal (content-defined
chunking; Muthitacharoen et al., "A Low-bandwidth Network File System", SOSP 2001, Section 3.1).
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import zstandard
from sqlalchemy import select
from sqlalchemy.orm import Session

from epochzero.store.inserting import insert_once
from epochzero.store.schema import Chunk, Output, OutputChunk, Rank

__all__ = ["read_output", "store_outputs"]

_LEAST = 64 << 10
_MOST = 1 << 20
# One line in so many ends a part: about 100 kB of usual lines beyond the least.
_ONE_LINE_IN = 1024
_LEVEL = 6


def store_outputs(session: Session, rank: Rank, folder: Path) -> None:
    """Takes in the logs of a rank that has ended; one whose files are gone stays without."""
    outputs = session.scalars(
        select(Output).where(Output.rank_id == rank.id, Output.stored.is_(None))
    )
    for output in outputs.all():
        parts = [folder / path for path in output.paths]
        if parts and all(_is_ours(part, folder) for part in parts):
            _store(session, output, parts)


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


def _store(session: Session, output: Output, parts: list[Path]) -> None:
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    stored = position = 0
    for path in parts:
        with open(path, "rb") as file:
            for chunk in _chunks(file):
                digest = hashlib.blake2b(chunk, digest_size=16).hexdigest()
                if session.scalar(select(Chunk.digest).where(Chunk.digest == digest)) is None:
                    data = compressor.compress(chunk)
                    insert_once(session, Chunk, digest=digest, size=len(chunk), data=data)
                session.add(OutputChunk(output_id=output.id, position=position, digest=digest))
                stored += len(chunk)
                position += 1
    output.stored = stored


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
