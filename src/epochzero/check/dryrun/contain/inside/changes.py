"""What the job wrote, from the upper folders of its overlays."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from epochzero.check.dryrun.contain.inside.view import Overlay

MOST = 2_000
MOST_KEPT_BYTES = 1 << 30


def changes_of(layers: list[Overlay], keep: int | None = None) -> dict[str, Any]:
    """Paths that were created, changed or deleted, with their sizes; at most `MOST` of them.

    Args:
        layers: of the view.
        keep: descriptor of a folder outside of it, into which what was written is copied, each under
            the number of its change; None where nothing is kept.

    Returns:
        ``{"changes": [{"path", "how", "bytes", "directory", "kept"}, ...], "left_out": n}``
    """
    found: list[dict[str, Any]] = []
    left_out = 0
    room = MOST_KEPT_BYTES
    for layer in layers:
        for path, how, size, directory in _changed(layer):
            if len(found) < MOST:
                change = {
                    "path": path,
                    "how": how,
                    "bytes": size,
                    "directory": directory,
                    "kept": False,
                }
                if keep is not None and how != "deleted" and size <= room:
                    change["kept"] = _kept(layer, path, keep, str(len(found)))
                    room -= size
                found.append(change)
            else:
                left_out += 1
    return {"changes": found, "left_out": left_out}


def _changed(layer: Overlay) -> Iterator[tuple[str, str, int, bool]]:
    for folder, folders, files, descriptor in os.fwalk(".", dir_fd=layer.upper):
        inside = os.path.normpath(folder)
        for name in sorted(folders + files):
            relative = os.path.join(inside, name)
            with suppress(OSError):
                state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                how = _how(layer, relative, state)
                if how:
                    size = state.st_size if stat.S_ISREG(state.st_mode) else 0
                    path = os.path.normpath(os.path.join(layer.path, relative))
                    yield path, how, size, stat.S_ISDIR(state.st_mode)


def _kept(layer: Overlay, path: str, keep: int, name: str) -> bool:
    """Copy a file, or make a folder, under this name; whether that was done."""
    relative = os.path.relpath(path, layer.path)
    with suppress(OSError):
        mode = os.stat(relative, dir_fd=layer.upper, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            os.mkdir(name, dir_fd=keep)
            return True
        if stat.S_ISREG(mode):
            source = os.open(relative, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=layer.upper)
            copy = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=keep)
            with open(source, "rb") as reading, open(copy, "wb") as writing:
                shutil.copyfileobj(reading, writing)
            return True
    return False


def _how(layer: Overlay, relative: str, state: os.stat_result) -> str:
    if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
        return "deleted"  # a whiteout
    try:
        before = os.stat(relative, dir_fd=layer.lower, follow_symlinks=False)
    except OSError:
        return "created"
    # A directory of the upper layer exists because something below it changed.
    both_folders = stat.S_ISDIR(state.st_mode) and stat.S_ISDIR(before.st_mode)
    return "" if both_folders else "changed"
