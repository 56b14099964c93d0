"""The directory of a pretrained model: whether it contains the files that `from_pretrained` reads.

Based on the documentation of Transformers, PEFT and Diffusers; ``pretrained.toml`` lists the files of
each class.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from epochzero.check.paths.catalogue import canonical
from epochzero.check.paths.contents import FileFault, ReadMethod, format_of, inspect
from epochzero.check.program.events import LibraryCall
from epochzero.check.tables import read_table
from epochzero.file_access import open_file

_LARGEST_INDEX_BYTES = 16 << 20
_ELSEWHERE = ("subfolder", "revision")
"""Options with which every class reads from a location other than the directory itself."""


@dataclass(frozen=True, slots=True)
class _Needs:
    """The files that a class reads. The fields are those of ``pretrained.toml``."""

    error: str
    any: tuple[str, ...]
    unless: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    sure: bool = True
    weights: bool = False


def inspect_pretrained(call: LibraryCall, folder: str) -> Iterator[tuple[str, FileFault | None]]:
    """The inspected files in a directory of this machine, each with its fault.

    Args:
        call: call of ``from_pretrained`` that reads the directory.
        folder: directory on this machine.
    """
    needs = _needs(canonical(call.name).rpartition(".")[0])
    if needs is None or not call.complete or {*_ELSEWHERE, *needs.keywords} & call.keywords.keys():
        return
    names = os.listdir(folder)
    if not _fits(names, needs.any):
        if not _fits(names, needs.unless):
            yield folder, _lacks(needs, folder, sure=needs.sure or not names)
    elif needs.weights and not _fits(names, needs.unless):
        yield from _weights(call, folder, names)


def _weights(
    call: LibraryCall, folder: str, names: Collection[str]
) -> Iterator[tuple[str, FileFault | None]]:
    """The weights that a model reads: safetensors first, through an index if there are several files."""
    needs = _table()[0]
    if set(needs.keywords) & call.keywords.keys():
        return
    if not _fits(names, needs.any):
        yield folder, _lacks(needs, folder, sure=True)
        return
    for whole in ("model.safetensors", "pytorch_model.bin"):
        index = f"{whole}.index.json"
        if whole in names:
            yield _weight(folder, whole)
            return
        if index in names:
            yield from (_weight(folder, shard) for shard in _shards(os.path.join(folder, index)))
            return


def _weight(folder: str, name: str) -> tuple[str, FileFault | None]:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        where = os.path.basename(folder)
        error = f"OSError: {where} does not appear to have a file named {name}"
        return path, FileFault("incomplete", "is listed in the index but does not exist", error)
    return path, inspect(path, ReadMethod(format_of(name, "torch")))


def _shards(index: str) -> Sequence[str]:
    """The files in an index; empty if it cannot be read."""
    try:
        with open_file(index) as file:
            data = file.read(_LARGEST_INDEX_BYTES + 1)
        if len(data) > _LARGEST_INDEX_BYTES:
            return []
        return sorted(set(json.loads(data)["weight_map"].values()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _lacks(needs: _Needs, folder: str, *, sure: bool) -> FileFault:
    wanted = " or ".join(needs.any[:3])
    error = needs.error.format(folder=os.path.basename(folder))
    return FileFault("incomplete", f"has no {wanted}", error, sure)


def _fits(names: Collection[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _needs(name: str) -> _Needs | None:
    """The files that the class of this name reads; None if unknown."""
    return next((r for pattern, r in _table()[1].items() if fnmatchcase(name, pattern)), None)


@cache
def _table() -> tuple[_Needs, Mapping[str, _Needs]]:
    """The weight files, and the files of each class, in the order of the file."""
    data = read_table(__package__, "pretrained.toml")
    return _entry(data["weights"]), {value.pop("class"): _entry(value) for value in data["classes"]}


def _entry(entry: Mapping[str, object]) -> _Needs:
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return _Needs(**{**entry, **lists})  # type: ignore[arg-type]
