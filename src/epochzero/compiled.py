"""Stores what takes long to compute from data files, so that the next process need not compute it again.

A stored item is found by a key that is a hash of everything it was computed from, so a changed input is
a missing item and nothing is ever updated. Items come from two directories: the one that the build adds
to a wheel, and a directory of the user's cache that `use` names.

Other users may be able to write to the second one. An item is read only where the directory and the
file belong to this user and nobody else may write to them, and only if its digest is right. Callers
parse what they get; they never execute it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from epochzero.file_access import unconfined
from epochzero.platform import DIRECTORY, NO_FOLLOW, NON_BLOCKING, is_private

BUILT = Path(__file__).with_name("built")
"""The directory that the build of a wheel fills; it does not exist in an editable installation."""
LARGEST_BYTES = 64 << 20
MOST_ITEMS = 32
"""The oldest items beyond this number are removed: every change of a signature adds two."""
_DIGEST_BYTES = 32
_SHARED = "EPOCHZERO_COMPILED"

_directory: Path | None = None


def use(directory: Path | None) -> None:
    """Sets the directory in which this process finds and stores items; None for none.

    Args:
        directory: created when the first item is stored.
    """
    global _directory
    _directory = directory


def share() -> None:
    """Lets processes that this one starts from now on use the same directory, by `use_shared`."""
    if _directory is not None:
        os.environ[_SHARED] = str(_directory)


def use_shared() -> None:
    """Uses the directory that a parent process shares, if any."""
    if directory := os.environ.get(_SHARED):
        use(Path(directory))


def key_of(parts: Iterable[bytes]) -> str:
    """The key of what is computed from these parts, in this order."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        # With its length, so that no two sequences of parts look alike.
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


@unconfined()
def load(key: str) -> bytes | None:
    """The item of a key; None if none is stored, or if it is damaged or not to be trusted."""
    for directory, is_ours in ((BUILT, True), (_directory, False)):
        if directory is None:
            continue
        with suppress(OSError), _opened(directory, is_ours=is_ours) as folder:
            item = _read(folder, key, is_ours=is_ours)
            if item is not None:
                return item
    return None


@unconfined()
def store(key: str, item: bytes) -> None:
    """Stores an item; without effect where that is not possible, as on a read-only disk."""
    if _directory is None or len(item) > LARGEST_BYTES:
        return
    with suppress(OSError):
        _directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(_directory, is_ours=False) as folder:
            _write(folder, key, _digest(key, item) + item)
            _remove_oldest(folder)


def _digest(key: str, item: bytes) -> bytes:
    # With the key, so that a renamed file is no item of another key.
    return blake2b(item, digest_size=_DIGEST_BYTES, key=bytes.fromhex(key)).digest()


@contextmanager
def _opened(directory: Path, *, is_ours: bool) -> Iterator[int]:
    """The descriptor of a directory. All access goes through it: its path may be replaced meanwhile.

    Args:
        directory: to open.
        is_ours: whether it is part of the package, which whoever installed it may own.

    Raises:
        PermissionError: others own the directory, or may write to it.
    """
    flags = os.O_RDONLY | DIRECTORY
    folder = os.open(directory, flags if is_ours else flags | NO_FOLLOW)
    try:
        if not is_ours:
            _require_private(os.fstat(folder))
        yield folder
    finally:
        os.close(folder)


def _require_private(status: os.stat_result) -> None:
    if not is_private(status):
        raise PermissionError("other users can change it")


def _read(folder: int, key: str, *, is_ours: bool) -> bytes | None:
    # A named pipe must not hold us up.
    flags = os.O_RDONLY | NO_FOLLOW | NON_BLOCKING
    with open(os.open(key, flags, dir_fd=folder), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not is_ours:
            _require_private(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
            return None
        digest, item = stream.read(_DIGEST_BYTES), stream.read(LARGEST_BYTES)
    return item if digest == _digest(key, item) else None


def _write(folder: int, key: str, data: bytes) -> None:
    """Writes a file that others see whole or not at all."""
    temporary = f".{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW
    file = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(file, "wb") as stream:
            stream.write(data)
        os.rename(temporary, key, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _remove_oldest(folder: int) -> None:
    """Removes the oldest files, those that a killed process did not finish among them."""
    with os.scandir(folder) as entries:
        by_age = sorted(entries, key=lambda entry: -entry.stat(follow_symlinks=False).st_mtime)
    for entry in by_age[MOST_ITEMS:]:
        with suppress(OSError):
            os.unlink(entry.name, dir_fd=folder)
