"""Partly known texts: joined, formatted, and split as paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from epochzero.check.program.heap import Box, LibraryResult, V, published
from epochzero.check.program.values import Anything, Constant, Items, Text, Value

LONGEST_TEXT = 100_000
"""Limit of the length of a constructed text; `"x" * 10**12` stays unknown."""
PATHS = frozenset(
    {"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath"}
)


def as_text(value: V | None) -> Constant | Text | None:
    """The text of a value or path; None if it is not a text or unknown."""
    if isinstance(value, Text) or (isinstance(value, Constant) and isinstance(value.value, str)):
        return value
    if isinstance(value, LibraryResult) and value.name in PATHS and value.arguments:
        return as_text(value.arguments[0])
    return None


def concat(parts: Iterable[str | V]) -> Value:
    """Concatenate texts; a part that is not a text becomes an unknown part."""
    flat: list[str | Value] = []
    origin = None
    for part in parts:
        text = None if isinstance(part, str) else as_text(part)
        if isinstance(part, str):
            flat.append(part)
        elif isinstance(text, Constant):
            origin = origin or text.origin
            flat.append(str(text.value))
        elif isinstance(text, Text):
            flat += text.parts
        else:
            flat.append(published(part))
    merged = _merged(flat)
    if sum(len(part) for part in merged if isinstance(part, str)) > LONGEST_TEXT:
        return Anything("a text that is too long")
    if all(isinstance(part, str) for part in merged):
        return Constant("".join(str(part) for part in merged), origin)
    return Text(tuple(merged))


def _merged(parts: list[str | Value]) -> list[str | Value]:
    merged: list[str | Value] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    return merged


def shown(value: V, conversion: int = -1, spec: str = "") -> str | V:
    """The text of a value by `str`, `repr` or `format`; the value itself if unknown."""
    if not isinstance(value, Constant):
        return value if conversion == -1 and not spec else published_part(value)
    plain: object = value.value
    if conversion == ord("r"):
        plain = repr(plain)
    elif conversion == ord("a"):
        plain = ascii(plain)
    elif conversion == ord("s"):
        plain = str(plain)
    if any(int(number) > LONGEST_TEXT for number in re.findall(r"\d{1,30}", spec)):
        return Anything("a text that is too long")
    try:
        return format(plain, spec)
    except (ValueError, TypeError, OverflowError):
        return Anything("a format that does not fit its value")


def published_part(value: V) -> V:
    """A part of a text that its format changes."""
    return Anything("formatted") if as_text(value) is not None else published(value)


_FIELD = re.compile(r"\{\{|\}\}|\{([^{}!:]*)(?:!([rsa]))?(?::([^{}]*))?\}")
_PERCENT = re.compile(r"%(?:\((\w+)\))?([#0\- +]*(?:\d+)?(?:\.\d+)?)([a-zA-Z%])")


def formatted(template: V, positional: Sequence[V], keywords: Mapping[str, V]) -> Value:
    """The result of ``template.format(...)``."""
    if not isinstance(template, Constant) or not isinstance(template.value, str):
        return Anything("a format that is not known")
    count = 0

    def one(field: re.Match[str]) -> str | V:
        nonlocal count
        if field.group() in ("{{", "}}"):
            return field.group()[0]
        name = field[1]
        if not name:
            name, count = str(count), count + 1
        value: V = keywords.get(name, Anything("formatted"))
        if name.isdecimal() and len(name) < 6:
            at = int(name)
            value = positional[at] if at < len(positional) else Anything("formatted")
        return shown(value, ord(field[2]) if field[2] else -1, field[3] or "")

    return concat(_replaced(_FIELD, template.value, one))


def percent(template: V, arguments: V) -> Value:
    """The result of ``template % arguments``; ``arguments`` is a single value or a container."""
    if not isinstance(template, Constant) or not isinstance(template.value, str):
        return Anything("a format that is not known")
    given: list[V] = [arguments]
    named: dict[str, V] = {}
    content = arguments.content if isinstance(arguments, Box) else arguments
    if isinstance(arguments, (Box, Items)) and arguments.kind == "tuple":
        given = list(content.values)  # type: ignore[union-attr]
    elif isinstance(arguments, Box) and arguments.kind == "dict":
        pairs = zip(arguments.content.keys, arguments.content.values, strict=True)
        named = {str(key.value): value for key, value in pairs if isinstance(key, Constant)}
    todo = iter(given)

    def one(field: re.Match[str]) -> str | V:
        if field[3] == "%":
            return "%"
        value = named.get(field[1], Anything()) if field[1] else next(todo, Anything())
        if field[3] == "s" and not field[2]:
            return shown(value)
        if isinstance(value, Constant):
            try:
                return str(f"%{field[2]}{field[3]}" % (value.value,))
            except (ValueError, TypeError, OverflowError):
                return Anything("a format that does not fit its value")
        return published_part(value)

    if any(len(number) > 5 for number in re.findall(r"\d+", template.value)):
        return Anything("a format that is not known")
    return concat(_replaced(_PERCENT, template.value, one))


def _replaced(
    pattern: re.Pattern[str], text: str, value: Callable[[re.Match[str]], str | V]
) -> list[str | V]:
    parts: list[str | V] = []
    end = 0
    for match in pattern.finditer(text):
        parts += [text[end : match.start()], value(match)]
        end = match.end()
    return [*parts, text[end:]]


def join_paths(parts: Sequence[V]) -> Value:
    """The result of `os.path.join`: an absolute part discards the preceding ones."""
    joined: list[str | V] = []
    for part in parts:
        text = as_text(part)
        if text is not None and _starts(text).startswith("/"):
            joined = [text]
            continue
        if joined and not _ends(concat(joined)).endswith("/"):
            joined.append("/")
        joined.append(part if text is None else text)
    return concat(joined)


def absolute_path(text: Constant | Text, folder: str) -> Value:
    """The result of `os.path.abspath` in a directory."""
    whole = join_paths([Constant(folder), text])
    if isinstance(whole, Constant):
        return Constant(posixpath.normpath(str(whole.value)), whole.origin)
    return whole


def _starts(text: Constant | Text) -> str:
    first = text.value if isinstance(text, Constant) else text.parts[0]
    return first if isinstance(first, str) else ""


def _ends(text: Value) -> str:
    if isinstance(text, Constant):
        # A join that begins with an empty text adds no slash.
        return str(text.value) or "/"
    last = text.parts[-1] if isinstance(text, Text) else ""
    return last if isinstance(last, str) else ""


def path_part(text: Constant | Text, what: str) -> Value:
    """The directory, name, stem or suffix of a path, which may be partly unknown."""
    if isinstance(text, Constant):
        return Constant(_part(str(text.value), what), text.origin)
    cut = [at for at, part in enumerate(text.parts) if isinstance(part, str) and "/" in part]
    if not cut:
        return Anything(f"the {what} of a path that is not known")
    at = cut[-1]
    before, _, after = str(text.parts[at]).rpartition("/")
    if what == "folder":
        return concat([*text.parts[:at], before])
    if all(isinstance(part, str) for part in text.parts[at + 1 :]):
        # The unknown part precedes the last slash.
        return Constant(_part(after + "".join(map(str, text.parts[at + 1 :])), what))
    if what == "name" and at == len(text.parts) - 2:
        return concat([after, text.parts[-1]])
    return Anything(f"the {what} of a path that is not known")


def _part(path: str, what: str) -> str:
    name = posixpath.basename(path)
    if what == "folder":
        return posixpath.dirname(path)
    if what == "stem":
        return posixpath.splitext(name)[0]
    return posixpath.splitext(name)[1] if what == "suffix" else name
