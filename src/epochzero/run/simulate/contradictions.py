"""Refuses a target that contradicts itself or cannot be simulated here, before anything starts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from epochzero.check.target.model import Target
from epochzero.errors import InputError
from epochzero.platform import open_files

_SOME = ("memory_bytes", "shared_memory_bytes", "cpus", "processes", "open_files", "nodes")
_FEWEST_FILES = 16
"""Below that Python itself does not start."""


def refuse_contradictions(target: Target) -> None:
    """Nothing where the target can be simulated.

    Raises:
        InputError: it contradicts itself, or asks for more than this machine may give.
    """
    for problem in _problems(target):
        raise InputError(f"{target.name}: {problem}")


def _problems(target: Target) -> Iterator[str]:
    for key in _SOME:
        if getattr(target, key) == 0:
            yield f"{key}: 0 leaves no resources for a job; omit the key if the value is unknown"
    yield from _of_places(target)
    user = target.user
    if user is not None and (user.uid is None) != (user.gid is None):
        missing = "gid" if user.gid is None else "uid"
        yield f"user: uid and gid must both be set; add user.{missing}"
    if target.open_files is not None:
        most = open_files()
        if most is not None and target.open_files > most:
            yield (
                f"open_files: {target.open_files} exceeds this machine's limit of {most}; raise the limit (ulimit "
                "-Hn) or omit the key"
            )
        if target.open_files < _FEWEST_FILES:
            yield f"open_files: no program starts with {target.open_files}; use at least {_FEWEST_FILES}"


def _of_places(target: Target) -> Iterator[str]:
    places = [os.path.normpath(mount.path) for mount in target.mounts or ()]
    for path in (*places, *target.files, *target.listed):
        if not path.startswith("/"):
            yield f"{path}: paths of a target must be absolute"
    for path, count in Counter(places).items():
        if count > 1:
            yield f"mounts: {path} is mounted {count} times; keep only one"
    there = [path for path, is_there in target.files.items() if is_there]
    for path, is_there in target.files.items():
        below = [text for text in there if text.startswith(path.rstrip("/") + "/")]
        if not is_there and below:
            yield f"files: {path} does not exist, but {below[0]} inside it does"
    for path in places:
        if target.files.get(path) is False:
            yield f"mounts: {path} is mounted, but files declares that it does not exist"
