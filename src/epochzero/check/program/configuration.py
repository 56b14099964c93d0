"""Configuration files as values; each item has the line that defines it.

No content is executed: YAML is composed, not constructed, so that tags create no objects. The expansion of
anchors and aliases is limited (the "billion laughs" attack).
"""

from __future__ import annotations

import bisect
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from epochzero.check.findings import SourceLocation
from epochzero.check.program.values import ANYTHING, Anything, Constant, Items, Value, entries_of
from epochzero.file_access import open_file

# A larger file is data, not a configuration.
LARGEST_BYTES = 1 << 20
MOST_VALUES = 50_000
DEEPEST = 200

_KINDS = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".jsonl": "jsonl",
    ".toml": "toml",
    ".ini": "ini",
    ".cfg": "ini",
}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A configuration that cannot be read.

    Attributes:
        reason: why.
        place: location of the fault.
        missing: whether the file does not exist.
        wrong: whether the file exists and is malformed.
    """

    reason: str
    place: SourceLocation
    missing: bool = False
    wrong: bool = False


class _WrongError(Exception):
    """The text is malformed."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def kind_of(path: Path | str) -> str:
    """The format by the file name: ``yaml``, ``json``, ``toml``, ``ini``; empty if unknown."""
    return _KINDS.get(Path(path).suffix.lower(), "")


def load(path: Path, kind: str = "", name: str = "") -> Value | Unreadable:
    """Read a configuration file.

    Args:
        path: of the file.
        kind: ``yaml``, ``yaml-all`` (a list of all documents), ``json``, ``jsonl`` (a list with one value per
            line), ``toml`` or ``ini``; by default the format that the file name implies.
        name: name of the file in the places of values; by default its path.
    """
    name = name or str(path)
    reader = _READERS.get(kind or kind_of(path))
    if reader is None:
        return Unreadable(
            f"no known kind of configuration: {kind or path.suffix}", SourceLocation(name)
        )
    try:
        with open_file(path) as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Unreadable("no such file", SourceLocation(name), missing=True)
    except IsADirectoryError:
        return Unreadable("not a file", SourceLocation(name))
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror or error}", SourceLocation(name))
    except ValueError as error:
        return Unreadable(f"cannot be read: {error}", SourceLocation(name))
    if len(data) > LARGEST_BYTES:
        return Unreadable(f"larger than {LARGEST_BYTES >> 20} MB", SourceLocation(name))
    try:
        return reader(_Source(name, data.decode("utf-8-sig")))
    except UnicodeDecodeError:
        return Unreadable("not UTF-8", SourceLocation(name))
    except _WrongError as error:
        return Unreadable(str(error), SourceLocation(name, error.line), wrong=True)
    except RecursionError:
        return Unreadable("nested too deeply", SourceLocation(name))


def get(value: Value, key: str) -> Value | None:
    """The item of a dictionary; None if it certainly has none."""
    if not isinstance(value, Items) or value.kind != "dict":
        return ANYTHING
    for at in range(len(value.keys) - 1, -1, -1):
        known = value.keys[at]
        if isinstance(known, Constant) and known.value == key:
            return value.values[at]
    return None if value.complete else ANYTHING


def merged(below: Value, above: Value) -> Value:
    """Merge two configurations: dictionaries by key, all other values from ``above``."""
    if not (
        isinstance(below, Items)
        and isinstance(above, Items)
        and below.kind == above.kind == "dict"
        and all(isinstance(key, Constant) for key in (*below.keys, *above.keys))
    ):
        return above
    items = _by_key(below)
    for key, (name, value) in _by_key(above).items():
        items[key] = (name, merged(items[key][1], value) if key in items else value)
    return Items(
        "dict",
        tuple(value for _, value in items.values()),
        tuple(key for key, _ in items.values()),
        below.complete and above.complete,
    )


def _by_key(items: Items) -> dict[object, tuple[Value, Value]]:
    return {key.value: (key, value) for key, value in entries_of(items)}


# -- Text --------------------------------------------------------------------------------------


