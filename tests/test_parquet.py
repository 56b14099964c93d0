from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow
import pytest
from pyarrow import parquet

from epochzero.parquet import STREAMED

ROWS, BYTES = 5000, 4000


@pytest.mark.parametrize("rows_of_a_group", [250, ROWS], ids=["many groups", "one group"])
def test_a_file_is_read_in_little_memory(tmp_path: Path, rows_of_a_group: int) -> None:
    # What is random does not get smaller.
    random = Random(0)
    table = pyarrow.table({"log": [random.randbytes(BYTES) for _ in range(ROWS)]})
    path = tmp_path / "logs.parquet"
    parquet.write_table(table, path, row_group_size=rows_of_a_group, use_dictionary=False)
    del table
    before, most, rows = pyarrow.total_allocated_bytes(), 0, 0
    for batch in parquet.ParquetFile(path, **STREAMED).iter_batches(100):
        rows += len(batch)
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert rows == ROWS
    assert most < path.stat().st_size / 2
