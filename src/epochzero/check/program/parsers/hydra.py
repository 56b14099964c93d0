"""Hydra: a configuration composed of files, with the overrides of the command line.

Source: Hydra's documentation, "The Defaults List", "Packages" and "Basic Override syntax": groups (``model=resnet``),
changed, added and deleted keys (``a.b=1``, ``+a=1``, ``++a=1``, ``~a``). The content of a ``ConfigStore`` or of another
search path is unknown; then nothing is reported as missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import yaml

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.program.configuration import Unreadable, get, load, merged
from epochzero.check.program.parsers.model import (
    ArgumentProblem,
    ParsedCommand,
    ParserSpec,
    given_at,
    nearest,
)
from epochzero.check.program.values import (
    Anything,
    Constant,
    Items,
    Raises,
    Value,
    Variable,
    entries_of,
)
from epochzero.file_access import is_folder, open_file

_OVERRIDE = re.compile(r"(?P<mark>\+\+|\+|~)?(?P<key>[\w./@:\-]+)(?:=(?P<value>.*))?", re.DOTALL)
_PACKAGE = re.compile(r"^#\s*@package[ \t]+(\S+)", re.MULTILINE)
_INTERPOLATION = re.compile(r"\$\{([\w.\[\]]+)\}")
_VARIABLE = re.compile(r"\$\{oc\.env:(\w+)\}")
# Options of Hydra itself, and whether they take a value.
_OPTIONS = {
    "--config-name": True, "-cn": True, "--config-path": True, "-cp": True, "--config-dir": True,
    "-cd": True, "--cfg": True, "-c": True, "--package": True, "-p": True, "--info": True,
    "-i": True, "--experimental-rerun": True, "--multirun": False, "-m": False, "--run": False,
    "-r": False, "--resolve": False, "--help": False, "-h": False, "--hydra-help": False,
    "--version": False, "--shell-completion": False, "-sc": True,
}  # fmt: skip
_NOTHING = Items("dict", ())
_DEEPEST = 20


def parse(spec: ParserSpec, argv: Sequence[str], folder: Path | None = None) -> ParsedCommand:
    """Return the configuration that Hydra composes, by its first keys; see `arguments.parse`."""
    overrides, options = _split(argv)
    where = _folder(spec, options, folder)
    name = options.get("--config-name") or options.get("-cn") or _text(spec, "config_name")
    if where is None or not name:
        unknown = Unknown("the configuration", "its place is not known", spec.place)
        return ParsedCommand({}, (), (unknown,), spec)
    complete = spec.complete and not {"--config-dir", "-cd"} & set(options)
    composing = _Composing(spec, where, folder or where, complete)
    composing.groups(overrides)
    config = composing.read(name, "", top=True)
    for text in composing.keys:
        config = composing.override(config, text)
    config = resolved(config, complete=composing.complete)
    values = {str(key.value): value for key, value in entries_of(config)}
    composed = replace(spec, complete=composing.complete)
    return ParsedCommand(values, tuple(composing.problems), tuple(composing.unknowns), composed)


def _split(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The overrides, and the options of Hydra itself."""
    overrides, options = [], {}
    arguments = list(argv)
    while arguments:
        argument = arguments.pop(0)
        name, equals, value = argument.partition("=")
        if name in _OPTIONS:
            takes = _OPTIONS[name] and not equals and arguments
            options[name] = arguments.pop(0) if takes else value
        else:
            overrides.append(argument)
    return overrides, options


def _text(spec: ParserSpec, name: str) -> str:
    value = spec.defaults.get(name)
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""


def _folder(spec: ParserSpec, options: dict[str, str], folder: Path | None) -> Path | None:
    """The directory of the configuration, relative to the file of ``hydra.main``."""
    path = options.get("--config-path") or options.get("-cp") or _text(spec, "config_path")
    if folder is None or not path or "://" in path:
        return None
    return folder / Path(spec.place.path).parent / path