class _Source:
    """The text of a file, and the locations of its lines."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.lines = text.split("\n")
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def place(self, line: int, column: int = 0) -> SourceLocation:
        """The location of a line, counted from 1."""
        code = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return SourceLocation(self.name, line, column, code[:400])

    def at(self, offset: int) -> SourceLocation:
        """The location of a character."""
        line = bisect.bisect_right(self._starts, offset)
        return self.place(line, offset - self._starts[line - 1] + 1)


# -- YAML --------------------------------------------------------------------------------------

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"


def _yaml(source: _Source) -> Value:
    """The first document; None for an empty file, like ``yaml.safe_load``."""
    documents = _documents(source)
    if len(documents) > 1:
        raise _WrongError("expected a single document in the stream", 1)
    return documents[0] if documents else Constant(None, source.place(1))


def _yaml_all(source: _Source) -> Value:
    return Items("list", tuple(_documents(source)))


def _documents(source: _Source) -> list[Value]:
    loader = _Loader(source.text)
    try:
        _check_depth(source.text)
        documents = []
        reading = _YAML(source, loader)
        while loader.check_node():
            node = loader.get_node()
            documents.append(ANYTHING if node is None else reading.value(node))
        return documents
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _WrongError(str(error.problem or error), mark.line + 1 if mark else 0) from error
    except yaml.YAMLError as error:
        raise _WrongError(str(error).partition("\n")[0]) from error
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Limit the depth by events: composing recurses, also in C, and reading events does not."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise RecursionError


class _YAML:
    """Convert composed nodes to values."""

    def __init__(self, source: _Source, loader: yaml.SafeLoader) -> None:
        self._source = source
        self._loader = loader
        self._left = MOST_VALUES

    def value(self, node: yaml.Node, depth: int = 0) -> Value:
        """The value of a node."""
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return Anything("too much of a configuration")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag.removeprefix("tag:yaml.org,2002:") not in ("map", "seq"):
            return Anything(f"a YAML tag makes it: {node.tag}")
        if isinstance(node, yaml.SequenceNode):
            return Items("list", tuple(self.value(item, depth + 1) for item in node.value))
        return self._mapping(node, depth) if isinstance(node, yaml.MappingNode) else ANYTHING

    def _mapping(self, node: yaml.MappingNode, depth: int) -> Value:
        below: Value = Items("dict", ())
        pairs = []
        for key, value in node.value:
            if key.tag == _MERGE:
                for other in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    # The first merged mapping wins.
                    below = _merged_shallow(self.value(other, depth + 1), below)
            else:
                pairs.append((self.value(key, depth + 1), self.value(value, depth + 1)))
        own = Items("dict", tuple(v for _, v in pairs), tuple(k for k, _ in pairs))
        return _merged_shallow(below, own) if isinstance(below, Items) and below.keys else own

    def _scalar(self, node: yaml.ScalarNode) -> Value:
        place = self._source.place(node.start_mark.line + 1, node.start_mark.column + 1)
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("null", "bool", "int", "float", "str"):
            construct = getattr(self._loader, f"construct_yaml_{kind}")
            try:
                return Constant(construct(node), place)
            except (ValueError, IndexError, KeyError, OverflowError):
                return Anything(f"not a YAML {kind}: {node.value[:40]}")
        return Anything(f"a YAML {kind} is not constructed")


def _merged_shallow(below: Value, above: Value) -> Value:
    """Return ``above`` with the items of ``below`` whose keys it lacks, like YAML's ``<<``."""
    if not (isinstance(below, Items) and isinstance(above, Items) and below.kind == "dict"):
        return above
    taken = set(_by_key(above))
    extra = [item for key, item in _by_key(below).items() if key not in taken]
    return Items(
        "dict",
        (*(value for _, value in extra), *above.values),
        (*(key for key, _ in extra), *above.keys),
        below.complete and above.complete,
    )


# -- JSON --------------------------------------------------------------------------------------

_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_JSON_ATOM = re.compile(
    r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity"
)


def _json(source: _Source) -> Value:
    """Parse JSON like ``json.load``, which also accepts NaN and Infinity."""
    try:
        json.loads(source.text)
    except json.JSONDecodeError as error:
        raise _WrongError(error.msg, error.lineno) from error
    except ValueError as error:
        raise _WrongError(str(error)) from error
    return _JSON(source).value(0)[0]


def _jsonl(source: _Source) -> Value:
    values = []
    for number, line in enumerate(source.lines, 1):
        if not line.strip():
            continue
        try:
            json.loads(line)
        except ValueError as error:
            raise _WrongError(str(error), number) from error
        values.append(_JSON(source).value(source._starts[number - 1])[0])
    return Items("list", tuple(values))


