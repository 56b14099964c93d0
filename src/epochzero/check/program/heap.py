"""Values with identity, and a journal of their changes.

All mutable state is in dictionaries: the names of a scope, the attributes of an object, the content of a list.
The journal stores previous entries, so that both branches of a condition can be walked from the same state and
their results joined.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from epochzero.check.findings import SourceLocation
from epochzero.check.program.model import Module
from epochzero.check.program.tensors.values import Tensor
from epochzero.check.program.values import (
    Anything,
    Constant,
    External,
    Instance,
    Items,
    Own,
    Text,
    Value,
)

_DEEPEST = 6
"""Depth of nested containers that rules see."""
_MOST_SHOWN = 400
"""Number of nested values that rules see."""
_LONGEST_NAME = 160


class Ref:
    """A value with identity."""

    __slots__ = ()


V: TypeAlias = Value | Ref
Names: TypeAlias = dict[str, V]


@dataclass(eq=False, slots=True)
class Scope:
    """Names, and the scopes in which other names are looked up."""

    names: Names
    module: Module
    parent: Scope | None = None
    is_class: bool = False
    elsewhere: Mapping[str, Scope] = field(default_factory=dict)
    """The scopes of names that are declared ``global`` or ``nonlocal``."""
    own: frozenset[str] = frozenset()
    """Names that only this scope binds: if they are missing from ``names``, they are unbound."""


@dataclass(eq=False, slots=True)
class JobModule(Ref):
    """A module of the job that is being or was executed; ``module`` is None for a directory."""

    name: str
    names: Names
    module: Module | None
    is_closed: bool = False
    """Whether all its names are known."""


@dataclass(eq=False, slots=True)
class Function(Ref):
    """A function or lambda of the job."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    name: str
    scope: Scope
    defaults: tuple[V, ...]
    keyword_defaults: tuple[V | None, ...]
    kind: str = "function"
    """``function``, ``staticmethod``, ``classmethod`` or ``property``."""
    owner: Class | None = None
    decorators: list[V] = field(default_factory=list)
    """In the order of the source."""
    is_changed: bool = False
    """Whether a decorator may have changed its parameters and result."""
    commands: dict[str, Function] = field(default_factory=dict)
    """The commands of a click group, by name."""


@dataclass(eq=False, slots=True)
class Class(Ref):
    """A class of the job."""

    name: str
    node: ast.ClassDef
    module: Module
    bases: tuple[V, ...]
    names: Names
    is_data: bool = False
    opaque: bool = False
    """Whether a decorator or metaclass may have added unknown names."""
    members: dict[str, Object] = field(default_factory=dict)
    """The members of an enumeration that were looked up."""

    def line(self) -> list[Class]:
        """The class and its own bases, in the order of the lookup (approximately C3)."""
        order: list[Class] = []
        todo: list[V] = [self]
        while todo and len(order) < 64:
            value = todo.pop(0)
            if isinstance(value, Class) and value not in order:
                order.append(value)
                todo = [*value.bases, *todo]
        return order

    def externals(self) -> tuple[str, ...]:
        """Names of the library classes that it inherits from; ``?`` for an unknown base."""
        found: list[str] = []
        for cls in self.line():
            for base in cls.bases:
                if isinstance(base, External):
                    found.append(base.name)
                elif not isinstance(base, Class):
                    found.append("?")
        return tuple(name for name in found if name not in ("builtins.object", "abc.ABC"))


def in_classes(line: Iterable[Class], name: str) -> V | None:
    """Look up a name in the first of several classes that has it."""
    return next((cls.names[name] for cls in line if name in cls.names), None)


def is_torch_module(cls: Class) -> bool:
    """Whether `torch.nn.Module` is the only class of a library from which a class derives."""
    return set(cls.externals()) in ({"torch.nn.Module"}, {"torch.nn.modules.Module"})


def is_enumeration(cls: Class) -> bool:
    """Whether the members of a class are its instances."""
    bases = cls.externals()
    return any(base.startswith("enum.") for base in bases) and "?" not in bases


@dataclass(eq=False, slots=True)
class Object(Ref):
    """An object of a class of the job."""

    cls: Class
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]
    place: SourceLocation
    attributes: Names = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class LibraryResult(Ref):
    """The result of a call of a library."""

    name: str
    arguments: tuple[V, ...] = ()
    keywords: Mapping[str, V] = field(default_factory=dict)
    place: SourceLocation | None = None
    attributes: Names = field(default_factory=dict)
    receiver: V | None = None
    """For the result of a method, its object."""
    closed: bool = False
    """Whether all its attributes are known."""
    complete: bool = True
    """Whether it received no unknown ``*`` or ``**`` arguments."""
    holds: V | None = None
    """A `Tensor`, or a `Box` of the content of a module container or data set; None if unknown."""


