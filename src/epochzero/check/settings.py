"""The sections ``[tool.epochzero...]`` of the ``pyproject.toml`` in the job's directory."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from epochzero.check.data import DataSet
from epochzero.check.findings import SourceLocation
from epochzero.check.rules import UNREAD, find
from epochzero.errors import InputError, suggestion
from epochzero.file_access import exists, is_file, open_file

FILE = "pyproject.toml"
LARGEST_BYTES = 4 << 20
_KEYS = ("target", "select", "ignore", "per-file-ignores", "exclude", "data")


@dataclass(frozen=True)
class CheckSettings:
    """A project's settings for ``check``.

    Attributes:
        target: name of a target or path of its file; empty for this machine.
        select: ids of the rules to run; all if empty.
        ignore: ids of the rules to skip.
        per_file_ignores: pattern of paths -> ids of the rules whose findings are suppressed there.
        exclude: patterns of paths in which all findings are suppressed.
        data: data sets of the job with their profiles.
    """

    target: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    data: tuple[DataSet, ...] = ()

    def reason_to_leave(self, rule: str, path: str) -> str:
        """Why findings of a rule are suppressed in a file; empty if they are not.

        A pattern matches a path or one of its parent directories; ``*`` also matches ``/``.
        """
        for pattern in self.exclude:
            if _fits(path, pattern):
                return f"{FILE}: exclude {pattern}"
        for pattern, rules in self.per_file_ignores.items():
            if rule in rules and _fits(path, pattern):
                return f"{FILE}: per-file-ignores {pattern}"
        return ""


def _fits(path: str, pattern: str) -> bool:
    pure = PurePosixPath(path)
    wanted = pattern.rstrip("/")
    return any(fnmatchcase(str(part), wanted) for part in (pure, *pure.parents))


def read_settings(folder: Path) -> CheckSettings:
    """Read the settings of the job's directory; the defaults if it has none.

    Raises:
        InputError: the file cannot be read or is not valid TOML, or the section has an unknown key, a value of another type,
            or an unknown rule.
    """
    section = read_section(folder, "check")
    try:
        return _settings(section, folder)
    except InputError as error:
        raise InputError(f"{folder / FILE}: [tool.epochzero.check] {error}") from error


def read_section(folder: Path, name: str) -> Mapping[str, Any]:
    """The table ``[tool.epochzero.NAME]``; empty if there is none.

    Raises:
        InputError: the file cannot be read or is not valid TOML, or it is not a table.
    """
    file = folder / FILE
    section = _toml(file) if is_file(file) else {}
    for path in ("tool", "tool.epochzero", f"tool.epochzero.{name}"):
        section = section.get(path.rpartition(".")[2], {})
        if not isinstance(section, dict):
            raise InputError(f"{file}: {path} must be a table, not {section!r:.60}")
    return section


def _toml(file: Path) -> dict[str, Any]:
    try:
        with open_file(file) as stream:
            data = stream.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise InputError(f"{file} is larger than {LARGEST_BYTES >> 20} MB")
        return tomllib.loads(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error


def _settings(section: Mapping[str, Any], folder: Path) -> CheckSettings:
    for key in section:
        if key not in _KEYS:
            hint = suggestion(key, _KEYS, f"it may have {', '.join(_KEYS)}")
            raise InputError(f"unknown key {key}; {hint}")
    target = section.get("target", "")
    if not isinstance(target, str):
        raise InputError("target must be a string: a name or the path of a file")
    if target and exists(folder / target):
        target = str(folder / target)
    ignores = section.get("per-file-ignores", {})
    if not isinstance(ignores, dict):
        raise InputError("per-file-ignores must be a table of lists of rules")
    return CheckSettings(
        target,
        _rules(section, "select"),
        _rules(section, "ignore"),
        {pattern: _rules(ignores, pattern, "per-file-ignores.") for pattern in ignores},
        _texts(section, "exclude"),
        tuple(_data(section)),
    )


def _data(section: Mapping[str, Any]) -> Iterator[DataSet]:
    listed = section.get("data", [])
    for each in listed if isinstance(listed, list) else [listed]:
        texts = isinstance(each, dict) and all(isinstance(text, str) for text in each.values())
        if not texts or each.keys() != {"path", "profile"}:
            raise InputError("data must be a list of tables, each with a path and a profile")
        yield DataSet(each["path"], each["profile"], SourceLocation(FILE))


def _rules(section: Mapping[str, Any], key: str, table: str = "") -> tuple[str, ...]:
    names = _texts(section, key, table)
    for name in names:
        try:
            if name not in UNREAD:
                find(name)
        except InputError as error:
            raise InputError(f"{table}{key}: {error}") from error
    return names


def _texts(section: Mapping[str, Any], key: str, table: str = "") -> tuple[str, ...]:
    value = section.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{table}{key} must be a list of strings")
    return tuple(value)
