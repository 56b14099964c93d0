"""Import statements of each language, read from their text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epochzero.code.parsed import Import

if TYPE_CHECKING:
    from collections.abc import Callable


_COMMENT = re.compile(r"#[^\n]*")
_FROM = re.compile(r"from\s*(\.*)\s*([\w.]*)\s+import\s+(.*)", re.DOTALL)
_NAME = re.compile(r"([\w.]+|\*)(?:\s+as\s+\w+)?\s*(?:,|$)")
_QUOTED = re.compile(r"""["'<`]([^"'>`\n]+)["'>`]""")
_JAVA = re.compile(r"import\s+(static\s+)?([\w.]+?)(?:\.(\*|\w+))?\s*;")
_BRACES = re.compile(r"\{([^}]*)\}")
_SCRIPT_DEFAULT = re.compile(r"import\s+(?:type\s+)?([\w$]+)\s*(?:,|from)")


def _python(statement: str) -> list[Import]:
    text = _COMMENT.sub("", statement).replace("\\", " ").replace("(", " ").replace(")", " ")
    text = text.strip()
    if found := _FROM.match(text):
        dots, module, names = found.groups()
        return [Import(module, tuple(_NAME.findall(names)), len(dots))]
    return [Import(module, (), 0) for module in _NAME.findall(text.removeprefix("import"))]


def _quoted(statement: str) -> list[Import]:
    """C's includes and Go's imports: the path is all there is."""
    return [Import(path, (), 0) for path in _QUOTED.findall(statement)[:1]]


def _java(statement: str) -> list[Import]:
    found = _JAVA.search(statement)
    if not found:
        return []
    _, package, last = found.groups()
    return [Import(package, (last,) if last else (), 0)]


def _script(statement: str) -> list[Import]:
    paths = _QUOTED.findall(statement)
    names = [found[1] for found in [_SCRIPT_DEFAULT.match(statement)] if found]
    if braces := _BRACES.search(statement):
        listed = (item.split() for item in braces[1].split(","))
        names += [words[1] if words[0] == "type" and len(words) > 1 else words[0]
                  for words in listed if words]  # fmt: skip
    return [Import(path, tuple(names), 0) for path in paths[-1:]]


_READERS: dict[str, Callable[[str], list[Import]]] = {
    "python": _python,
    "c": _quoted,
    "cpp": _quoted,
    "cuda": _quoted,
    "go": _quoted,
    "java": _java,
    "javascript": _script,
    "typescript": _script,
    "tsx": _script,
}


def imports_of(language: str, statement: str) -> list[Import]:
    """What one statement imports; nothing when it is too broken to tell.

    >>> imports_of("python", "from ..nn import (Linear as L, relu)")
    [Import(module='nn', names=('Linear', 'relu'), level=2)]
    """
    return _READERS[language](statement)
