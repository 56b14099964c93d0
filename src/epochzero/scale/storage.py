"""Files of a local directory or of a bucket, by pyarrow: list, open, read, write atomically."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from epochzero.errors import InputError


def arrow(module: str = "pyarrow") -> ModuleType:
    """Import a module of pyarrow.

    Raises:
        InputError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            "Writing diagnoses to Parquet requires pyarrow: pip install 'epochzero[data]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Stored:
    """A file as it was listed.

    Attributes:
        name: relative to what was listed.
        size: in bytes.
        stamp: time of the last change; a different one means different content.
    """

    name: str
    size: int
    stamp: str


@dataclass(frozen=True, slots=True)
class Storage:
    """A directory or a file, with access to it.

    Attributes:
        address: a path, or an address such as ``s3://bucket/prefix``, valid in any process.
        root: path within the file system.
        local: whether it is on this machine.
    """

    address: str
    root: str
    local: bool
    _files: Any = field(repr=False)

    @property
    def name(self) -> str:
        """The address without credentials."""
        return re.sub(r"(?<=://)[^/@]*@", "", self.address)

    @staticmethod
    def at(address: str) -> Storage:
        """Return the storage at an address, which need not exist.

        Raises:
            InputError: the address is invalid, or pyarrow is not installed.
        """
        return _storage(address)

    def kind(self) -> str:
        """Return ``file`` or ``folder``, or an empty text if it does not exist.

        Raises:
            InputError: it cannot be accessed.
        """
        with _told(self.name):
            found = self._files.get_file_info(self.root).type.name
        return {"File": "file", "Directory": "folder"}.get(found, "")

    def listed(self) -> list[Stored]:
        """Return all files below, sorted by name; the file itself if it is one.

        Raises:
            InputError: they cannot be listed.
        """
        fs = arrow("pyarrow.fs")
        with _told(self.name):
            if self.kind() == "file":
                found = [self._files.get_file_info(self.root)]
            else:
                found = self._files.get_file_info(
                    fs.FileSelector(self.root, recursive=True, allow_not_found=True)
                )
        files = [value for value in found if value.type.name == "File"]
        return sorted(map(self._stored, files), key=lambda stored_job: stored_job.name)

    def _stored(self, info: Any) -> Stored:
        name = PurePosixPath(info.path)
        below = name.relative_to(self.root) if info.path != self.root else name.name
        return Stored(str(below), info.size, str(info.mtime_ns))

    def path(self, name: str = "") -> str:
        """Return the path of a file within the file system."""
        return f"{self.root}/{name}" if name else self.root

    def open(self, name: str = "") -> Any:
        """Open a binary, seekable file; without a name, the file itself.

        Raises:
            InputError: it cannot be opened.
        """
        with _told(self.path(name)):
            return self._files.open_input_file(self.path(name))

    def read(self, name: str = "") -> bytes:
        """Return the content of a file.

        Raises:
            InputError: it cannot be read.
        """
        with self.open(name) as file, _told(self.path(name)):
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically.

        Raises:
            InputError: it cannot be written.
        """
        with _told(self.path(name), "written"):
            if self.local:
                _write_whole(Path(self.path(name)), data)
                return
            # An object appears when its last byte has been received.
            with self._files.open_output_stream(self.path(name), compression=None) as stream:
                stream.write(data)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files.

        Raises:
            InputError: a file cannot be removed.
        """
        for name in names:
            with _told(self.path(name), "removed"):
                self._files.delete_file(self.path(name))

    def table(self, names: Iterable[str], columns: list[str] | None = None) -> Any:
        """Return the rows of Parquet files as a `pyarrow.Table`.

        Raises:
            InputError: a file cannot be read.
        """
        paths = [self.path(name) for name in names]
        with _told(self.name):
            parts = arrow("pyarrow.dataset").dataset(
                paths, filesystem=self._files, format="parquet"
            )
            return parts.to_table(columns=columns)


@cache
def _storage(address: str) -> Storage:
    fs = arrow("pyarrow.fs")
    if "://" not in address:
        path = os.path.abspath(address)
        return Storage(path, path, True, fs.LocalFileSystem())
    with _told("SOURCE or RESULT", "used as an address"):
        files, root = fs.FileSystem.from_uri(address)
    return Storage(address, root.rstrip("/"), isinstance(files, fs.LocalFileSystem), files)


@contextmanager
def _told(place: str, what: str = "read") -> Iterator[None]:
    """Convert exceptions of pyarrow to `InputError`."""
    try:
        yield
    except (OSError, arrow().ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{place} cannot be {what}: {reason}") from error


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Readers of Parquet directories ignore names of this form.
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
