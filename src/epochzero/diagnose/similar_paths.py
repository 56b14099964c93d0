"""Finds the existing path that a missing one was probably meant to be."""

from __future__ import annotations

import os
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from epochzero.file_access import readable

MOST_ENTRIES = 20_000


def nearest_path(missing: str) -> str | None:
    """An existing path similar to ``missing``, on this machine.

    The deepest existing directory of the path is searched for a name similar to the missing one.

    Args:
        missing: an absolute path; a relative one has no meaning outside its job.
    """
    path = Path(missing)
    if not path.is_absolute() or "\0" in missing:
        return None
    try:
        # Not `exists`: from Python 3.14 on, what may not be searched is missing for it.
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
            return None
        if not readable(path):
            return None
        while not path.parent.is_dir():
            path = path.parent
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, MOST_ENTRIES)]
    except OSError:
        return None
    same = [name for name in names if name.casefold() == path.name.casefold()]
    near = same or get_close_matches(path.name, names, n=1, cutoff=0.75)
    return str(path.parent / near[0]) if near else None
