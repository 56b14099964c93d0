"""Request bodies, decompressed in pieces of limited size.

A few bytes may decompress to gigabytes: each step produces a limited amount, and the total is counted.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from fastapi import HTTPException, Request

from epochzero import zstd

_PIECE = 256 << 10
_WINDOW_LOG = 23
"""A zstd frame may request more memory than 8 MiB; frames of our clients do not."""


class _Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def whole(self) -> bool: ...


class _Plain:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def whole(self) -> bool:
        return True


class _Gzip:
    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=31)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._decoder.eof:  # Members may follow each other (RFC 1952, Section 2.2).
                self._decoder = zlib.decompressobj(wbits=31)
            self._begun = True
            if piece := self._decoder.decompress(data, _PIECE):
                yield piece
            data = self._decoder.unconsumed_tail or self._decoder.unused_data

    def whole(self) -> bool:
        return self._decoder.eof or not self._begun


class _Zstd:
    def __init__(self) -> None:
        self._decoder = self._next()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        more = bool(data)
        while more:
            if self._decoder.eof:
                self._decoder = self._next()
            self._begun = True
            if piece := self._decoder.decompress(data, _PIECE):
                yield piece
            data = self._decoder.unused_data if self._decoder.eof else b""
            more = bool(data) or not (self._decoder.eof or self._decoder.needs_input)

    def whole(self) -> bool:
        return self._decoder.eof or not self._begun

    @staticmethod
    def _next() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        )


async def pieces(request: Request, most: int) -> AsyncIterator[bytes]:
    """The pieces of a decompressed body.

    Args:
        request: with ``Content-Encoding: gzip``, ``zstd`` or none.
        most: maximum number of decompressed bytes.

    Raises:
        HTTPException: 413 if it is too large, 415 for another compression, 422 for damaged data.
    """
    decoder = _decoder(request.headers.get("content-encoding", "identity").strip().lower())
    size = 0
    try:
        async for data in request.stream():
            for piece in decoder.feed(data):
                size += len(piece)
                if size > most:
                    raise HTTPException(413, f"the request exceeds {most} bytes of text")
                yield piece
    except (zlib.error, zstd.ZstdError) as error:
        raise HTTPException(422, f"the compression is damaged: {error}") from error
    if not decoder.whole():
        raise HTTPException(422, "the compressed body is truncated")


def _decoder(encoding: str) -> _Decoder:
    if encoding in ("identity", ""):
        return _Plain()
    if encoding == "gzip":
        return _Gzip()
    if encoding == "zstd":
        return _Zstd()
    raise HTTPException(415, f"{encoding[:20]!r} is not a supported compression; use gzip or zstd")