@dataclass
class _Composing:
    """One composition."""

    spec: ParserSpec
    folder: Path
    job: Path
    complete: bool
    problems: list[ArgumentProblem] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chosen: dict[str, tuple[str, str]] = {}
        self._added: dict[str, str] = {}
        self._used: set[str] = set()

    def groups(self, overrides: Sequence[str]) -> None:
        """Distinguish choices of groups from keys: a group is a directory of the configuration."""
        for text in overrides:
            found = _OVERRIDE.fullmatch(text)
            if found is None:
                self.unknowns.append(
                    Unknown("an override", "its syntax is not known", given_at(text))
                )
                self.complete = False
                continue
            key, value, mark = found["key"], found["value"], found["mark"] or ""
            group = key.partition("@")[0]
            if key.startswith("hydra"):
                continue
            if "@" in key or (mark == "~" and self._is_group(group)):
                self.complete = False
            elif value is not None and self._is_group(group) and "," not in value:
                if mark:
                    self._added[group] = value
                else:
                    self._chosen[group] = (value, text)
            else:
                self.keys.append(text)

    def _is_group(self, group: str) -> bool:
        return is_folder(self.folder / group)

    def read(
        self,
        name: str,
        group: str,
        *,
        top: bool = False,
        depth: int = 0,
        at: SourceLocation | None = None,
    ) -> Value:
        """A file of the configuration with its defaults, in its package; ``at`` names it."""
        path = self.folder / group / f"{name.removesuffix('.yaml')}.yaml"
        config = load(path, "yaml", _shown(path, self.job))
        if isinstance(config, Unreadable) or depth > _DEEPEST:
            self._not_there(config, group, name, at or self.spec.place)
            return _NOTHING
        defaults = get(config, "defaults")
        own = _without(config, "defaults")
        if not isinstance(own, Items):
            own = _NOTHING
        own = _at(own, self._package(path, group))
        composed = self._composed(defaults, own, group, depth)
        if top:
            self._check_chosen()
            for added, choice in self._added.items():
                composed = merged(composed, self.read(choice, added, depth=depth + 1))
        return composed

    def _composed(self, defaults: Value | None, own: Value, group: str, depth: int) -> Value:
        """The defaults list in order; without ``_self_`` the file itself is last."""
        config: Value = _NOTHING
        entries = defaults.values if isinstance(defaults, Items) else ()
        if Constant("_self_") not in [_bare(entry) for entry in entries]:
            entries = (*entries, Constant("_self_"))
        for entry in entries:
            if _bare(entry) == Constant("_self_"):
                config = merged(config, own)
                continue
            config = merged(config, self._default(entry, group, depth))
        return config

    def _default(self, entry: Value, group: str, depth: int) -> Value:
        """An entry of a defaults list."""
        if isinstance(entry, Constant) and isinstance(entry.value, str):
            if "@" in entry.value:  # stored in another package than its own
                self.complete = False
                return _NOTHING
            base = "" if entry.value.startswith("/") else group
            above, _, last = entry.value.lstrip("/").rpartition("/")
            folder = f"{base}/{above}".strip("/")
            return self.read(last, folder, depth=depth + 1, at=entry.origin)
        if not isinstance(entry, Items) or len(entry.keys) != 1:
            self.complete = False
            return _NOTHING
        key, choice = entry.keys[0], entry.values[0]
        words = str(key.value).split() if isinstance(key, Constant) else [""]
        name, optional = words[-1], "optional" in words[:-1]
        full = name.lstrip("/") if name.startswith("/") else f"{group}/{name}".strip("/")
        if "@" in full or full.startswith("hydra"):
            self.complete = self.complete and full.startswith("hydra")
            return _NOTHING
        self._used.add(full)
        value = self._chosen[full][0] if full in self._chosen else self._choice(choice, key)
        if value is None or (optional and not (self.folder / full / f"{value}.yaml").is_file()):
            return _NOTHING
        at = choice.origin if isinstance(choice, Constant) else None
        return self.read(value, full, depth=depth + 1, at=at)

    def _choice(self, choice: Value, key: Value) -> str | None:
        if isinstance(choice, Constant) and choice.value == "???":
            option = str(key.value) if isinstance(key, Constant) else ""
            message = f"You must specify '{option}', e.g, {option}=<OPTION>"
            place = choice.origin or self.spec.place
            if self.complete:
                self.problems.append(ArgumentProblem("missing", option, "", message, place))
            return None
        if isinstance(choice, Constant) and isinstance(choice.value, str):
            if "${" in choice.value:
                self.complete = False
                return None
            return choice.value
        # A list of options is not followed; null selects none.
        self.complete = self.complete and _bare(choice) == Constant(None)
        return None

    def _check_chosen(self) -> None:
        for group, (value, text) in self._chosen.items():
            if group not in self._used and self.complete:
                message = (
                    f"Could not override '{group}'. No match in the defaults list. "
                    f"To append to your default list use +{group}={value}"
                )
                self.problems.append(
                    ArgumentProblem("unknown", group, value, message, given_at(text))
                )

    def _not_there(
        self, config: Value | Unreadable, group: str, name: str, named_at: SourceLocation
    ) -> None:
        place = config.place if isinstance(config, Unreadable) else named_at
        reason = config.reason if isinstance(config, Unreadable) else "nested too deeply"
        if isinstance(config, Unreadable) and (config.missing or config.wrong) and self.complete:
            self.problems.append(self._missing(config, group, name, named_at))
        self.complete = False
        self.unknowns.append(
            Unknown(f"the configuration {group}/{name}".rstrip("/"), reason, place)
        )

    def _missing(
        self, config: Unreadable, group: str, name: str, named_at: SourceLocation
    ) -> ArgumentProblem:
        """Report a file of the configuration that does not exist or is not valid YAML."""
        shown = f"{group}/{name}".lstrip("/")
        if config.wrong:
            message = f"{config.place.path} is not valid YAML: {config.reason}"
            return ArgumentProblem("unreadable", group, name, message, config.place)
        options = sorted(path.stem for path in (self.folder / group).glob("*.yaml"))
        near = nearest(name, options)
        if not is_folder(self.folder):
            folder = _shown(self.folder, self.job)
            message = f"Primary config directory not found: {folder}"
            return ArgumentProblem("absent", group, name, message, named_at)
        message = f"Could not find '{shown}'."
        if named_at == self.spec.place:
            message = (
                f"Cannot find primary config '{name}'. Check that it's in your config search path."
            )
        elif options:
            message = f"{message} Available options in '{group}': {', '.join(options)}"
        chosen = self._chosen.get(group)
        if chosen and chosen[0] == name and options:
            return ArgumentProblem("choice", group, name, message, given_at(chosen[1]), near=near)
        return ArgumentProblem("absent", group, name, message, named_at, near=near)

    @staticmethod
    def _package(path: Path, group: str) -> tuple[str, ...]:
        with open_file(path) as stream:
            found = _PACKAGE.search(stream.read(1 << 12).decode("utf-8", "replace"))
        package = found[1] if found else "_group_"
        if package == "_global_":
            return ()
        parts = tuple(part for part in group.split("/") if part)
        if package == "_group_":
            return parts
        return tuple(
            package.replace("_global_.", "").replace("_group_", ".".join(parts)).split(".")
        )

    # -- Keys of the command line ----------------------------------------------------------------

    def override(self, config: Value, text: str) -> Value:
        """Apply one override, and record what Hydra would reject."""
        found = _OVERRIDE.fullmatch(text)
        assert found is not None, "only what matches is kept"
        mark, path = found["mark"] or "", tuple(found["key"].replace("/", ".").split("."))
        there = _find(config, path)
        if mark == "~":
            if there is None:
                self._refuse("unknown", config, path, text, "Could not delete from config. '{}' does "
                             "not exist.")  # fmt: skip
            return _deleted(config, path)
        if found["value"] is None:
            return config
        if mark == "" and there is None:
            self._refuse("unknown", config, path, text, "Could not override '{}'. Key '{}' is not in "
                         "struct")  # fmt: skip
        elif mark == "+" and there is not None and _certain(there):
            self._refuse("conflict", config, path, text, "Could not append to config. An item is "
                         "already at '{}'.")  # fmt: skip
        return _stored(config, path, _literal(found["value"], given_at(text)))

    def _refuse(
        self,
        kind: Literal["unknown", "conflict"],
        config: Value,
        path: tuple[str, ...],
        text: str,
        message: str,
    ) -> None:
        if not self.complete:
            return
        key = ".".join(path)
        near = _near(config, path)
        error_text = message.format(key, path[-1])
        value = text.partition("=")[2]
        self.problems.append(
            ArgumentProblem(
                kind,
                key,
                value,
                error_text,
                given_at(text),
                near="" if kind == "conflict" else near,
            )
        )


