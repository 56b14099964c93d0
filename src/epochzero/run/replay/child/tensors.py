"""Writes and reads tensor files without the safetensors library."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from epochzero.run.replay.child.layout import header_of, read_header

_WORDS = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}  # fmt: skip
# Older releases have fewer types.
_TYPES = {word: getattr(torch, name) for name, word in _WORDS.items() if hasattr(torch, name)}
_TO_WORDS = {dtype: word for word, dtype in _TYPES.items()}
_PIECE = 1 << 24


def is_kept(tensor: torch.Tensor) -> bool:
    """Whether a tensor has its own values in a type that the file can hold."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type not in ("meta", "fake")
        and tensor.dtype in _TO_WORDS
    )


def word_of(tensor: torch.Tensor) -> str:
    """Return the layout's name for a tensor's type."""
    return _TO_WORDS[tensor.dtype]


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Write CPU tensors; return ``bytes`` and ``sha256`` of the file.

    Raises:
        OSError: the file cannot be written.
    """
    header = header_of({n: (_TO_WORDS[t.dtype], tuple(t.shape)) for n, t in tensors.items()})
    digest, length = hashlib.sha256(header), len(header)
    with path.open("xb") as file:
        file.write(header)
        for tensor in tensors.values():
            # Deleted by name, so that the pieces do not keep its memory alive.
            whole = tensor.detach().contiguous()
            for piece in _pieces(whole):
                file.write(piece)
                digest.update(piece)
                length += len(piece)
    return {"bytes": length, "sha256": digest.hexdigest()}


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of a file to the CPU.

    Raises:
        ValueError, OSError: the file is truncated, invalid or missing.
    """
    found = {}
    with path.open("rb") as file:
        for name, place in read_header(file).items():
            if place.dtype not in _TYPES:
                raise ValueError(f"this version of torch has no dtype {place.dtype}")
            tensor = torch.empty(place.shape, dtype=_TYPES[place.dtype])
            file.seek(place.begin)
            for piece in _pieces(tensor):
                if file.readinto(piece) != len(piece):
                    raise ValueError(f"it is truncated in tensor {name!r}")
            found[name] = tensor
    return found


def _pieces(tensor: torch.Tensor) -> list[memoryview]:
    """Return the memory of a contiguous tensor, in pieces."""
    size = tensor.numel() * tensor.element_size()
    if not size:
        return []
    whole = memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")
    return [whole[start : start + _PIECE] for start in range(0, size, _PIECE)]
