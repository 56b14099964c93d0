"""Library calls that take a path, and what they do with it: ``calls.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from epochzero.check.tables import read_table


@dataclass(frozen=True, slots=True)
class PathUse:
    """What a call does with one path. The fields are those of ``calls.toml``, which lists the values of ``does``."""

    does: str
    at: int | None = None
    path: str = ""
    parent: str = "needed"
    parents: str = ""
    format: str = ""
    folder: bool = False
    expands: bool = False
    checkpoint: bool = False
    unless: str = ""
    default: str = ""
    mode: str = ""
    mode_at: int | None = None
    among: bool = False
    quiet: bool = False
    names: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


_Calls = Mapping[str, tuple[PathUse, ...]]


@cache
def load() -> tuple[Mapping[str, str], _Calls, Mapping[str, tuple[str, ...]]]:
    """Aliases; uses by name; names with a star by the part after the last dot."""
    data = read_table(__package__, "calls.toml")
    calls = {name: _uses(entry) for name, entry in data["calls"].items()}
    starred: dict[str, tuple[str, ...]] = {}
    for name in sorted((name for name in calls if "*" in name), key=len, reverse=True):
        last = name.rpartition(".")[2]
        starred[last] = (*starred.get(last, ()), name)
    return data["aliases"], calls, starred


def _uses(entry: Mapping[str, Any] | list[Mapping[str, Any]]) -> tuple[PathUse, ...]:
    entries = entry if isinstance(entry, list) else [entry]
    words = ("names", "first")
    return tuple(
        PathUse(**{**e, **{name: tuple(e.get(name, ())) for name in words}}) for e in entries
    )


@cache
def canonical(name: str) -> str:
    """The name of a function in the catalogue: aliases of the library are replaced."""
    for alias, meant in load()[0].items():
        rest = name.removeprefix(alias)
        if rest != name and (rest == "" or rest[0] in ".("):
            return canonical(meant + rest)
    return name


def _is_direct(name: str, pattern: str) -> bool:
    """Whether the star of ``torchvision.datasets.*`` is a class, no method of one and no function of a submodule."""
    return not pattern.endswith(".*") or name.rpartition(".")[0] == pattern.removesuffix(".*")


@cache
def uses(name: str) -> tuple[PathUse, ...] | None:
    """What a call of this name does with its paths; None if it is not in the catalogue."""
    name = canonical(name)
    _, calls, starred = load()
    if name in calls:
        return calls[name]
    for pattern in (*starred.get(name.rpartition(".")[2], ()), *starred.get("*", ())):
        if fnmatchcase(name, pattern) and _is_direct(name, pattern):
            return calls[pattern]
    return None