def _shown(path: Path, folder: Path) -> str:
    """A file's path in locations: relative to the job's directory if it is inside."""
    path, folder = Path(os.path.normpath(path)), Path(os.path.normpath(folder))
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def _bare(value: Value) -> Value:
    return Constant(value.value) if isinstance(value, Constant) else value


def _without(config: Value, name: str) -> Value:
    return _deleted(config, (name,))


def _at(config: Value, path: tuple[str, ...]) -> Value:
    for name in reversed(path):
        config = Items("dict", (config,), (Constant(name),))
    return config


def _find(config: Value, path: tuple[str, ...]) -> Value | None:
    """The item at a path; None if it certainly does not exist."""
    at: Value | None = config
    for name in path:
        if isinstance(at, Items) and at.kind == "list" and name.isdigit():
            at = at.values[int(name)] if int(name) < len(at.values) else None
        elif isinstance(at, Constant):
            # An interpolation may stand for a dictionary; null does not.
            return Anything() if "${" in str(at.value) else None
        elif at is not None:
            at = get(at, name)
    return at


def _certain(value: Value) -> bool:
    return not isinstance(value, Anything)


def _near(config: Value, path: tuple[str, ...]) -> str:
    """The key that was probably meant."""
    above = _find(config, path[:-1]) if len(path) > 1 else config
    keys = above.keys if isinstance(above, Items) else ()
    found = nearest(path[-1], [str(key.value) for key in keys if isinstance(key, Constant)])
    return ".".join((*path[:-1], found)) if found else ""


