"""Lines of text files that may be in any state.

Text is read as UTF-8, or as UTF-16 behind its byte order mark. Bytes that are not UTF-8 are kept as
lone surrogates (PEP 383), so that writing gives the same bytes back.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, Literal, TextIO, cast

from epochzero.data.formats import Faults

LONGEST_LINE = 1 << 24
CHUNK = 1 << 20


# What reading a damaged file that is packed raises.
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


def open_bytes(file: Path, mode: Literal["rb", "wb"] = "rb") -> BinaryIO:
    """A file; one whose name ends in ``.gz`` is unpacked, or packed without the time."""
    if file.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.GzipFile(file, mode, mtime=0))
    return file.open(mode)


def writing(file: Path, encoding: str) -> TextIO:
    """A file for text; lone surrogates become the bytes that they were read from."""
    packed = open_bytes(file, "wb")
    return TextIOWrapper(packed, encoding=encoding, errors="surrogateescape", newline="")


def encoding_of(file: Path) -> str:
    """``utf-16``, ``utf-8-sig`` or ``utf-8``, by the byte order mark."""
    with open_bytes(file) as handle:
        start = handle.read(4)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else "utf-8"


def lines(file: Path, faults: Faults) -> Iterator[str]:
    """The lines of a file with their ends; any of the three line ends counts.

    A line of more than 16 Mi characters is left out, with the file's remaining lines.
    """
    number = 0
    line = "\n"
    try:
        encoding = encoding_of(file)
        errors = "replace" if encoding == "utf-16" else "surrogateescape"
        with TextIOWrapper(open_bytes(file), encoding, errors, newline="") as handle:
            for block in _blocks(handle):
                plain = "".join(block)
                if not plain.isascii() or "\0" in plain:
                    for place, line in enumerate(block, number + 1):
                        _note(line, place, file, faults)
                yield from block
                number += len(block)
                line = block[-1]
    except _LongLineError:
        message = f"line {number + 1:,} has more than {LONGEST_LINE:,} characters"
        faults.add("long_line", file, number + 1, message)
        return
    except DAMAGED as error:
        faults.add("broken", file, message=str(error))
        return
    except OSError as error:
        faults.add("unreadable", file, message=error.strerror or str(error))
        return
    if not number:
        faults.add("empty_file", file)
    elif not line.endswith(("\n", "\r")):
        faults.add("unfinished_line", file, number, "the last line has no line break")


class _LongLineError(Exception):
    """The next line is longer than `LONGEST_LINE`."""


def _blocks(handle: TextIO) -> Iterator[list[str]]:
    """Lines, many at a time: that is several times as fast as one by one."""
    rest = ""
    while read := handle.read(CHUNK):
        # It splits at the line ends that a file has, where `str.splitlines` knows others too.
        *block, rest = StringIO(rest + read, newline="").readlines()
        if block:
            yield block
        if len(rest) >= LONGEST_LINE:
            raise _LongLineError
    if rest:
        yield [rest]


def _note(line: str, number: int, file: Path, faults: Faults) -> None:
    if line.isascii() and "\0" not in line:
        return
    if "\0" in line:
        faults.add("nul", file, number, f"line {number:,} has a NUL character")
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) & 0xFF
        faults.add("not_utf8", file, number, f"byte 0x{byte:02X} in line {number:,}")
