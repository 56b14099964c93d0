"""The standard library of a Python version, from this version's list and a table of changes."""

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from epochzero.check.tables import read_table

Version: TypeAlias = tuple[int, int]


@cache
def _table() -> Mapping[str, Any]:
    return read_table(__package__, "standard.toml")


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


def standard_modules() -> frozenset[str]:
    """Top-level modules of the standard library in any version that the table knows."""
    modules = _table()["modules"]
    known = {name.partition(".")[0] for name in {**modules["added"], **modules["removed"]}}
    return sys.stdlib_module_names | known


def lacks_module(module: str, python: Version) -> str:
    """Why a Python version lacks a module of the standard library; empty if it has the module or no
    version has it.

    >>> lacks_module("tomllib", (3, 10))
    'tomllib was added in Python 3.11'
    >>> lacks_module("distutils.util", (3, 12))
    'distutils was removed in Python 3.12'
    """
    return _lacks(module, _table()["modules"], python)


def lacks_name(name: str, python: Version) -> str:
    """Why a Python version lacks a name of a standard module; empty if it has the name.

    >>> lacks_name("collections.Mapping", (3, 10))
    'collections.Mapping was removed in Python 3.10'
    """
    return _lacks(name, _table()["names"], python)


def instead_of(module: str) -> str:
    """The replacement of a missing module; empty if none exists."""
    parts = module.split(".")
    instead: Mapping[str, str] = _table()["modules"]["instead"]
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((instead[name] for name in names if name in instead), "")


def _lacks(name: str, table: Mapping[str, Mapping[str, str]], python: Version) -> str:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        part = ".".join(parts[:length])
        if part in table["added"] and python < _version(table["added"][part]):
            return f"{part} was added in Python {table['added'][part]}"
        if part in table["removed"] and python >= _version(table["removed"][part]):
            return f"{part} was removed in Python {table['removed'][part]}"
    return ""
