"""WAV audio: a file is a record and its folder the class. Of most files only the header is read."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from epochzero.data.formats import Batch, Faults, Format, Measured, copy_file, file_batches
from epochzero.data.model import DataTable

# Seconds at the start of a file that are measured.
MEASURED_S = 10
SILENCE_DB = -120.0
NAMES = ("rate", "channels", "bits", "seconds", "encoding")
ENCODINGS = {1: "pcm", 3: "float", 6: "a-law", 7: "mu-law", 0xFFFE: "extensible"}


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    return file_batches(files, faults, NAMES, _header)


def _header(
    file: Path, faults: Faults, measured: Measured | None
) -> tuple[int, int, int, float, str] | None:
    """The values of `NAMES`; of a broken file nothing."""
    try:
        size = file.stat().st_size
        if not size:
            faults.add("empty_file", file)
            return None
        with file.open("rb") as handle:
            seen = _parsed(handle, size)
            if measured is not None:
                for name, number in _measures(handle, seen).items():
                    measured.setdefault(f"{name} of sound", []).append(number)
            return seen
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


def _measures(handle: BinaryIO, seen: tuple[int, int, int, float, str]) -> Mapping[str, float]:
    """What a person hears first: loudness, the share at full scale, a constant part. Nothing of other encodings."""
    rate, channels, bits, seconds, encoding = seen
    width = channels * bits // 8
    data = handle.read(int(min(seconds, MEASURED_S) * rate) * width)
    if (encoding, bits) == ("float", 32):
        samples = np.frombuffer(data, "<f4").astype(np.float64)
    elif encoding == "pcm" and bits in (8, 16, 32):
        samples = np.frombuffer(data, {8: "u1", 16: "<i2", 32: "<i4"}[bits]) / 2.0 ** (bits - 1)
        samples = samples - 1.0 if bits == 8 else samples
    else:
        return {}
    if not samples.size:
        return {}
    power = float(np.square(samples).mean())
    return {
        "loudness": max(SILENCE_DB, 10 * math.log10(power)) if power > 0 else SILENCE_DB,
        "clipping": float((np.abs(samples) >= 0.999).mean()),
        "offset": float(samples.mean()),
    }


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


FORMAT = Format("audio", (".wav",), _read, _write, copy_file, record_is_file=True)
