"""Histories stored between runs, so that the next run reads only new commits."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile

from epochzero.code import History, Repository

FOLDER = "history"
MOST_HISTORIES = 64
"""Histories that are stored, each of a megabyte or so."""


def read_history(repository: Repository, rev: str, cache_folder: Path | None) -> History:
    """Return the history of a revision, extending the stored one.

    A stored history that cannot be used is not an error: the history is read again.

    Args:
        repository: where to read.
        rev: the revision.
        cache_folder: where histories are stored; None to store none.

    Raises:
        InputError: there is no such revision, or objects are missing.
    """
    if cache_folder is None:
        return History(repository, rev)
    place = os.path.realpath(repository.git.folder)
    name = blake2b(os.fsencode(place), digest_size=16).hexdigest()
    path = cache_folder / FOLDER / f"{name}.zst"
    known = _stored(path)
    history = History(repository, rev, known=known)
    if known is None or known.tip != history.tip:
        with suppress(OSError):  # the cache is optional
            store_file(path, history.to_bytes(), MOST_HISTORIES)
    return history


def _stored(path: Path) -> History | None:
    try:
        return History.from_bytes(path.read_bytes())
    except (OSError, ValueError, TypeError, IndexError):
        return None


def store_file(path: Path, data: bytes, most: int) -> None:
    """Write a file of a cache in one step, and delete the oldest of its kind.

    Args:
        path: of the file; its directory is created if it is missing.
        data: the content.
        most: files with this extension in the directory that remain.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, suffix=".new", delete=False) as stream:
        stream.write(data)
    os.replace(stream.name, path)
    others = sorted(path.parent.glob(f"*{path.suffix}"), key=lambda other: -other.stat().st_mtime)
    for other in others[most:]:
        other.unlink(missing_ok=True)