class _JSON:
    """Convert a text that is valid JSON to values with their lines."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._text = source.text
        self._string = json.JSONDecoder().raw_decode

    def value(self, at: int, depth: int = 0) -> tuple[Value, int]:
        """The value at a position, and where it ends."""
        at = self._skip(at)
        if depth > DEEPEST:
            raise RecursionError
        start = self._text[at]
        if start == "{":
            return self._object(at + 1, depth)
        if start == "[":
            return self._array(at + 1, depth)
        if start == '"':
            text, end = self._string(self._text, at)
            return Constant(text, self._source.at(at)), end
        found = _JSON_ATOM.match(self._text, at)
        assert found is not None, "the text was read before"
        return Constant(json.loads(found[0]), self._source.at(at)), found.end()

    def _skip(self, at: int) -> int:
        space = _JSON_SPACE.match(self._text, at)
        return at if space is None else space.end()

    def _object(self, at: int, depth: int) -> tuple[Value, int]:
        items: dict[str, tuple[Value, Value]] = {}
        at = self._skip(at)
        while self._text[at] != "}":
            at = self._skip(at + 1 if self._text[at] == "," else at)
            name, end = self._string(self._text, at)
            key = Constant(name, self._source.at(at))
            value, at = self.value(self._skip(end) + 1, depth + 1)
            items[name] = (key, value)
            at = self._skip(at)
        keys = tuple(key for key, _ in items.values())
        return Items("dict", tuple(value for _, value in items.values()), keys), at + 1

    def _array(self, at: int, depth: int) -> tuple[Value, int]:
        values = []
        at = self._skip(at)
        while self._text[at] != "]":
            value, at = self.value(at + 1 if self._text[at] == "," else at, depth + 1)
            values.append(value)
            at = self._skip(at)
        return Items("list", tuple(values)), at + 1


# -- TOML and INI ------------------------------------------------------------------------------

_TOML_LINE = re.compile(r"\(at line (\d+)")
_TOML_TABLE = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?")
_TOML_KEY = re.compile(
    r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)


def _toml(source: _Source) -> Value:
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        line = _TOML_LINE.search(str(error))
        raise _WrongError(str(error), int(line[1]) if line else 0) from error
    places = {key: source.place(line) for key, line in _toml_lines(source.lines)}
    return _of_plain(data, (), places.get)


def _toml_lines(lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """The dotted name and line of each key that is written on one line; a later line wins."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(lines, 1):
        if key := _TOML_KEY.match(line):
            yield (*table, *_dotted(key[1])), number
        elif header := _TOML_TABLE.match(line):
            table = _dotted(header[1])
            yield table, number


def _dotted(name: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in name.split("."))


def _ini(source: _Source) -> Value:
    """Sections as dictionaries of texts, like `configparser`; names in lower case."""
    reader = configparser.ConfigParser(interpolation=None, allow_no_value=True)
    try:
        reader.read_string(source.text)
    except configparser.Error as error:
        raise _WrongError(
            str(error).partition("\n")[0], getattr(error, "lineno", None) or 0
        ) from error
    places = {key: source.place(line) for key, line in _ini_lines(source.lines)}
    data = {name: dict(reader.items(name)) for name in reader.sections()}
    return _of_plain(data, (), places.get)


def _ini_lines(lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    section = ""
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            section = line[1:].partition("]")[0]
            yield (section,), number
        elif line[:1].strip() and line[0] not in "#;":
            yield (section, re.split("[=:]", line)[0].strip().lower()), number


def _of_plain(
    data: object, path: tuple[str, ...], place: Callable[[tuple[str, ...]], SourceLocation | None]
) -> Value:
    """Convert a Python value, with the locations of its keys."""
    if isinstance(data, Mapping):
        values = tuple(_of_plain(value, (*path, key), place) for key, value in data.items())
        keys = tuple(Constant(key, place((*path, key))) for key in data)
        return Items("dict", values, keys)
    if isinstance(data, list):
        return Items("list", tuple(_of_plain(item, path, place) for item in data))
    if data is None or isinstance(data, str | int | float | bool):
        return Constant(data, place(path))
    return Anything(f"a {type(data).__name__}")


_READERS: Mapping[str, Callable[[_Source], Value]] = {
    "yaml": _yaml,
    "yaml-all": _yaml_all,
    "json": _json,
    "jsonl": _jsonl,
    "toml": _toml,
    "ini": _ini,
}
