"""Convert the known value of an expression into a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from epochzero.check.findings import SourceLocation
from epochzero.check.program.values import Anything, Constant, Instance, Items, Text, Value

_PATH_CLASSES = re.compile(r"pathlib\.(Pure)?(Posix|Windows)?Path$")
_SAME = frozenset(
    [
        "builtins.str",
        "os.fspath",
        "os.path.abspath",
        "os.path.realpath",
        "os.path.normpath",
        "os.path.expandvars",
        "pathlib.Path().resolve",
        "pathlib.Path().absolute",
        "pathlib.Path().as_posix",
    ]
)
_HOME = frozenset(["os.path.expanduser", "pathlib.Path().expanduser"])
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//|/?memory:)")
_DEEPEST = 6


@dataclass(frozen=True)
class PathText:
    """A path as written, as far as it is known.

    Attributes:
        parts: parts in order; None for an unknown part.
        origin: where the value is written, if that is known.
        reason: why a part is unknown.
        home: whether a leading ``~`` was replaced by the home directory.
    """

    parts: tuple[str | None, ...]
    origin: SourceLocation | None = None
    reason: str = ""
    home: bool = False

    @cached_property
    def known(self) -> str | None:
        """The whole path; None if a part of it is unknown."""
        return None if None in self.parts else "".join(part or "" for part in self.parts)

    @cached_property
    def beginning(self) -> str:
        """The known text before the first unknown part."""
        known = []
        for part in self.parts:
            if part is None:
                break
            known.append(part)
        return "".join(known)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A pattern that matches the possible paths."""
        return re.compile(
            "".join(".*" if part is None else re.escape(part) for part in self.parts), re.DOTALL
        )


def is_remote(text: str) -> bool:
    """Whether the text is a URL (``s3://bucket/key``) and not a path in a file system."""
    return _REMOTE.match(text) is not None


def path_text(value: Value | None) -> PathText | None:
    """The path of a value; None if it is certainly not a path: a number, a list, an open file."""
    match value:
        case Constant(value=str() as text):
            return PathText((text,), value.origin) if text and "\0" not in text else None
        case Constant(value=bytes() as data):
            return PathText((os.fsdecode(data),), value.origin) if data else None
        case Text():
            return _joined([piece for part in value.parts for piece in _pieces(part)], value)
        case Instance(own=False):
            return _of_call(value)
        case Anything():
            return PathText((None,), None, value.reason)
    return None


def _pieces(part: str | Value) -> tuple[str | None, ...]:
    if isinstance(part, str):
        return (part,)
    if isinstance(part, Constant) and part.value is not None:
        return (str(part.value),)
    known = path_text(part)
    return known.parts if known else (None,)


def _joined(parts: list[str | None], value: Text) -> PathText:
    inner = [path_text(part) for part in value.parts if not isinstance(part, str)]
    return PathText(
        tuple(part for part in parts if part != ""),
        next((p.origin for p in inner if p and p.origin), None),
        next((p.reason for p in inner if p and p.reason), ""),
        bool(inner and inner[0] and inner[0].home),
    )


def _of_call(value: Instance) -> PathText | None:
    name, arguments = value.made_by, value.arguments
    if _PATH_CLASSES.match(name) or name in ("os.path.join", "pathlib.Path().joinpath"):
        return _path_of([path_text(argument) for argument in arguments])
    if name in _SAME and arguments:
        return path_text(arguments[0])
    if name in _HOME and arguments:
        inner = path_text(arguments[0])
        return inner and PathText(inner.parts, inner.origin, inner.reason, home=True)
    if name.startswith(("builtins.str().", "os.environ", "os.getenv", "os.path.", "pathlib.")):
        return PathText((None,), None, f"the return value of {name.replace('()', '')} is unknown")
    if name.startswith(("argparse.", "click.", "omegaconf.", "hydra.", "yaml.", "json.")):
        return PathText((None,), None, f"its value comes from {name.partition('.')[0]}")
    return None


def _path_of(given: list[PathText | None]) -> PathText | None:
    """``os.path.join`` of paths: an absolute one discards the preceding parts."""
    if not given:
        return PathText((".",))
    parts: list[str | None] = []
    for path in given:
        if path is None:
            return None
        if path.parts[:1] and (path.parts[0] or "").startswith("/"):
            parts = []
        elif parts and not (parts[-1] or "").endswith("/"):
            parts.append("/")
        parts.extend(path.parts)
    return PathText(
        tuple(parts),
        next((text.origin for text in given if text and text.origin), None),
        next((text.reason for text in given if text and text.reason), ""),
        bool(given[0] and given[0].home),
    )


def texts_in(value: Value, depth: int = 0) -> Iterator[PathText]:
    """The paths that a value may contain, including those in containers and options of a call."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Items):
        for item in (*value.values, *value.keys):
            yield from texts_in(item, depth + 1)
    elif isinstance(value, Constant | Text | Instance):
        text = path_text(value)
        if text is not None and text.beginning:
            yield text
