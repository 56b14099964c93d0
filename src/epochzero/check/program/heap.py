"""What the interpreter knows beyond `Value`: objects with identity, and a journal of their changes.

All that can change lies in dictionaries: names of a scope, attributes of an object, the content of
a list. The journal keeps what was there before, so that both ways of a condition can be walked from
the same state and their outcomes joined.
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
"""Containers in containers that are shown to the rules."""
_MOST_SHOWN = 400
"""Values in a value that are shown to the rules."""
_LONGEST_NAME = 160


class Ref:
    """A value with identity."""

    __slots__ = ()


V: TypeAlias = Value | Ref
Names: TypeAlias = dict[str, V]


@dataclass(eq=False, slots=True)
class Scope:
    """Names, and where to look for those that are not among them."""

    names: Names
    module: Module
    parent: Scope | None = None
    is_class: bool = False
    elsewhere: Mapping[str, Scope] = field(default_factory=dict)
    """Of names that ``global`` and ``nonlocal`` declare, the scope that has them."""
    own: frozenset[str] = frozenset()
    """Names that belong to it and nowhere else: not found in ``names``, they are not bound."""


@dataclass(eq=False, slots=True)
class Opened(Ref):
    """A module of the job that is being or has been executed; ``module`` is None for a folder."""

    name: str
    names: Names
    module: Module | None
    is_closed: bool = False
    """Whether it has no names but those that are known."""


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
    """As they are written, from the first."""
    is_changed: bool = False
    """Whether a decorator may have changed what it takes and gives."""
    commands: dict[str, Function] = field(default_factory=dict)
    """Of a group of click, its commands by name."""


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
    """Whether a decorator or metaclass may have added to it what is not known."""
    members: dict[str, Object] = field(default_factory=dict)
    """Of an enumeration, those that were asked for."""

    def line(self) -> list[Class]:
        """The class and its own bases, in the order in which names are looked up (about C3)."""
        order: list[Class] = []
        todo: list[V] = [self]
        while todo and len(order) < 64:
            one = todo.pop(0)
            if isinstance(one, Class) and one not in order:
                order.append(one)
                todo = [*one.bases, *todo]
        return order

    def externals(self) -> tuple[str, ...]:
        """Names of the classes of libraries that it derives from; ``?`` for what is not known."""
        found: list[str] = []
        for one in self.line():
            for base in one.bases:
                if isinstance(base, External):
                    found.append(base.name)
                elif not isinstance(base, Class):
                    found.append("?")
        return tuple(name for name in found if name not in ("builtins.object", "abc.ABC"))


def is_enumeration(cls: Class) -> bool:
    """Whether the members of a class are its objects."""
    bases = cls.externals()
    return any(one.startswith("enum.") for one in bases) and "?" not in bases


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
    """What a call of a library gave."""

    name: str
    arguments: tuple[V, ...] = ()
    keywords: Mapping[str, V] = field(default_factory=dict)
    place: SourceLocation | None = None
    attributes: Names = field(default_factory=dict)
    receiver: V | None = None
    """Of the result of a method, its object."""
    closed: bool = False
    """Whether it has no attributes but those that are known."""
    complete: bool = True
    """Whether it got no ``*`` or ``**`` arguments that are not known."""
    holds: V | None = None
    """A `Tensor`, or a `Box` of what a container of modules or a data set has; None if not known."""


@dataclass(eq=False, slots=True)
class Member(Ref):
    """An attribute or item of a library's object, such as ``model.fc``."""

    owner: V
    name: str


@dataclass(eq=False, slots=True)
class Bound(Ref):
    """A function of the job with its object, or a method of a value that is built in."""

    receiver: V
    function: Function | str


@dataclass(eq=False, slots=True)
class Super(Ref):
    """What ``super()`` gives."""

    receiver: V
    owner: Class


@dataclass(frozen=True, slots=True)
class Content:
    """What is in a container; ``complete`` when surely nothing else is."""

    values: tuple[V, ...] = ()
    keys: tuple[V, ...] = ()
    complete: bool = True


@dataclass(eq=False, slots=True)
class Box(Ref):
    """A list, set or dictionary; its content is replaced as a whole, in the journal."""

    kind: str
    state: dict[str, Content]
    mirrors: Object | LibraryResult | Class | Opened | None = None
    """The owner whose names these are (``vars(args)``, ``globals()``): what is stored here is stored there."""
    numbers: range | None = None
    """The whole range, of which only the first numbers may be written out."""

    @classmethod
    def of(
        cls, kind: str, values: Iterable[V], keys: Iterable[V] = (), complete: bool = True
    ) -> Box:
        """A new one."""
        return cls(kind, {"content": Content(tuple(values), tuple(keys), complete)})

    @property
    def content(self) -> Content:
        """What is in it now."""
        return self.state["content"]


_Space: TypeAlias = dict[str, Any]
_Changes: TypeAlias = dict[tuple[int, str], tuple[_Space, str, Any]]
_MISSING: Any = object()


