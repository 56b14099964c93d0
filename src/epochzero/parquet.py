"""How Parquet files of any size are read."""

from __future__ import annotations

from typing import Final

STREAMED: Final = {"pre_buffer": False, "buffer_size": 1 << 20}
"""Options of `pyarrow.parquet.ParquetFile`, which holds all that it has read in memory without the first, and a whole group of
rows, often the whole file, without the second."""
