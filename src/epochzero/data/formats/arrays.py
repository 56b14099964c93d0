"""NumPy arrays: an item along the first axis is a record, an array of a .npz file a column.

Files are never unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochzero.data.formats import Batch, Faults, Format
from epochzero.data.model import DataTable

ARRAY = np.ndarray[Any, Any]
# More than this is not unpacked from a compressed file.
LARGEST_UNPACKED = 1 << 32
BATCH_VALUES = 1 << 22
# The column of a .npy file.
VALUE = "value"


def _read(files: Sequence[Path], faults: Faults) -> Iterator[Batch]:
    for file in files:
        try:
            for names in _together(arrays := _arrays(file, faults)):
                yield from _batches(file, {name: arrays[name] for name in names})
        except (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
            faults.add("broken", file, message=str(error))


def _arrays(file: Path, faults: Faults) -> dict[str, ARRAY]:
    if not file.stat().st_size:
        faults.add("empty_file", file)
        return {}
    if file.suffix.lower() == ".npy":
        return {VALUE: np.atleast_1d(np.load(file, mmap_mode="r", allow_pickle=False))}
    with zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > LARGEST_UNPACKED:
        faults.add("too_large", file, message=f"it would decompress to {size:,} bytes")
        return {}
    with np.load(file, allow_pickle=False) as opened:
        return {name: np.atleast_1d(opened[name]) for name in opened.files}


def _together(arrays: Mapping[str, ARRAY]) -> list[list[str]]:
    """Names of arrays that have the same number of records."""
    groups: dict[int, list[str]] = {}
    for name, array in arrays.items():
        groups.setdefault(len(array), []).append(name)
    return list(groups.values())


def _batches(file: Path, arrays: Mapping[str, ARRAY]) -> Iterator[Batch]:
    length = len(next(iter(arrays.values())))
    widest = max(array[:1].size for array in arrays.values())
    step = max(1, BATCH_VALUES // max(1, widest))
    for start in range(0, length, step):
        part = {name: array[start : start + step] for name, array in arrays.items()}
        yield Batch((file,), start + 1, {name: _values(each) for name, each in part.items()})


def _values(array: ARRAY) -> Sequence[Any]:
    """Texts and the like as Python values, numbers as they are."""
    if array.dtype.kind in "biuf" and array.dtype.kind != "b":
        return array  # type: ignore[return-value]
    return array.tolist()  # type: ignore[no-any-return]


def _describe(file: Path) -> Mapping[str, str]:
    return {"container": file.suffix.lower().removeprefix(".")}


def _write(path: Path, table: DataTable, columns: Mapping[str, Sequence[Any]]) -> None:
    arrays = {
        column.name: np.array(
            [np.asarray(value) for value in columns[column.name]], dtype=column.dtype or None
        ).reshape(-1, *(column.shape or ()))
        for column in table.columns
    }
    if dict(table.details)["container"] == "npy":
        np.save(path, arrays[VALUE], allow_pickle=False)
    else:
        np.savez_compressed(path, allow_pickle=False, **arrays)


def _copy(source: Path, records: Sequence[int], target: Path) -> None:
    # Arrays of different lengths have records of the same number.
    chosen = np.unique(np.asarray(records, dtype=np.int64)) - 1
    arrays = {
        name: array[chosen[chosen < len(array)]]
        for name, array in _arrays(source, Faults()).items()
    }
    if source.suffix.lower() == ".npy":
        np.save(target, arrays[VALUE], allow_pickle=False)
    else:
        np.savez_compressed(target, allow_pickle=False, **arrays)


FORMAT = Format("numpy", (".npy", ".npz"), _read, _write, _copy, _describe, uneven=True)
