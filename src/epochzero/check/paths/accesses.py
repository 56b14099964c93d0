"""The path accesses of the program's calls, one `Access` for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from epochzero.check.findings import SourceLocation
from epochzero.check.paths.catalogue import PathUse, uses
from epochzero.check.paths.text import PathText, is_remote, path_text
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, Instance, Items, Value, entries_of

_OF_FILES = frozenset(
    [
        *("csv", "excel", "gzip", "image", "json", "jsonl", "npy", "pickle"),
        *("safetensors", "tar", "text", "torch", "tsv", "yaml", "zip"),
    ]
)
"""Formats whose readers and writers do not accept a directory."""


@dataclass(frozen=True, slots=True)
class Access:
    """One path in one call.

    Attributes:
        call: the call.
        use: entry of the catalogue.
        text: the path as written.
        does: the operation, depending on the open mode; ``creates`` for a file that must not exist
            (mode ``x``).
        format: file format, as far as the calls show it; empty if they do not.
        parsed: call that reads the format through the open file.
    """

    call: LibraryCall
    use: PathUse
    text: PathText
    does: str
    format: str = ""
    parsed: LibraryCall | None = None

    @property
    def function(self) -> str:
        """The call as users write it: ``torch.load``, ``Path.mkdir``."""
        name = self.call.name.removeprefix("builtins.")
        owner, dot, method = name.rpartition("().")
        return f"{owner.rpartition('.')[2]}.{method}" if dot else name

    @property
    def wants(self) -> str:
        """What the path must be if it exists: ``file`` or ``folder``; empty for either."""
        # Checkpoints of other libraries may be either; some writers add a suffix or create a directory.
        own = self.call.name.startswith(("torch.", "safetensors."))
        if self.use.folder or self.use.among or self.use.quiet or (self.use.checkpoint and not own):
            return ""
        if self.does in ("lists", "makes"):
            return "folder"
        writes = self.does != "reads"
        if writes and (self.use.format == "npy" or self.call.name.startswith("?")):
            return ""
        return "file" if self.use.format in _OF_FILES else ""


def is_true(value: Value | None) -> bool | None:
    """Whether a flag is set; false if it is not passed, None if unknown."""
    if value is None:
        return False
    if isinstance(value, Constant):
        return bool(value.value)
    return None


_READS = re.compile(r"open\(\)\.read(line|lines)?$")
_STRIPS = re.compile(r"\(\)\.__next__\(\)\.r?strip$")
_FIELDS = re.compile(r"\{[^{}]*\}|%0?\d*d")
Parsers: TypeAlias = dict[SourceLocation, tuple[str, LibraryCall]]
"""The reader of each open file, by where it is opened: the expected format, and the call."""


def parsers_of(program: Program) -> Parsers:
    """The formats that the program reads through open files."""
    found: Parsers = {}
    lines: dict[SourceLocation | None, SourceLocation] = {}
    for call in program.calls:
        for use in uses(call.name) or ():
            opened = argument(call, use.at, use.path) if use.does.startswith("parses") else None
            if not isinstance(opened, Instance):
                continue
            is_line = opened.made_by.endswith("().__next__")
            place = opened.place if use.does == "parses" or is_line else lines.get(opened.place)
            if place:
                found[place] = use.format, call
        opened = call.receiver
        if _STRIPS.search(call.name) and isinstance(opened, Instance) and opened.place:
            stripped = call.result.place if isinstance(call.result, Instance) else None
            lines[stripped] = opened.place
        if _READS.search(call.name) and isinstance(opened, Instance) and opened.place:
            found.setdefault(opened.place, ("", call))
    return found


def accesses_of(call: LibraryCall, parsers: Parsers) -> Iterator[Access]:
    """The path operations of a call, as far as the catalogue knows them."""
    for handler in _handlers(call):
        yield from accesses_of(handler, parsers)
    for use in uses(call.name) or ():
        if use.does.startswith("parses"):
            continue
        does = _does(call, use)
        if does:
            for text in _texts(call, use):
                yield Access(call, use, text, does, *_format(call, use, parsers))


def _handlers(call: LibraryCall) -> Iterator[LibraryCall]:
    """The handlers that ``logging`` creates from a configuration."""
    if call.name == "logging.config.dictConfig":
        for handler in _entries(_entries(argument(call, 0, "config")).get("handlers")).values():
            given = _entries(handler)
            made = given.get("class")
            if isinstance(made, Constant) and isinstance(made.value, str):
                yield replace(call, name=made.value, arguments=(), keywords=given)


def _entries(value: Value | None) -> dict[str, Value]:
    """The known entries of a dictionary, limited to keys that are texts."""
    return {str(key.value): item for key, item in entries_of(value)}


def _texts(call: LibraryCall, use: PathUse) -> Iterator[PathText]:
    if use.does == "globs" and use.at == -1:
        folder, pattern = path_text(call.receiver), path_text(argument(call, 0, use.path))
        if folder and pattern:
            yield replace(folder, parts=(*folder.parts, "/", *pattern.parts))
        return
    value = argument(call, use.at, use.path)
    if value is None and use.default and call.complete:
        value = Constant(use.default)
    # A possible pattern is not searched.
    marks = "*?[" if use.first else ""
    for item in value.values if isinstance(value, Items) else (value,):
        text = path_text(item)
        if text is not None and not is_remote(text.beginning) and text.known not in use.names:
            if any(mark in (text.known or "") for mark in marks):
                continue
            parts = text.parts if use.does in ("reads", "lists") else _without_fields(text.parts)
            yield replace(text, parts=parts, home=text.home or use.expands)


def _without_fields(parts: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Fields that a library fills in (``{epoch}``, ``%06d``) are unknown."""
    split: list[str | None] = []
    for part in parts:
        pieces = [part] if part is None else _FIELDS.split(part)
        split.append(pieces[0])
        for piece in pieces[1:]:
            split += [None, piece]
    return tuple(word for word in split if word != "")


def _does(call: LibraryCall, use: PathUse) -> str:
    """The operation for an open mode; empty if the mode is unknown."""
    if use.first and not _is_local(call, use):
        return ""
    if use.unless:
        given = is_true(argument(call, None, use.unless))
        if given is None or not call.complete:
            return ""
        return "writes" if given else use.does
    if not use.mode:
        return use.does
    mode = argument(call, use.mode_at, use.mode)
    if mode is None:
        return use.does if call.complete else ""
    if not isinstance(mode, Constant) or not isinstance(mode.value, str):
        return ""
    for letter, does in (("x", "creates"), ("w", "writes"), ("a", "appends")):
        if letter in mode.value.partition(":")[0]:
            return does
    return use.does


def _is_local(call: LibraryCall, use: PathUse) -> bool:
    """Whether the paths are in the file system, and not in a data set of a hub or a directory."""
    first = argument(call, 0, "path")
    is_known = isinstance(first, Constant) and first.value in use.first
    return is_known and call.complete and "data_dir" not in call.keywords


def _format(call: LibraryCall, use: PathUse, parsers: Parsers) -> tuple[str, LibraryCall | None]:
    """The format, and the call that reads it if that is another one."""
    place = call.result.place if isinstance(call.result, Instance) else None
    kind, by = parsers.get(place, ("", None)) if place else ("", None)
    if kind:
        return kind, by
    mode = argument(call, use.mode_at, use.mode)
    binary = isinstance(mode, Constant) and isinstance(mode.value, str) and "b" in mode.value
    return ("" if binary and use.format == "text" else use.format), by
