"""Reads Parquet files in small batches."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from epochzero.errors import InputError
from epochzero.parquet import STREAMED

_MAGIC = b"PAR1"
_AT_ONCE = 500
"""Rows per batch; each may contain a log."""


def is_parquet(path: Path) -> bool:
    """Whether a file starts with Parquet's magic bytes.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; missing values are None.

    Raises:
        InputError: pyarrow is not installed, or the file is damaged.
    """
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError("Parquet requires pyarrow: pip install 'epochzero[study]'") from error
    try:
        for batch in parquet.ParquetFile(path, **STREAMED).iter_batches(_AT_ONCE):
            yield from batch.to_pylist()
    except import_module("pyarrow").ArrowException as error:
        raise InputError(f"{path} cannot be read: {error}") from error
