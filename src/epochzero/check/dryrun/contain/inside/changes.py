"""What the job wrote, from the upper folders of its overlays."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from epochzero.check.dryrun.contain.inside.view import Layer

__all__ = ["changes_of"]

MOST = 2_000


def changes_of(layers: list[Layer]) -> dict[str, Any]:
    """Paths that were created, changed or deleted, with their sizes; at most `MOST` of them.

    Returns:
        ``{"changes": [{"path", "how", "bytes"}, ...], "left_out": n}``
    """
    found: list[dict[str, Any]] = []
    left_out = 0
    for layer in layers:
        for path, how, size in _changed(layer):
            if len(found) < MOST:
                found.append({"path": path, "how": how, "bytes": size})
            else:
                left_out += 1
    return {"changes": found, "left_out": left_out}


def _changed(layer: Layer) -> Iterator[tuple[str, str, int]]:
    for folder, folders, files, descriptor in os.fwalk(".", dir_fd=layer.upper):
        inside = os.path.normpath(folder)
        for name in sorted(folders + files):
            relative = os.path.join(inside, name)
            with suppress(OSError):
                state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                how = _how(layer, relative, state)
                if how:
                    size = state.st_size if stat.S_ISREG(state.st_mode) else 0
                    yield os.path.normpath(os.path.join(layer.path, relative)), how, size


def _how(layer: Layer, relative: str, state: os.stat_result) -> str:
    if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
        return "deleted"  # a whiteout
    try:
        before = os.stat(relative, dir_fd=layer.lower, follow_symlinks=False)
    except OSError:
        return "created"
    # A folder of the upper layer is there because something below it changed.
    both_folders = stat.S_ISDIR(state.st_mode) and stat.S_ISDIR(before.st_mode)
    return "" if both_folders else "changed"
