"""The files of a data set, grouped into tables. Nothing is followed out of its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochzero.data.formats import Batch, Faults, Format, format_of, formats
from epochzero.errors import InputError

# The column of a file's class, where a record is a file.
CLASS = "class"
# What a part of a data set is called, in the words of its file or folder.
_SPLITS = {
    "train": "train", "training": "train",
    "test": "test", "testing": "test", "eval": "test",
    "val": "validation", "valid": "validation", "validation": "validation", "dev": "validation",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableSource:
    """The files of a table.

    Attributes:
        name: of the table.
        format: of all its files.
        files: those to read, in order.
        left_out: how many there are besides.
    """

    name: str
    format: Format
    files: tuple[Path, ...]
    left_out: int = 0


def find_sources(
    path: str | Path, most_files: int | None = None, *, may_be_empty: bool = False
) -> tuple[TableSource, ...]:
    """The tables of a file or folder, by name.

    Args:
        path: of the data set.
        most_files: how many files of each table to read, drawn at random; None for all.
        may_be_empty: whether a folder may have no data in it.

    Raises:
        InputError: there is nothing, or nothing of a known format.
    """
    root = Path(path)
    if not root.exists():
        raise InputError(f"{path}: no such file or directory")
    if root.is_file() and format_of(root) is None:
        raise InputError(
            f"{path}: {root.suffix or 'a file without suffix'} is not supported; supported are {_known()}"
        )
    files = [root] if root.is_file() else list(_walk(root))
    groups: dict[tuple[str, str], list[Path]] = {}
    for file in files:
        if form := format_of(file):
            groups.setdefault((_table_of(file, root, form), form.name), []).append(file)
    if not groups and not may_be_empty:
        raise InputError(f"{path} contains no data files; supported are {_known()}")
    return tuple(
        _drawn(name, formats()[form], found, most_files)
        for (name, form), found in sorted(groups.items())
    )


def _known() -> str:
    return ", ".join(suffix for form in formats().values() for suffix in form.suffixes)


def _walk(folder: Path) -> Iterator[Path]:
    """Regular files below a folder, in order; without hidden ones and without links to folders."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(parent, name)
            if not name.startswith(".") and (file.is_file() or file.is_symlink()):
                yield file


def _table_of(file: Path, root: Path, form: Format) -> str:
    """The name of the table that a file belongs to.

    Of records that are files it is the folder that holds the classes' folders.
    """
    if file == root:
        return file.name
    relative = file.relative_to(root)
    if form.record_is_file:
        return relative.parent.parent.as_posix()
    return (relative.parent / re.sub(r"\d+", "*", relative.stem)).as_posix() + relative.suffix


def _drawn(name: str, form: Format, files: list[Path], most: int | None) -> TableSource:
    if most is None or len(files) <= most:
        return TableSource(name, form, tuple(files))
    chosen = np.random.default_rng(0).choice(len(files), most, replace=False)
    return TableSource(name, form, tuple(files[n] for n in sorted(chosen)), len(files) - most)


def read(source: TableSource, root: Path, faults: Faults) -> Iterator[Batch]:
    """The records of a table; of files that are records also their class.

    A class is the name of the file's folder. Files in the data set's own folder have none.
    """
    for batch in source.format.read(source.files, faults):
        if source.format.record_is_file and any(file.parent != root for file in batch.files):
            classes = [None if file.parent == root else file.parent.name for file in batch.files]
            yield replace(batch, columns={CLASS: classes, **batch.columns})
        else:
            yield batch


def split_of(name: str) -> str:
    """The split that a table is: ``train``, ``test``, ``validation`` or empty.

    >>> split_of("images/train"), split_of("test-*.csv"), split_of("latest.csv")
    ('train', 'test', '')
    """
    words = re.findall(r"[a-z]+", name.lower())
    return next((_SPLITS[word] for word in words if word in _SPLITS), "")