@dataclass(eq=False, slots=True)
class Member(Ref):
    """An attribute or item of a library's object, such as ``model.fc``."""

    owner: V
    name: str


@dataclass(eq=False, slots=True)
class BoundFunction(Ref):
    """A function of the job with its object, or a method of a built-in value."""

    receiver: V
    function: Function | str


@dataclass(eq=False, slots=True)
class Super(Ref):
    """The result of ``super()``."""

    receiver: V
    owner: Class


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a container; ``complete`` if it certainly has no other items."""

    values: tuple[V, ...] = ()
    keys: tuple[V, ...] = ()
    complete: bool = True


@dataclass(eq=False, slots=True)
class Box(Ref):
    """A list, set or dictionary; the journal replaces its content as a whole."""

    kind: str
    state: dict[str, Content]
    mirrors: Object | LibraryResult | Class | JobModule | None = None
    """The owner whose names these are (``vars(args)``, ``globals()``); stores go to the owner."""
    numbers: range | None = None
    """The whole range; ``content`` may have only its first numbers."""

    @classmethod
    def of(
        cls, kind: str, values: Iterable[V], keys: Iterable[V] = (), complete: bool = True
    ) -> Box:
        """Create a container."""
        return cls(kind, {"content": Content(tuple(values), tuple(keys), complete)})

    @property
    def content(self) -> Content:
        """The current content."""
        return self.state["content"]


_Space: TypeAlias = dict[str, Any]
_Changes: TypeAlias = dict[tuple[int, str], tuple[_Space, str, Any]]
_MISSING: Any = object()


class HeapJournal:
    """Changes of dictionaries, with the previous entries."""

    def __init__(self) -> None:
        self._before: list[tuple[_Space, str, Any]] = []

    def set(self, where: _Space, key: str, value: V | Content) -> None:
        """Set an entry; `rewind` undoes it."""
        self._before.append((where, key, where.get(key, _MISSING)))
        where[key] = value

    def remove(self, where: _Space, key: str) -> None:
        """Remove an entry; `rewind` undoes it."""
        self._before.append((where, key, where.get(key, _MISSING)))
        where.pop(key, None)

    def mark(self) -> int:
        """The current position, for `rewind`."""
        return len(self._before)

    def changed(self, since: int) -> list[tuple[_Space, str]]:
        """The entries that were set or removed since a mark."""
        return [(where, key) for where, key, _ in self._before[since:]]

    def rewind(self, mark: int) -> _Changes:
        """Undo all changes since a mark.

        Returns:
            the changed entries as they were until now.
        """
        changes = {
            (id(where), key): (where, key, where.get(key, _MISSING))
            for where, key, _ in self._before[mark:]
        }
        while len(self._before) > mark:
            where, key, before = self._before.pop()
            _put(where, key, before)
        return changes

    def merge(self, ways: Sequence[_Changes]) -> None:
        """Continue from the join of several paths' changes."""
        places = {at: entry[:2] for way in ways for at, entry in way.items()}
        for at, (where, key) in places.items():
            now = where.get(key, _MISSING)
            values = [way[at][2] if at in way else now for way in ways]
            # A name that only one path sets has its value wherever its use does not fail.
            known = [value for value in values if value is not _MISSING]
            self._before.append((where, key, now))
            _put(where, key, _all_joined(known) if known else _MISSING)

    def join_in(self, changes: _Changes) -> None:
        """Join the changes of a path that ended earlier with the current state."""
        self.merge([changes, {}])


def _put(where: _Space, key: str, value: Any) -> None:
    if value is _MISSING:
        where.pop(key, None)
    else:
        where[key] = value


DIFFERS = Anything("depends on a condition that is not known")


