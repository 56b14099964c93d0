"""Configuration files that the program loads."""

from __future__ import annotations

from pathlib import Path

from epochzero.check.findings import SourceLocation
from epochzero.check.program.configuration import Unreadable, kind_of, load
from epochzero.check.program.core import Core
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import LibraryResult, V, thawed
from epochzero.check.program.parsers.hydra import resolved
from epochzero.check.program.parsing import configured
from epochzero.check.program.texts import as_text
from epochzero.check.program.values import Anything, Constant

_KINDS = {
    "yaml.safe_load": "yaml",
    "yaml.load": "yaml",
    "yaml.full_load": "yaml",
    "yaml.unsafe_load": "yaml",
    "yaml.safe_load_all": "yaml-all",
    "json.load": "json",
    "json.loads": "json",
    "tomllib.load": "toml",
    "tomllib.loads": "toml",
    "tomli.load": "toml",
    "tomli.loads": "toml",
    "toml.load": "toml",
    "toml.loads": "toml",
    "omegaconf.OmegaConf.load": "",
}
_READS = ("read", "read_text", "read_bytes", "open")


def loaded(machine: Core, name: str, given: Arguments) -> V | None:
    """Return the content of a configuration that a function loads; None if it loads none, or if it is unknown."""
    kind = _KINDS.get(name)
    source = given.get(0)
    if kind is None or source is None:
        return None
    path = read_by(source)
    if path is None:
        return None
    file = machine.job.folder / path
    base = machine.job.base
    shown = file.relative_to(base).as_posix() if file.is_relative_to(base) else str(path)
    value = load(file, kind or kind_of(path), shown)
    if isinstance(value, Unreadable):
        return Anything(f"{shown}: {value.reason}")
    if name == "omegaconf.OmegaConf.load":
        return configured(thawed(resolved(value)), SourceLocation(shown))
    return thawed(value)


def read_by(source: V) -> Path | None:
    """The file that an open file reads, from which a text was read, or that a path names."""
    if isinstance(source, LibraryResult) and source.name.rpartition(".")[2] in _READS:
        if source.receiver is not None:
            return read_by(source.receiver)
        if source.name in ("builtins.open", "io.open", "codecs.open") and source.arguments:
            return read_by(source.arguments[0])
        return None
    text = as_text(source)
    return (
        Path(str(text.value))
        if isinstance(text, Constant) and "\0" not in str(text.value)
        else None
    )
