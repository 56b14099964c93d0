"""Detect faults of a data file from a small part of it: its header, its middle and its end.

Nothing is unpacked to disk or unpickled, and only small files are read whole.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pickletools
import re
import struct
import tarfile
import time
import tomllib
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import yaml

from epochzero.file_access import open_file

SAMPLE_BYTES = 1 << 16
WHOLE_BYTES = 2 << 20
"""The largest file that is read whole."""
WHOLE_TEXT_BYTES = 8 << 20
"""The same limit for text, which is only decoded."""
MOST_S = 0.05

_FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".npy": "npy", ".npz": "zip", ".zip": "zip", ".tar": "tar", ".gz": "gzip", ".tgz": "gzip",
    ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".yaml": "yaml", ".yml": "yaml",
    ".pkl": "pickle", ".pickle": "pickle", ".parquet": "parquet", ".pt": "torch", ".pth": "torch",
    ".ckpt": "torch", ".safetensors": "safetensors", ".h5": "hdf5", ".hdf5": "hdf5",
    ".toml": "toml", ".xlsx": "zip",
}  # fmt: skip
_BY_NAME = frozenset(["png", "jpeg", "npy", "zip", "tar", "gzip", "parquet", "safetensors", "hdf5"])
"""Formats that a file name alone determines: every reader of such a file expects it."""
_LFS = b"version https://git-lfs.github.com/spec/"
_PAGE = re.compile(rb"\s*<(!doctype html|html|\?xml[^>]*>\s*<(html|Error))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileFault:
    """A fault of a file.

    Attributes:
        kind: ``empty``, ``no-item`` (of a list of files), ``incomplete``, ``not-parsable``,
            ``encoding`` or ``truncated``.
        what: text for users that follows the name of the file.
        error: error of the reader.
        sure: whether reading the file certainly fails.
    """

    kind: str
    what: str
    error: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class ReadMethod:
    """How a file is read.

    Attributes:
        format: format of the call; empty for bytes of unknown format.
        encoding: encoding of text.
        strict: whether bytes that do not decode are an error.
        plain: whether a table is read with commas and a header, without options that change it.
        pickles: whether an array may contain pickled objects.
    """

    format: str
    encoding: str = "utf-8"
    strict: bool = True
    plain: bool = True
    pickles: bool = True


def format_of(name: str, declared: str) -> str:
    """The format in which a file is read: that of the call, otherwise that of the file name."""
    suffix = os.path.splitext(name)[1].lower()
    by_name = _FORMATS.get(suffix, "")
    if declared in ("", "image"):
        return by_name if by_name in _BY_NAME else ""
    if declared == "torch" and by_name == "safetensors":
        return by_name
    packed = suffix in (".gz", ".bz2", ".xz", ".zst", ".zip")
    if packed and declared in ("csv", "tsv", "json", "jsonl", "pickle"):
        return "gzip" if suffix == ".gz" else ""
    if declared == "tar" and suffix != ".tar":
        return "gzip" if suffix in (".gz", ".tgz") else ""
    return {"npz": "zip", "excel": "zip"}.get(declared, declared)


def inspect(path: str, reading: ReadMethod) -> FileFault | None:
    """The fault of a file, as far as parts of it show one; None for no fault.

    Args:
        path: file on this machine; a file that is not regular or not readable gives None.
        reading: how the program reads it.
    """
    try:
        with open_file(path) as file:
            return _inspect(file, os.fstat(file.fileno()).st_size, reading)
    except (OSError, ValueError, OverflowError, MemoryError, RecursionError):
        return None


def _inspect(file: BinaryIO, size: int, reading: ReadMethod) -> FileFault | None:
    kind = reading.format
    look = _LOOKS.get(kind)
    head = file.read(SAMPLE_BYTES)
    if head.startswith(_LFS):
        what = "is a Git LFS pointer, not the file itself"
        if kind in ("", "text"):
            return FileFault(
                "not-parsable", what, "three lines of text are read as data", sure=False
            )
        return FileFault("not-parsable", what, _ERRORS.get(kind, "an error in the reader"))
    if look is None:
        return None
    if size == 0:
        error = _EMPTY.get(kind) or _ERRORS.get(kind, "EOFError")
        return None if kind == "text" else FileFault("empty", "is empty", error)
    if kind not in ("text", "csv", "tsv", "yaml") and _PAGE.match(head):
        return FileFault(
            "not-parsable", "is a web page", _ERRORS.get(kind, "an error in the reader")
        )
    return look(file, size, head, reading)


_EMPTY = {
    "csv": "pandas.errors.EmptyDataError: No columns to parse from file",
    "tsv": "pandas.errors.EmptyDataError: No columns to parse from file",
    "json": "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "pickle": "EOFError: Ran out of input",
    "torch": "EOFError: Ran out of input",
    "npy": "EOFError: No data left in file",
    "gzip": "EOFError",
}
_ERRORS = {
    "pickle": "_pickle.UnpicklingError: invalid load key",
    "torch": "_pickle.UnpicklingError: invalid load key",
    "npy": "ValueError: the file is no array (allow_pickle=False)",
    "zip": "zipfile.BadZipFile: File is not a zip file",
    "json": "json.decoder.JSONDecodeError: Expecting value",
    "png": "PIL.UnidentifiedImageError: cannot identify image file",
    "jpeg": "PIL.UnidentifiedImageError: cannot identify image file",
    "gzip": "gzip.BadGzipFile: Not a gzipped file",
    "parquet": "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found",
    "safetensors": "safetensors_rust.SafetensorError: Error while deserializing header",
    "hdf5": "OSError: Unable to open file (file signature not found)",
    "tar": "tarfile.ReadError: not a tar file",
}


def _bad(kind: str, what: str) -> FileFault:
    return FileFault("not-parsable", what, _ERRORS[kind])


def _cut(what: str, error: str, *, sure: bool = True) -> FileFault:
    return FileFault("truncated", what, error, sure)


# -- Text --------------------------------------------------------------------------------------


def _samples(file: BinaryIO, size: int, head: bytes) -> list[tuple[int, bytes]]:
    """The first, middle and last part as whole lines, each with its offset."""
    samples = [(0, head if size <= len(head) else head[: head.rfind(b"\n") + 1])]
    for offset in (size // 2, max(size - SAMPLE_BYTES, 0)):
        if offset > len(samples[0][1]):
            file.seek(offset)
            data = file.read(SAMPLE_BYTES)
            first = data.find(b"\n") + 1
            last = len(data) if offset + len(data) >= size else data.rfind(b"\n") + 1
            samples.append((offset + first, data[first:last]))
    return samples


def _text(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if not reading.strict:
        return None
    file.seek(0)
    whole = [(0, file.read())] if size <= WHOLE_TEXT_BYTES else None
    for offset, data in whole or _samples(file, size, head):
        try:
            data.decode(reading.encoding)
        except UnicodeDecodeError as error:
            if reading.encoding.lower().replace("_", "-") in ("utf-16", "utf-32") and offset:
                return None
            line = f" (line {data[: error.start].count(10) + 1})" if offset == 0 else ""
            byte = data[error.start]
            return FileFault(
                "encoding",
                f"is not {reading.encoding}: byte 0x{byte:02x} at {offset + error.start}{line}",
                f"UnicodeDecodeError: '{reading.encoding}' codec can't decode byte 0x{byte:02x}",
            )
        except LookupError:
            return None
    return None


def _table(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    fault = _text(file, size, head, reading)
    if fault or not reading.plain:
        return fault
    if not head.strip():
        return FileFault("empty", "has only blank lines", _EMPTY["csv"])
    samples = _samples(file, size, head)
    if any(b'"' in data for _, data in samples):
        return None
    comma = "\t" if reading.format == "tsv" else ","
    rows = [_rows(data, reading.encoding, comma) for _, data in samples]
    if not rows[0]:
        return None
    if len(rows[0]) == 1 and len(samples) == 1:
        return FileFault("empty", "has a header and no rows", "0 rows are read", sure=False)
    return _ragged(rows) or _last_row(rows, samples)


def _rows(data: bytes, encoding: str, comma: str) -> list[list[str]]:
    text = data.decode(encoding, errors="replace")
    return [row for row in csv.reader(io.StringIO(text), delimiter=comma) if row]


def _ragged(rows: list[list[list[str]]]) -> FileFault | None:
    expected = max(len(row) for row in rows[0][:2])
    for sample in rows:
        for number, row in enumerate(sample, 1):
            if len(row) > expected:
                where = f"line {number}" if sample is rows[0] else "a line"
                return FileFault(
                    "not-parsable",
                    f"has {len(row)} fields in {where}, and {expected} in its header",
                    f"pandas.errors.ParserError: Expected {expected} fields, saw {len(row)}",
                )
    return None


def _last_row(rows: list[list[list[str]]], samples: list[tuple[int, bytes]]) -> FileFault | None:
    ends = samples[-1][1].endswith((b"\n", b"\r"))
    if not ends and rows[-1] and len(rows[-1][-1]) < len(rows[0][0]):
        found = f"{len(rows[-1][-1])} of {len(rows[0][0])} fields"
        return _cut(f"ends within a line: the last line has {found}", "missing values", sure=False)
    return None


def columns(path: str, encoding: str, comma: str) -> list[str] | None:
    """The header of a table; None if it cannot be read."""
    try:
        with open_file(path) as file:
            text = file.read(SAMPLE_BYTES).decode(encoding, errors="replace").removeprefix("\ufeff")
        return next((row for row in csv.reader(io.StringIO(text), delimiter=comma) if row), None)
    except (OSError, LookupError, csv.Error):
        return None


def _json(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if size > WHOLE_BYTES:
        file.seek(size - 4096)
        end = file.read().rstrip()[-1:]
        if head.lstrip()[:1] in (b"{", b"[") and end not in (b"}", b"]"):
            return _cut("is cut off", "json.decoder.JSONDecodeError")
        return None
    file.seek(0)
    try:
        text = file.read().decode("utf-8")
    except UnicodeDecodeError:
        return _text(file, size, head, reading)
    return _json_text(text)


def _json_text(text: str) -> FileFault | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        name = f"json.decoder.JSONDecodeError: {error}"
        if not text.strip():
            return FileFault("empty", "is empty", name)
        if error.msg.startswith("Extra data"):
            return FileFault(
                "not-parsable",
                f"has more than one value: JSON lines, starting at line {error.lineno}",
                name,
            )
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return _cut(f"is cut off: {error}", name)
        return FileFault("not-parsable", f"is not valid JSON: {error}", name)
    except RecursionError:
        return None
    return None


def _jsonl(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    samples = _samples(file, size, head)
    for position, (_, data) in enumerate(samples):
        lines = [line for line in data.split(b"\n") if line.strip()]
        for number, line in enumerate(lines):
            try:
                json.loads(line)
            except ValueError as error:
                at_end = position == len(samples) - 1 and number == len(lines) - 1
                name = f"json.decoder.JSONDecodeError: {error}"
                if at_end and not data.endswith(b"\n"):
                    return _cut("is cut off within its last line", name)
                where = f"line {number + 1}" if position == 0 else "a line"
                return FileFault("not-parsable", f"has invalid JSON in {where}: {error}", name)
    return None


def _yaml(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if size > SAMPLE_BYTES:
        return None
    try:
        for _ in yaml.parse(head, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        return FileFault("not-parsable", f"is not valid YAML: {problem}{line}", f"yaml: {problem}")
    return None


def _toml(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if size > SAMPLE_BYTES:
        return None
    try:
        tomllib.loads(head.decode("utf-8"))
    except tomllib.TOMLDecodeError as error:
        return FileFault(
            "not-parsable", f"is not valid TOML: {error}", f"tomllib.TOMLDecodeError: {error}"
        )
    return None


# -- Arrays and checkpoints --------------------------------------------------------------------


def _npy(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if head.startswith(b"PK"):
        return _zip(file, size, head, reading)
    if not head.startswith(b"\x93NUMPY"):
        if head[:1] != b"\x80":
            return _bad("npy", "is not a NumPy array")
        return None if reading.pickles else _pickled("is a pickle, not an array")
    # The import takes longer than most checks, and few jobs have such a file.
    try:
        from numpy.lib import format as npy
    except ImportError:
        return None
    file.seek(0)
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        return None
    read = npy.read_array_header_1_0
    shape, _, dtype = (read if version == (1, 0) else npy.read_array_header_2_0)(file)
    if dtype.hasobject:
        return None if reading.pickles else _pickled("contains pickled objects")
    count = 1
    for length in shape:
        count *= length
    wanted = file.tell() + count * dtype.itemsize
    if size < wanted:
        error = f"ValueError: cannot reshape array into shape {shape}"
        return _cut(f"has {size} of {wanted} bytes", error)
    return None


def _pickled(what: str) -> FileFault:
    error = "ValueError: Object arrays cannot be loaded when allow_pickle=False"
    return FileFault("not-parsable", f"{what}, but allow_pickle is not set", error)


def _zip(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    file.seek(0)
    if zipfile.is_zipfile(file):
        return None
    if head.startswith(b"PK\x03\x04"):
        return _cut(
            "ends before its central directory", "zipfile.BadZipFile: File is not a zip file"
        )
    return _bad("zip", "is not a zip archive")


def _torch(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if head.startswith(b"PK"):
        fault = _zip(file, size, head, reading)
        error = "RuntimeError: PytorchStreamReader failed reading zip archive"
        return fault and FileFault(fault.kind, fault.what, error)
    if head[:1] == b"\x80" or b"\0" in head[:512]:
        return None
    return _bad("torch", "is not a PyTorch checkpoint")


def _pickle(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    """Reads the opcodes without executing them."""
    if size > WHOLE_BYTES:
        return None
    file.seek(0)
    end = time.monotonic() + MOST_S
    try:
        with warnings.catch_warnings():
            # For texts with invalid escapes, which it decodes.
            warnings.simplefilter("ignore")
            for _ in pickletools.genops(io.BytesIO(file.read())):
                if time.monotonic() > end:
                    return None
    except ValueError as error:
        if head[:1] == b"\x80":
            return _cut("is cut off", "EOFError / _pickle.UnpicklingError: truncated")
        known = "opcode" in str(error) and "unknown" in str(error)
        return _bad("pickle", "is not a pickle") if known else None
    return None


def _safetensors(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if size < 8:
        return _bad("safetensors", "is not a safetensors file")
    (length,) = struct.unpack("<Q", head[:8])
    if length > size - 8:
        return _bad("safetensors", "is cut off or not a safetensors file")
    if length > len(head) - 8:
        return None
    header = json.loads(head[8 : 8 + length])
    ends = [value["data_offsets"][1] for name, value in header.items() if name != "__metadata__"]
    wanted = 8 + length + max(ends, default=0)
    if size < wanted:
        return _cut(f"has {size} of {wanted} bytes", "SafetensorError: IncompleteMetadata")
    return None


def _hdf5(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if not head.startswith(b"\x89HDF\r\n\x1a\n"):
        return None if b"\x89HDF" in head else _bad("hdf5", "is not an HDF5 file")
    # The end-of-file address in the superblock, for 8-byte addresses.
    at = {0: 40, 1: 44, 2: 28, 3: 28}.get(head[8])
    if at is None or head[13 if head[8] < 2 else 9] != 8 or len(head) < at + 8:
        return None
    (wanted,) = struct.unpack("<Q", head[at : at + 8])
    if size < wanted < 1 << 60:
        return _cut(
            f"has {size} of {wanted} bytes", "OSError: Unable to open file (truncated file)"
        )
    return None


def _parquet(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if not head.startswith((b"PAR1", b"PARE")):
        return _bad("parquet", "is not a Parquet file")
    file.seek(max(size - 4, 0))
    if file.read() not in (b"PAR1", b"PARE"):
        return _cut("ends before its footer", _ERRORS["parquet"])
    return None


# -- Archives and images -----------------------------------------------------------------------


def _gzip(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if not head.startswith(b"\x1f\x8b"):
        return _bad("gzip", "is not compressed with gzip")
    if size > WHOLE_BYTES:
        return None
    file.seek(0)
    data, end = file.read(), time.monotonic() + MOST_S
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            try:
                unpacker.decompress(data, 1 << 20)
            except zlib.error:
                return FileFault("not-parsable", "is damaged", "zlib.error: Error -3")
            data = unpacker.unconsumed_tail
            if time.monotonic() > end:
                return None
            if not data and not unpacker.eof:
                return _cut(
                    "ends before the end of the stream",
                    "EOFError: Compressed file ended before the end-of-stream marker was reached",
                )
        data = unpacker.unused_data.lstrip(b"\0")
    return None


def _tar(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if head[257:262] != b"ustar":
        return None
    file.seek(0)
    end = time.monotonic() + MOST_S
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                wanted = member.offset_data + (member.size if member.isreg() else 0)
                if wanted > size:
                    break
                if time.monotonic() > end:
                    return None
            else:
                return None
    except tarfile.ReadError:
        pass
    return _cut("is cut off within a member", "tarfile.ReadError: unexpected end of data")


def _png(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if not head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _image(head)
    file.seek(max(size - 4096, 0))
    if b"IEND" in file.read():
        return None
    return _cut("ends before its last chunk", "OSError: image file is truncated")


def _jpeg(file: BinaryIO, size: int, head: bytes, reading: ReadMethod) -> FileFault | None:
    if not head.startswith(b"\xff\xd8"):
        return _image(head)
    file.seek(max(size - 65536, 0))
    if b"\xff\xd9" in file.read():
        return None
    return _cut("ends before its end marker", "OSError: image file is truncated", sure=False)


_IMAGES = (b"\x89PNG", b"\xff\xd8", b"GIF8", b"BM", b"RIFF", b"II*\0", b"MM\0*", b"P", b"\0\0")


def _image(head: bytes) -> FileFault | None:
    """An image reader inspects the content, not the name."""
    return None if head.startswith(_IMAGES) else _bad("png", "is not an image")


_LOOKS: Mapping[str, Callable[[BinaryIO, int, bytes, ReadMethod], FileFault | None]] = {
    "text": _text, "csv": _table, "tsv": _table, "json": _json, "jsonl": _jsonl, "yaml": _yaml,
    "toml": _toml, "npy": _npy, "zip": _zip, "torch": _torch, "pickle": _pickle,
    "safetensors": _safetensors, "hdf5": _hdf5, "parquet": _parquet, "gzip": _gzip, "tar": _tar,
    "png": _png, "jpeg": _jpeg,
}  # fmt: skip
