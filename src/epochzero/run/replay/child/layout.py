"""The layout of a tensor file: safetensors. Files are untrusted.

8 bytes with the length of the header (little endian), the header as JSON of name -> ``dtype``, ``shape`` and
``data_offsets``, then the raw bytes, little endian, in row-major order. The format cannot contain code.
Source: huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, BinaryIO, NamedTuple

SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
"""Bytes per element of each type."""
MOST_HEADER_BYTES = 1 << 26
_LENGTH = 8


class TensorLocation(NamedTuple):
    """Location of a tensor in the file.

    Attributes:
        dtype: a key of `SIZES`.
        shape: of the tensor.
        begin, end: offsets of its bytes in the file.
    """

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def header_of(tensors: Mapping[str, tuple[str, Sequence[int]]]) -> bytes:
    """Return the header for tensors given by type and shape."""
    header, offset = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = offset + SIZES[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    return len(text).to_bytes(_LENGTH, "little") + text


def read_header(file: BinaryIO) -> dict[str, TensorLocation]:
    """Return the location of each tensor; everything is validated before memory is allocated.

    Raises:
        ValueError: the file is truncated or its header is invalid.
    """
    whole = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(_LENGTH), "little")
    if not 0 < length <= min(MOST_HEADER_BYTES, whole - _LENGTH):
        raise ValueError("its header is longer than the file")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is not a table of tensors")
    places, expected = {}, _LENGTH + length
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        place = places[name] = _place(name, entry, _LENGTH + length)
        if place.begin != expected:
            raise ValueError(f"tensor {name!r} does not start where the previous tensor ends")
        expected = place.end
    if expected != whole:
        raise ValueError(f"it has {whole:,} bytes, but its tensors require {expected:,}")
    return places


def _place(name: str, entry: Any, begin: int) -> TensorLocation:
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, start, end]
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError(f"a size or offset of tensor {name!r} is not an integer")
        if end - start != SIZES[dtype] * prod(shape):
            raise ValueError(f"the size of tensor {name!r} does not match its shape and dtype")
    except (KeyError, TypeError) as error:
        raise ValueError(f"tensor {name!r} has no dtype, shape or offset") from error
    return TensorLocation(dtype, tuple(shape), begin + start, begin + end)