class HeapJournal:
    """Changes of dictionaries, and what was there before."""

    def __init__(self) -> None:
        self._before: list[tuple[_Space, str, Any]] = []

    def set(self, where: _Space, key: str, value: V | Content) -> None:
        """Sets a value, to be undone by `rewind`."""
        self._before.append((where, key, where.get(key, _MISSING)))
        where[key] = value

    def remove(self, where: _Space, key: str) -> None:
        """Takes a value away, to be undone by `rewind`."""
        self._before.append((where, key, where.get(key, _MISSING)))
        where.pop(key, None)

    def mark(self) -> int:
        """The present, to return to."""
        return len(self._before)

    def changed(self, since: int) -> list[tuple[_Space, str]]:
        """What was set or removed since then."""
        return [(where, key) for where, key, _ in self._before[since:]]

    def rewind(self, mark: int) -> _Changes:
        """Undoes all since then.

        Returns:
            what the changed entries were until now.
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
        """Goes on from the state that any of several ways has left."""
        places = {at: entry[:2] for way in ways for at, entry in way.items()}
        for at, (where, key) in places.items():
            now = where.get(key, _MISSING)
            values = [way[at][2] if at in way else now for way in ways]
            # A name that only one way sets has its value wherever its use does not fail.
            known = [value for value in values if value is not _MISSING]
            self._before.append((where, key, now))
            _put(where, key, _all_joined(known) if known else _MISSING)

    def join_in(self, changes: _Changes) -> None:
        """Joins what a way that ended earlier has left with what is there now."""
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


def _common(one: Content, other: Content) -> Content:
    """What is known of a container that has the one content or the other."""
    if one is other:
        return one
    if one.keys or other.keys:
        mine = dict(zip(one.keys, one.values, strict=True))
        keys = [key for key in other.keys if key in mine]
        given = dict(zip(other.keys, other.values, strict=True))
        same = len(keys) == len(one.keys) == len(other.keys)
        values = tuple(join(mine[key], given[key]) for key in keys)
        return Content(values, tuple(keys), same and one.complete and other.complete)
    values = tuple(join(a, b) for a, b in zip(one.values, other.values, strict=False))
    same = len(one.values) == len(other.values)
    return Content(values, (), same and one.complete and other.complete)


def join(one: V, other: V) -> V:
    """What is known of a value that is the one or the other."""
    if one is other:
        return one
    if isinstance(one, Ref) or isinstance(other, Ref) or one != other:
        if isinstance(one, Constant) and isinstance(other, Constant) and _same(one, other):
            return one
        mine = held(one)
        return mine if isinstance(mine, Tensor) and mine == held(other) else DIFFERS
    return one


def _same(one: Constant, other: Constant) -> bool:
    return type(one.value) is type(other.value) and one.value == other.value


def held(value: V | None) -> V | None:
    """What a value is known to hold: a `Tensor`, or a `Box` of tensors or modules."""
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
    """The value as rules see it; of large containers and deep ones only the beginning."""
    return value if not isinstance(value, Ref) else _Publishing().one(value, 0)


def _whole(value: V) -> V:
    """The object in which an attribute or item is, however deep."""
    while isinstance(value, Member):
        value = value.owner
    return value


def _shape(value: V) -> tuple[int | None, ...] | None:
    """The shape of a tensor as rules see it."""
    known = held(value)
    if not isinstance(known, Tensor) or known.is_last:
        return None
    return tuple(one if isinstance(one, int) else None for one in known.shape)


class _Publishing:
    """Publishes one value with what is in it, up to a bound."""

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
                return Instance(
                    value.name, arguments, named, False, value.place, shape=_shape(value)
                )
            case Function():
                return Own(value.name, "function")
            case Class():
                return Own(value.name, "class")
            case Opened():
                return Own(value.name, "module")
            case Bound(function=Function() as function):
                return Own(function.name, "function")
            case Member():
                whole = self.one(_whole(value), depth + 1)
                return Instance(maker(value), part_of=whole, shape=_shape(value))
        return Anything("an object of the interpreter")

    def _container(self, box: Box, depth: int) -> Items:
        values = self._several(box.content.values, depth)
        keys = self._several(box.content.keys[: len(values)], depth)
        values = values[: len(keys)] if box.kind == "dict" else values
        whole = len(values) == len(box.content.values)
        return Items(box.kind, values, keys, box.content.complete and whole)

    def _several(self, values: Sequence[V], depth: int) -> tuple[Value, ...]:
        shown: list[Value] = []
        for one in values:
            if self._left <= 0:
                break
            self._left -= 1
            shown.append(self.one(one, depth + 1))
        return tuple(shown)


def thawed(value: V) -> V:
    """A value that came from outside of the program, with containers and objects that it may change."""
    if isinstance(value, Instance) and not value.own:
        return LibraryResult(value.made_by, value.arguments, value.keywords, value.place)
    if not isinstance(value, Items):
        return value
    keys = [Constant(key.value) if isinstance(key, Constant) else key for key in value.keys]
    return Box.of(value.kind, map(thawed, value.values), keys, value.complete)


def maker(value: V) -> str:
    """The dotted name by which a method of a value is called: of what made it; empty if not known."""
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
