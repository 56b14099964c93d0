"""Reading files on behalf of somebody else: only within allowed directories.

An agent, a pull request or a log decides which files a question leads to: scripts, what they source,
configurations, links. `confined` sets the directories that may be read until the question is answered. It
holds in two ways:

- `open_file`, `is_file`, `is_folder`, `exists` and `readable` resolve a path and treat one outside as a file
  whose permissions forbid reading it. All text that can reach an answer is read through them.
- An audit hook (PEP 578) refuses every other opening and listing outside, so that a reader that does not use
  these functions cannot read more. Installed Python libraries stay readable to it: what they define is known
  by their source, which is never part of an answer.

Outside of `confined` every file may be read, as by any command that a person types.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from epochzero.platform import BINARY, DIRECTORY, NO_FOLLOW, NON_BLOCKING

_LIBRARY = re.compile(r"/(?:lib|lib64)/(?:python|pypy)3[^/]*/|/(?:site|dist)-packages/")
_OWN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "")
_LISTED = frozenset({"os.listdir", "os.scandir"})


class OutsideError(PermissionError):
    """A path leads outside of the allowed directories."""


@dataclass(frozen=True, slots=True)
class FileAccess:
    """The directories that may be read.

    Attributes:
        roots: absolute, without links; None when every file may be read.
    """

    roots: tuple[Path, ...] | None = None

    @classmethod
    def within(cls, roots: Iterable[str | Path]) -> FileAccess:
        """Access to these directories and what they contain."""
        return cls(tuple(Path(os.path.realpath(root)) for root in roots))

    def allows(self, path: str | Path) -> bool:
        """Whether the path, with its links followed, lies in an allowed directory."""
        try:
            self.resolve(path)
        except (OSError, ValueError):
            return False
        return True

    def resolve(self, path: str | Path) -> Path:
        """The path with its links followed.

        Raises:
            OutsideError: it leads outside.
        """
        real = Path(os.path.realpath(path))
        if self.roots is not None and not any(real.is_relative_to(root) for root in self.roots):
            raise self.refusal(path)
        return real

    def open(self, path: str | Path, *, pipes: bool = False) -> BinaryIO:
        """A regular file, opened for reading.

        Reading a pipe or a device may never end: they are refused.

        Args:
            path: of the file.
            pipes: open pipes too, where every file may be read (``epochzero diagnose <(zcat x.log)``).

        Raises:
            OutsideError: the path leads outside, or is exchanged for a link while it is opened.
            OSError: the file cannot be opened, or is not a regular file.
        """
        if pipes and self.roots is None:
            return open(path, "rb")
        flags = os.O_RDONLY | NON_BLOCKING | BINARY
        if self.roots is None:
            descriptor = os.open(path, flags)
        else:
            real = self.resolve(path)
            root = next(root for root in self.roots if real.is_relative_to(root))
            with unconfined():
                descriptor = _open_beneath(root, real, flags)
        try:
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(kind):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            if not stat.S_ISREG(kind):
                raise OSError(errno.EINVAL, "not a regular file", str(path))
            return open(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def refusal(self, path: str | Path) -> OutsideError:
        """The error for a path that leads outside."""
        allowed = ", ".join(map(str, self.roots or ()))
        return OutsideError(errno.EACCES, f"outside the allowed directories ({allowed})", str(path))


_ANYWHERE = FileAccess()
_current: ContextVar[FileAccess] = ContextVar("file_access", default=_ANYWHERE)


def current() -> FileAccess:
    """The access that holds here."""
    return _current.get()


@contextmanager
def confined(access: FileAccess) -> Iterator[None]:
    """Lets what is done within read only what the access allows, in this thread."""
    _install_hook()
    token = _current.set(access)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def unconfined() -> Iterator[None]:
    """Lets what is done within read every file: for paths that no question decides, such as ``/proc/meminfo``."""
    token = _current.set(_ANYWHERE)
    try:
        yield
    finally:
        _current.reset(token)


def open_file(path: str | Path, *, pipes: bool = False) -> BinaryIO:
    """A regular file, opened for reading, where the access allows it; see `FileAccess.open`."""
    return current().open(path, pipes=pipes)


def readable(path: str | Path) -> bool:
    """Whether the access allows the path, whether or not it exists."""
    access = current()
    return access.roots is None or access.allows(path)


def exists(path: str | Path) -> bool:
    """Whether the path exists in an allowed directory."""
    try:
        return os.path.exists(path) and readable(path)
    except (OSError, ValueError):
        return False


def is_file(path: str | Path) -> bool:
    """Whether the path is a regular file in an allowed directory."""
    try:
        return os.path.isfile(path) and readable(path)
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Whether the path is an allowed directory, or one in it."""
    try:
        return os.path.isdir(path) and readable(path)
    except (OSError, ValueError):
        return False


def _open_beneath(root: Path, real: Path, flags: int) -> int:
    """Opens a path without links, one directory at a time, so that none can be exchanged for a link."""
    parts = real.relative_to(root).parts
    if os.open not in os.supports_dir_fd:
        return os.open(real, flags)
    descriptor = os.open(root, os.O_RDONLY | DIRECTORY)
    for number, part in enumerate(parts, 1):
        step = flags if number == len(parts) else os.O_RDONLY | DIRECTORY
        try:
            inner = os.open(part, step | NO_FOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


@cache
def _install_hook() -> None:
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuses to open or list what lies outside; descriptors that are open already are let pass."""
    if event != "open" and event not in _LISTED:
        return
    access = _current.get()
    if access.roots is None or isinstance(arguments[0], int):
        return
    if event == "open" and _only_writes(arguments[2]):
        return
    path = os.fsdecode(arguments[0] if arguments[0] is not None else ".")
    if path == os.devnull:
        return
    if not access.allows(path) and not _is_library(os.path.realpath(path)):
        raise access.refusal(path)
    if event == "open" and _may_never_end(path):
        raise OSError(errno.EINVAL, "not a regular file", path)


def _only_writes(flags: int) -> bool:
    """Whether nothing that is in a file can be read by opening it so: a temporary file, a pipe to a child."""
    new = flags & os.O_CREAT and flags & os.O_EXCL
    temporary = getattr(os, "O_TMPFILE", 0)
    is_temporary = temporary and flags & temporary == temporary
    written = flags & (os.O_WRONLY | os.O_RDWR) == os.O_WRONLY
    return bool(new or is_temporary or written or flags & os.O_TRUNC)


def _may_never_end(path: str) -> bool:
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _is_library(real: str) -> bool:
    return bool(_LIBRARY.search(real + "/")) or real.startswith(_OWN)
