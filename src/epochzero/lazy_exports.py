"""Packages that load a room when a name of it is first used: starting up must stay fast."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def load_late(package: str, rooms: Mapping[str, Collection[str]]) -> None:
    """Makes names of other modules attributes of a package, which loads them on first use.

    A room may share its name with a function in it, as `epochzero.diagnose` does. Loading the room, be it only for
    ``from epochzero.diagnose import Facts``, would put its module where the function belongs: here it does not.

    Args:
        package: which is being imported.
        rooms: modules and the names that they have.
    """
    own = {name: room for room, names in rooms.items() for name in names}

    class Package(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name in own:
                return getattr(import_module(own[name]), name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and own.get(name) == value.__name__:
                value = getattr(value, name)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Package