def _all_joined(values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        both = isinstance(result, Content) and isinstance(value, Content)
        result = _common(result, value) if both else join(result, value)
    return result


def _common(first: Content, second: Content) -> Content:
    """The common knowledge about a container with either content."""
    if first is second:
        return first
    if first.keys or second.keys:
        mine = dict(zip(first.keys, first.values, strict=True))
        keys = [key for key in second.keys if key in mine]
        given = dict(zip(second.keys, second.values, strict=True))
        same = len(keys) == len(first.keys) == len(second.keys)
        values = tuple(join(mine[key], given[key]) for key in keys)
        return Content(values, tuple(keys), same and first.complete and second.complete)
    values = tuple(join(a, b) for a, b in zip(first.values, second.values, strict=False))
    same = len(first.values) == len(second.values)
    return Content(values, (), same and first.complete and second.complete)


def join(first: V, second: V) -> V:
    """The common knowledge about a value that is either of two."""
    if first is second:
        return first
    if isinstance(first, Ref) or isinstance(second, Ref) or first != second:
        if isinstance(first, Constant) and isinstance(second, Constant) and _same(first, second):
            return first
        mine = held(first)
        return mine if isinstance(mine, Tensor) and mine == held(second) else DIFFERS
    return first


def _same(first: Constant, second: Constant) -> bool:
    return type(first.value) is type(second.value) and first.value == second.value


def held(value: V | None) -> V | None:
    """The known content of a value: a `Tensor`, or a `Box` of tensors or modules."""
    if isinstance(value, (Tensor, Box)):
        return value
    if isinstance(value, LibraryResult):
        return value.holds
    if not isinstance(value, Member) or not value.name.startswith("["):
        return None
    container, key = held(value.owner), value.name[1:-1]
    if not isinstance(container, Box) or container.kind == "dict":
        return None
    items = container.content.values
    at = int(key) if key.isdecimal() else -1 if key else 0
    return held(items[at]) if 0 <= at < len(items) else None


def published(value: V) -> Value:
    """The value as rules see it; large and deep containers are cut off."""
    return value if not isinstance(value, Ref) else _Publishing().one(value, 0)


def _whole(value: V) -> V:
    """The object that contains an attribute or item, however deep."""
    while isinstance(value, Member):
        value = value.owner
    return value


class _Publishing:
    """Convert one value for the rules, within limits of depth and size."""

    def __init__(self) -> None:
        self._left = _MOST_SHOWN

    def one(self, value: V, depth: int) -> Value:
        if not isinstance(value, Ref):
            return value
        if depth > _DEEPEST or self._left <= 0:
            return Anything("nested too deep")
        match value:
            case Box():
                return self._container(value, depth)
            case Object():
                return Instance(value.cls.name, value.arguments, value.keywords, True, value.place)
            case LibraryResult():
                arguments = self._several(value.arguments, depth)
                names = list(value.keywords)
                keywords = self._several([value.keywords[name] for name in names], depth)
                named = dict(zip(names, keywords, strict=False))
                return Instance(value.name, arguments, named, False, value.place)
            case Function():
                return Own(value.name, "function")
            case Class():
                return Own(value.name, "class")
            case JobModule():
                return Own(value.name, "module")
            case BoundFunction(function=Function() as function):
                return Own(function.name, "function")
            case Member():
                whole = self.one(_whole(value), depth + 1)
                return Instance(maker(value), part_of=whole)
        return Anything("an object of the interpreter")

    def _container(self, box: Box, depth: int) -> Items:
        values = self._several(box.content.values, depth)
        keys = self._several(box.content.keys[: len(values)], depth)
        values = values[: len(keys)] if box.kind == "dict" else values
        whole = len(values) == len(box.content.values)
        return Items(box.kind, values, keys, box.content.complete and whole)

    def _several(self, values: Sequence[V], depth: int) -> tuple[Value, ...]:
        shown: list[Value] = []
        for value in values:
            if self._left <= 0:
                break
            self._left -= 1
            shown.append(self.one(value, depth + 1))
        return tuple(shown)


def thawed(value: V) -> V:
    """Convert a value from outside of the program; its containers and objects become mutable."""
    if isinstance(value, Instance) and not value.own:
        return LibraryResult(value.made_by, value.arguments, value.keywords, value.place)
    if not isinstance(value, Items):
        return value
    keys = [Constant(key.value) if isinstance(key, Constant) else key for key in value.keys]
    return Box.of(value.kind, map(thawed, value.values), keys, value.complete)


def maker(value: V) -> str:
    """The name prefix of a value's methods: what created it; empty if unknown."""
    match value:
        case External():
            return value.name
        case LibraryResult():
            return f"{value.name}()"
        case Member():
            owner = maker(value.owner)
            name = f"{owner}{'' if value.name.startswith('[') else '.'}{value.name}"
            return name if owner and len(name) < _LONGEST_NAME else ""
        case Object():
            bases = value.cls.externals()
            return f"{bases[0]}()" if bases and bases[0] != "?" else ""
        case Constant():
            return f"builtins.{type(value.value).__name__}()"
        case Text():
            return "builtins.str()"
        case Box():
            return f"builtins.{value.kind}()"
        case Items():
            return f"builtins.{value.kind}()"
    return ""
