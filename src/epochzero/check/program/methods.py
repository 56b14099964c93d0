"""Methods of texts, containers and paths whose results are known."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence

from epochzero.check.program.heap import Box, Content, HeapJournal, LibraryResult, V
from epochzero.check.program.namespaces import namespace, set_any_name, set_name
from epochzero.check.program.texts import (
    absolute_path,
    as_text,
    concat,
    formatted,
    join_paths,
    path_part,
)
from epochzero.check.program.values import Anything, Constant, Items, Text, Value

_PURE = frozenset(
    """
    lower upper strip lstrip rstrip replace split rsplit startswith endswith removeprefix
    removesuffix title capitalize casefold swapcase zfill isdigit isdecimal isnumeric isalpha
    isalnum isidentifier islower isupper isspace count find rfind index rindex partition
    rpartition splitlines encode decode
    """.split()
)
_LONGEST = 100_000


def of_text(text: Constant | Text, name: str, given: Sequence[V], named: Mapping[str, V]) -> V:
    """Return the result of a method of a text."""
    if name == "join" and given:
        return _joined(text, given[0])
    if name == "format":
        return formatted(text, given, named)
    if not isinstance(text, Constant):
        known = text.parts[0] if name == "startswith" else text.parts[-1]
        if name in ("startswith", "endswith") and isinstance(known, str) and given:
            return _starts_or_ends(known, name, given[0])
        return Anything("made from a text that is not known")
    arguments = [value.value for value in given if isinstance(value, Constant)]
    if name not in _PURE or named or len(arguments) != len(given):
        return Anything("made from what is not known")
    try:
        result = getattr(text.value, name)(*arguments)
    except (AttributeError, TypeError, ValueError, LookupError):
        return Anything("a call that does not fit")
    if isinstance(result, (list, tuple)):
        kind = "list" if isinstance(result, list) else "tuple"
        return Box.of(kind, (Constant(value) for value in result))
    if isinstance(result, str) and len(result) > _LONGEST:
        return Anything("a text that is too long")
    return Constant(result, text.origin)


def _starts_or_ends(known: str, name: str, wanted: V) -> V:
    text = wanted.value if isinstance(wanted, Constant) else None
    if isinstance(text, str) and len(text) <= len(known):
        return Constant(bool(getattr(known, name)(text)))
    return Anything("a text that is not known")


def _joined(text: Constant | Text, items: V) -> V:
    content = items.content if isinstance(items, Box) else items
    if not isinstance(content, (Content, Items)) or not content.complete:
        return Anything("joined from what is not known")
    parts: list[V] = []
    for value in content.values:
        parts += [text, value] if parts else [value]
    return concat(parts)


def of_container(journal: HeapJournal, box: Box, name: str, given: Sequence[V]) -> V:
    """Apply a method of a list, set or dictionary and return its result."""
    content = box.content
    if box.kind == "dict":
        return _of_dictionary(journal, box, name, given)
    if name in ("append", "add") and given:
        return _put(journal, box, Content((*content.values, given[0]), (), content.complete))
    if name in ("extend", "update") and given:
        other = given[0].content if isinstance(given[0], Box) else given[0]
        if isinstance(other, (Content, Items)):
            complete = content.complete and other.complete
            return _put(journal, box, Content((*content.values, *other.values), (), complete))
        return _put(journal, box, Content(content.values, (), False))
    if name == "copy":
        return Box.of(box.kind, content.values, (), content.complete)
    if name in ("index", "count"):
        return Anything("a number of items")
    # After any other method (insert, pop, sort, ...) the content is unknown.
    nothing = _put(journal, box, Content((), (), False))
    if name in ("clear", "discard", "insert", "remove", "reverse", "sort"):
        return nothing
    return Anything(f"what {name} gives")


def _put(journal: HeapJournal, box: Box, content: Content) -> V:
    journal.set(box.state, "content", content)
    if box.mirrors is not None:
        set_any_name(journal, box.mirrors)
    return Constant(None)


def _of_dictionary(journal: HeapJournal, box: Box, name: str, given: Sequence[V]) -> V:
    content = box.content
    if name == "keys":
        return Box.of("list", content.keys, (), content.complete)
    if name == "values":
        return Box.of("list", content.values, (), content.complete)
    if name == "items":
        pairs = zip(content.keys, content.values, strict=True)
        return Box.of("list", (Box.of("tuple", pair) for pair in pairs), (), content.complete)
    if name == "copy":
        return Box.of("dict", content.values, content.keys, content.complete)
    if name in ("get", "setdefault", "pop") and given:
        return _got(journal, box, name, given)
    if name == "update" and given and isinstance(given[0], Box) and given[0].kind == "dict":
        for key, value in zip(given[0].content.keys, given[0].content.values, strict=True):
            store_item(journal, box, key, value)
        if not given[0].content.complete:
            now = box.content
            _put(journal, box, Content(now.values, now.keys, False))
        return Constant(None)
    _put(journal, box, Content((), (), False))
    return Anything(f"what {name} gives")


def _got(journal: HeapJournal, box: Box, name: str, given: Sequence[V]) -> V:
    content = box.content
    key = given[0]
    default: V = given[1] if len(given) > 1 else Constant(None)
    for at, own in enumerate(content.keys):
        if isinstance(key, Constant) and isinstance(own, Constant) and own.value == key.value:
            found = content.values[at]
            if name == "pop":
                values = content.values[:at] + content.values[at + 1 :]
                keys = content.keys[:at] + content.keys[at + 1 :]
                _put(journal, box, Content(values, keys, content.complete))
            return found
    known = content.complete and all(isinstance(key, Constant) for key in content.keys)
    if not isinstance(key, Constant) or not known:
        item = Anything("an item that may be there")
        if name == "setdefault":
            store_item(journal, box, key, item)
        elif name == "pop":
            _put(journal, box, Content((), (), False))
        return item
    if name == "setdefault":
        store_item(journal, box, key, default)
    return default


def store_item(journal: HeapJournal, box: Box, key: V, value: V) -> None:
    """Apply ``box[key] = value``."""
    content = box.content
    if box.mirrors is not None:
        set_name(journal, box.mirrors, key, value)
        box.state = namespace(box.mirrors, content.complete).state
        return
    if box.kind != "dict":
        values = content.values
        if (
            isinstance(key, Constant)
            and isinstance(key.value, int)
            and 0 <= key.value < len(values)
        ):
            changed = (*values[: key.value], value, *values[key.value + 1 :])
            _put(journal, box, Content(changed, (), content.complete))
        else:
            _put(journal, box, Content((), (), False))
        return
    if not isinstance(key, Constant):
        _put(journal, box, Content((), (), False))
        return
    known, held = list(content.keys), list(content.values)
    for at, old in enumerate(known):
        if isinstance(old, Constant) and old.value == key.value:
            held[at] = value
            break
    else:
        known.append(Constant(key.value))
        held.append(value)
    _put(journal, box, Content(tuple(held), tuple(known), content.complete))


def path_attribute(text: Constant | Text, name: str) -> V:
    """Return an attribute of a path: its parent, name, stem, suffix or parents."""
    if name != "parents":
        parts = {"parent": "folder"}
        found = path_part(text, parts.get(name, name))
        return _folder(found) if name == "parent" else found
    parents: list[V] = []
    while (
        isinstance(text, Constant) and text.value not in ("", "/", ".") and len(parts_of(text)) > 1
    ):
        above = _folder(path_part(text, "folder"))
        parents.append(above)
        inner = as_text(above)
        if not isinstance(inner, Constant) or inner.value == text.value:
            break
        text = inner
    return Box.of("tuple", parents, complete=isinstance(text, Constant))


def parts_of(text: Constant) -> list[str]:
    """The parts of a path."""
    return [part for part in str(text.value).split("/") if part] + ["."]


def _folder(text: Value) -> V:
    if isinstance(text, Constant) and text.value == "":
        text = Constant(".")
    return LibraryResult("pathlib.Path", (text,))


_Path = Callable[[Constant | Text, Sequence[V], str], V | None]


def of_path(path: LibraryResult, name: str, given: Sequence[V], cwd: str) -> V | None:
    """Return the result of a method of a path; None if unknown."""
    text = as_text(path)
    found = _METHODS_OF_PATHS.get(name)
    if text is None or found is None:
        return None
    return found(text, given, cwd)


def _resolved(text: Constant | Text, given: Sequence[V], cwd: str) -> V | None:
    return LibraryResult("pathlib.Path", (absolute_path(text, cwd),))


def _renamed(text: Constant | Text, folder: Value, name: V) -> V:
    if isinstance(folder, Constant) and not folder.value:
        return LibraryResult("pathlib.Path", (name,))
    return LibraryResult("pathlib.Path", (join_paths([folder, name]),))


def _with_name(text: Constant | Text, given: Sequence[V], cwd: str) -> V | None:
    return _renamed(text, path_part(text, "folder"), given[0]) if given else None


def _with_suffix(text: Constant | Text, given: Sequence[V], cwd: str) -> V | None:
    if isinstance(text, Constant) and given:
        return LibraryResult(
            "pathlib.Path", (concat([posixpath.splitext(str(text.value))[0], given[0]]),)
        )
    return None


def _with_stem(text: Constant | Text, given: Sequence[V], cwd: str) -> V | None:
    suffix = path_part(text, "suffix")
    if not given or not isinstance(suffix, Constant):
        return None
    return _renamed(text, path_part(text, "folder"), concat([given[0], suffix]))


def _joined_path(text: Constant | Text, given: Sequence[V], cwd: str) -> V | None:
    return LibraryResult("pathlib.Path", (join_paths([text, *given]),))


def _as_posix(text: Constant | Text, given: Sequence[V], cwd: str) -> V | None:
    return text


_METHODS_OF_PATHS: dict[str, _Path] = {
    "resolve": _resolved,
    "absolute": _resolved,
    "with_name": _with_name,
    "with_suffix": _with_suffix,
    "with_stem": _with_stem,
    "joinpath": _joined_path,
    "as_posix": _as_posix,
    "__str__": _as_posix,
    "__fspath__": _as_posix,
}