def _stored(config: Value, path: tuple[str, ...], value: Value) -> Value:
    if isinstance(config, Items) and config.kind == "list":
        return Anything("a list of which items are changed")
    whole = value
    for name in reversed(path):
        whole = Items("dict", (whole,), (Constant(name),))
    return merged(config, whole) if isinstance(config, Items) else whole


def _deleted(config: Value, path: tuple[str, ...]) -> Value:
    if not isinstance(config, Items) or config.kind != "dict":
        return config
    pairs = []
    for key, value in zip(config.keys, config.values, strict=True):
        here = isinstance(key, Constant) and key.value == path[0]
        if not here:
            pairs.append((key, value))
        elif len(path) > 1:
            pairs.append((key, _deleted(value, path[1:])))
    return Items("dict", tuple(v for _, v in pairs), tuple(k for k, _ in pairs), config.complete)


def _literal(text: str, place: SourceLocation) -> Value:
    """Parse a value of the command line, whose grammar is close to YAML's flow style."""
    try:
        data = yaml.safe_load(text) if len(text) < 10_000 else text
    except (yaml.YAMLError, ValueError, RecursionError):
        data = text
    # Hydra reads 1e-3 as a number, unlike PyYAML.
    if isinstance(data, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", data):
        data = float(data)
    return _of_data(data, place)


def _of_data(data: object, place: SourceLocation) -> Value:
    if isinstance(data, dict):
        values = tuple(_of_data(value, place) for value in data.values())
        return Items("dict", values, tuple(_of_data(key, place) for key in data))
    if isinstance(data, list):
        return Items("list", tuple(_of_data(item, place) for item in data))
    if data is None or isinstance(data, str | int | float | bool):
        return Constant(data, place)
    return Anything("a value of the command line")


# -- Interpolation -----------------------------------------------------------------------------


class OmegaConfBaseException(Exception):  # noqa: N818 -- these are OmegaConf's names
    """What OmegaConf raises when a value is read, by the names of its own classes."""


class MissingMandatoryValue(OmegaConfBaseException):
    """``???`` is read."""


class InterpolationKeyError(OmegaConfBaseException, ValueError):
    """An interpolation of a missing key is read."""


def resolved(config: Value, *, complete: bool = True) -> Value:
    """Resolve a configuration like OmegaConf.

    ``${a.b}`` is followed, ``${oc.env:A}`` is a `Variable`, other resolvers are unknown; ``???`` and unresolvable
    interpolations are `Raises`.

    Args:
        config: the configuration as written.
        complete: whether it certainly has no other keys.
    """
    return _Resolving(config, complete).value(config, (), 0)


@dataclass(frozen=True)
class _Resolving:
    """The interpolations of one configuration."""

    root: Value
    complete: bool

    def value(self, value: Value, path: tuple[str, ...], depth: int) -> Value:
        """A value at a path."""
        if isinstance(value, Items):
            keys = value.keys or tuple(map(Constant, range(len(value.values))))
            names = (str(key.value) if isinstance(key, Constant) else "?" for key in keys)
            pairs = zip(names, value.values, strict=True)
            items = tuple(self.value(item, (*path, name), depth) for name, item in pairs)
            return replace(value, values=items)
        if not isinstance(value, Constant) or not isinstance(value.value, str):
            return value
        if value.value == "???":
            message = f"Missing mandatory value: {'.'.join(path)}"
            return self._raises(MissingMandatoryValue, message)
        if "${" not in value.value:
            return value
        if depth > _DEEPEST:
            return Anything("an interpolation of itself")
        if (whole := _VARIABLE.fullmatch(value.value)) is not None:
            return Variable(f"the variable {whole[1]}", whole[1])
        if (inner := _INTERPOLATION.fullmatch(value.value)) is not None:
            return self._named(inner[1], depth)
        return self._joined(value, depth)

    def _raises(self, error: type[Exception], message: str) -> Value:
        return Raises(message, error, message) if self.complete else Anything(message)

    def _named(self, name: str, depth: int) -> Value:
        """The value that an interpolation refers to."""
        if name.startswith("."):
            return Anything("a relative interpolation")
        found = _find(self.root, path := tuple(name.replace("[", ".").replace("]", "").split(".")))
        if found is None:
            return self._raises(InterpolationKeyError, f"Interpolation key '{name}' not found")
        return self.value(found, path, depth + 1)

    def _joined(self, value: Constant, depth: int) -> Value:
        """Resolve a text that contains interpolations, if all of them are known."""
        text = str(value.value)
        if "\\${" in text:
            return Anything("an interpolation that is escaped")
        if (variable := _VARIABLE.search(text)) is not None:
            return Variable(f"the variable {variable[1]}", variable[1], whole=False)
        for name in _INTERPOLATION.findall(text):
            part = self._named(name, depth)
            if isinstance(part, Raises):
                return part
            if not isinstance(part, Constant):
                return Anything("an interpolation that is not known")
            text = text.replace(f"${{{name}}}", str(part.value))
        if "${" in text:
            return Anything("a resolver of OmegaConf")
        return Constant(text, value.origin)
