"""What data can be written in: one file a format.

A module of this folder has one `FORMAT`: how its files are called, read, written and copied in part.
Nothing else names a format, so a new one is one new file.
"""

from __future__ import annotations

import pkgutil
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from epochzero.data.model import DataTable, Fault
from epochzero.errors import InputError

BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records of a table, by columns.

    Attributes:
        files: the file of all records, or one for each.
        first: number of the first record in its file, from 1.
        columns: values by the column's name, all of one length: texts of formats that have nothing
            else, Python values, or an array whose first axis counts the records.
        measured: numbers of those files that were decoded, such as the brightness of images.
    """

    files: Sequence[Path]
    first: int
    columns: Mapping[str, Sequence[Any]]
    measured: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, index: int) -> tuple[Path, int]:
        """File and number of a record."""
        if len(self.files) == 1:
            return self.files[0], self.first + index
        return self.files[index], 1


class Faults:
    """Counts what is wrong with the files and records of a table, and keeps the first of each kind."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, Path, int, str]] = {}

    def add(self, kind: str, file: Path, record: int = 0, message: str = "") -> None:
        """Notes one fault; ``record`` counts from 1 and is 0 for the file as a whole."""
        count, *first = self._found.get(kind, (0, file, record, message))
        self._found[kind] = (count + 1, *first)  # type: ignore[assignment]

    def counted(self, root: Path) -> tuple[Fault, ...]:
        """All faults, the most frequent first, with files relative to a folder."""
        listed = [
            Fault(kind, count, relative(file, root), record, message)
            for kind, (count, file, record, message) in self._found.items()
        ]
        return tuple(sorted(listed, key=lambda fault: (-fault.count, fault.kind)))


def relative(file: Path, root: Path) -> str:
    """A file's path in a data set that may be this file alone."""
    return file.relative_to(root).as_posix() if file != root else file.name


Values = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Format:
    """How data of a format are read and written.

    Attributes:
        name: as it stands in a profile.
        suffixes: of its files, in lower case.
        read: the records of files in batches; what cannot be read is noted as a fault and skipped.
        describe: what `write` has to know of a file besides its columns.
        write: writes columns to a file, or to a folder when records are files.
        copy: writes some records of a file, by their numbers from 1, to another file.
        record_is_file: whether each record is a file, as of images; its folder is its class.
        only_texts: whether all values are texts that have to be read as what they look like.
        uneven: whether columns may have different numbers of records.
        packed: whether files may be packed by gzip; ``.gz`` stands behind their suffix.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Sequence[Path], Faults], Iterator[Batch]]
    write: Callable[[Path, DataTable, Values], None]
    copy: Callable[[Path, Sequence[int], Path], None]
    describe: Callable[[Path], Mapping[str, str]] = lambda file: {}
    record_is_file: bool = False
    only_texts: bool = False
    uneven: bool = False
    packed: bool = False


@cache
def formats() -> Mapping[str, Format]:
    """All formats by name."""
    modules = (
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    )
    return {module.FORMAT.name: module.FORMAT for module in modules if hasattr(module, "FORMAT")}


def format_of(path: Path) -> Format | None:
    """The format of a file, by its suffix."""
    packed = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    found = next((each for each in formats().values() if suffix in each.suffixes), None)
    return None if packed and found and not found.packed else found


def needed(module: str, purpose: str) -> ModuleType:
    """A module of the extra ``data``.

    Raises:
        InputError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = {"PIL.Image": "pillow"}.get(module, module.partition(".")[0])
        raise InputError(f"{purpose} requires {package}: pip install 'epochzero[data]'") from error


FILES_AT_ONCE = 1000
MEASURED_FILES = 1000
"""Maximum number of files of a table that are decoded and measured; they are spread over the table."""
Measured = dict[str, list[float]]


def file_batches(
    files: Sequence[Path],
    faults: Faults,
    names: Sequence[str],
    read: Callable[[Path, Faults, Measured | None], Sequence[Any] | None],
) -> Iterator[Batch]:
    """The batches of a format whose records are files.

    Args:
        files: of a table.
        faults: where broken files are noted.
        names: of the columns.
        read: the values of one file; it adds to the numbers that are measured, of files that are decoded.
    """
    decoded = frozenset(files[:: -(-len(files) // MEASURED_FILES)] if files else ())
    for start in range(0, len(files), FILES_AT_ONCE):
        measured: Measured = {}
        seen = [
            (file, values)
            for file in files[start : start + FILES_AT_ONCE]
            if (values := read(file, faults, measured if file in decoded else None))
        ]
        if seen:
            columns = zip(*(values for _, values in seen), strict=True)
            named = dict(zip(names, columns, strict=True))
            yield Batch([file for file, _ in seen], 1, named, measured)


def copy_file(source: Path, records: Sequence[int], target: Path) -> None:
    """Writes the only record of a file; see `Format.copy`."""
    if records:
        shutil.copyfile(source, target)


def batches(
    file: Path,
    names: Sequence[str],
    rows: Iterator[Sequence[Any]],
    even: Callable[[list[Sequence[Any]], int], list[Sequence[Any]]] = lambda block, first: block,
) -> Iterator[Batch]:
    """Rows of one file, turned into batches of columns.

    Args:
        file: it.
        names: of the columns.
        rows: of the file.
        even: makes rows as wide as the names; is given some of them and the number of the first.
    """
    first = 1
    while block := list(islice(rows, BATCH)):
        columns = zip(*even(block, first), strict=True)
        yield Batch((file,), first, dict(zip(names, columns, strict=True)))
        first += len(block)
