"""WAV audio: a file is a record and its folder the class. Only headers are read."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from epochzero.data.formats import Batch, Faults, Format
from epochzero.data.model import DataTable

FILES = 1000
NAMES = ("rate", "channels", "bits", "seconds", "encoding")
ENCODINGS = {1: "pcm", 3: "float", 6: "a-law", 7: "mu-law", 0xFFFE: "extensible"}


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    for start in range(0, len(files), FILES):
        read = [
            (file, seen) for file in files[start : start + FILES] if (seen := _header(file, faults))
        ]
        if read:
            columns = zip(*(seen for _, seen in read), strict=True)
            yield Batch([file for file, _ in read], 1, dict(zip(NAMES, columns, strict=True)))


def _header(file: Path, faults: Faults) -> tuple[int, int, int, float, str] | None:
    """The values of `NAMES`; of a broken file nothing."""
    try:
        size = file.stat().st_size
        if not size:
            faults.add("empty_file", file)
            return None
        with file.open("rb") as handle:
            return _parsed(handle, size)
    except (OSError, struct.error, ValueError) as error:
        faults.add("broken", file, message=str(error))
        return None


def _parsed(handle: BinaryIO, size: int) -> tuple[int, int, int, float, str]:
    """The values of `NAMES`.

    Source: Microsoft and IBM, Multimedia Programming Interface and Data Specifications 1.0, WAVE.

    Raises:
        ValueError, struct.error: it is no complete WAV file.
    """
    riff, _, wave = struct.unpack("<4sI4s", handle.read(12))
    if (riff, wave) != (b"RIFF", b"WAVE"):
        raise ValueError("it does not start with a WAV header")
    described = None
    while header := handle.read(8):
        name, length = struct.unpack("<4sI", header)
        if name == b"data":
            break
        content = handle.read(length + length % 2)
        if name == b"fmt ":
            described = struct.unpack("<HHIIHH", content[:16])
    else:
        raise ValueError("the data chunk is missing")
    if described is None:
        raise ValueError("the fmt chunk is missing")
    if handle.tell() + length > size:
        raise ValueError(f"it is truncated: {size - handle.tell():,} of {length:,} bytes of audio")
    code, channels, rate, byte_rate, _, bits = described
    return rate, channels, bits, length / max(1, byte_rate), ENCODINGS.get(code, str(code))


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    noise = np.random.default_rng(len(next(iter(columns.values()), ())))
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        given = dict(zip(columns, row, strict=True))
        folder = path / str(given.get("class") or "")
        folder.mkdir(parents=True, exist_ok=True)
        rate, channels, bits = (max(1, int(given[name] or 1)) for name in NAMES[:3])
        frame = channels * max(1, bits // 8)
        sound = noise.bytes(int((given["seconds"] or 0) * rate) * frame)
        code = {name: code for code, name in ENCODINGS.items()}.get(given["encoding"], 1)
        described = struct.pack("<HHIIHH", code, channels, rate, rate * frame, frame, bits)
        content = b"WAVEfmt " + struct.pack("<I", len(described)) + described
        content += b"data" + struct.pack("<I", len(sound)) + sound
        header = b"RIFF" + struct.pack("<I", len(content))
        (folder / f"{number:05}.wav").write_bytes(header + content)


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    if records:
        shutil.copyfile(source, target)


FORMAT = Format("audio", (".wav",), _read, _write, _copy, record_is_file=True)
