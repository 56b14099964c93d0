"""Puts something in the place of what others have, and takes it away again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_INHERITED = object()


class Patches:
    """All that is put in place, as one."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def put(self, owner: Any, name: str, replacement: Any) -> None:
        """Replaces an attribute of a class or module; one that is inherited gets one of its own in front."""
        before = vars(owner).get(name, _INHERITED)
        setattr(owner, name, replacement)
        if before is _INHERITED:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, before))

    def undone_by(self, undo: Callable[[], object]) -> None:
        """Something else was put in place, which this takes away."""
        self._undo.append(undo)

    def remove(self) -> None:
        """Restores the originals, the latest first."""
        while self._undo:
            self._undo.pop()()


@contextmanager
def replaced(owner: Any, attributes: Mapping[str, Any]) -> Iterator[None]:
    """Replace attributes of a class or module while the context lasts."""
    patches = Patches()
    for name, value in attributes.items():
        patches.put(owner, name, value)
    try:
        yield
    finally:
        patches.remove()
