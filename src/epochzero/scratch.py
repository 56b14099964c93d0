"""Temporary directories, also of processes that were killed and could not remove them."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from epochzero import platform
from epochzero.file_access import unconfined

_PREFIX = "epochzero-scratch-"
# Between its creation and its lock, a directory must not look abandoned; nor while processes of a killed check exit.
_ABANDONED_AFTER_S = 3600


@contextmanager
def scratch_directory() -> Iterator[str]:
    """Yield a temporary directory that is locked, and removed at the end of the block.

    The first one of a process also removes directories of this user that no process has locked for an hour.
    """
    # A check that may only read the checkout of a pull request needs its own files all the same.
    with unconfined():
        _remove_abandoned(tempfile.gettempdir())
        # The job may have created directories in it that cannot be listed or removed.
        scratch = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        # Directories cannot be opened on Windows.
        descriptor = None if platform.NAME == "Windows" else os.open(scratch.name, os.O_RDONLY)
    try:
        if descriptor is not None:
            platform.lock(descriptor)
        yield scratch.name
    finally:
        with unconfined():
            if descriptor is not None:
                os.close(descriptor)
            scratch.cleanup()


@functools.cache
def _remove_abandoned(parent: str) -> None:
    if platform.NAME == "Windows":
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                _remove_if_abandoned(entry)


def _remove_if_abandoned(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        state = entry.stat(follow_symlinks=False)
        if state.st_uid != os.getuid() or time.time() - state.st_mtime < _ABANDONED_AFTER_S:
            return
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            platform.lock(descriptor)
            shutil.rmtree(entry.path, ignore_errors=True)
        finally:
            os.close(descriptor)
