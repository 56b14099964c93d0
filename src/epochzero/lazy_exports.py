"""Packages that load a module when one of its names is first used, so that start-up stays fast."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def export_lazily(package: str, modules: Mapping[str, Collection[str]]) -> None:
    """Makes names of other modules attributes of a package, which loads them on first use.

    These names, the functions of the package itself and its ``__version__`` are its ``__all__``.

    A module may share its name with a function in it, as `epochzero.diagnose` does. Loading the module, even for
    ``from epochzero.diagnose import Facts``, would replace the function by the module: here it does not.

    Args:
        package: name of the package that is being imported.
        modules: the names that each module exports.
    """
    own = {name: module for module, names in modules.items() for name in names}

    class Package(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name in own:
                return getattr(import_module(own[name]), name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        def __dir__(self) -> list[str]:
            return list(self.__all__)

        def __setattr__(self, name: str, value: Any) -> None:
            # A module of that name is not set, so that `__getattr__` finds the function when it is used.
            if not (isinstance(value, ModuleType) and own.get(name) == value.__name__):
                super().__setattr__(name, value)

    loaded = sys.modules[package]
    names = vars(loaded)
    functions = {name for name in names if getattr(names[name], "__module__", "") == package}
    names["__all__"] = sorted({*own, *functions, *({"__version__"} & {*names})})
    loaded.__class__ = Package
