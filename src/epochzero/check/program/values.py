"""Abstract values: what is known of an expression of the program without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from epochzero.check.findings import SourceLocation


@dataclass(frozen=True, slots=True)
class Anything:
    """An unknown value, with the reason: ``an argument that is not given``, ``read from a file``."""

    reason: str = ""


ANYTHING = Anything()
CHANGED = Anything("changed in a loop")


@dataclass(frozen=True, slots=True)
class Raises(Anything):
    """A value of a configuration that raises an exception when it is read: ``???`` of OmegaConf.

    Attributes:
        error: class of the exception.
        message: message of the exception.
    """

    error: type[Exception] = ValueError
    message: str = ""


@dataclass(frozen=True, slots=True)
class Variable(Anything):
    """A value of a configuration that needs an environment variable when it is read.

    Attributes:
        name: of the variable.
        whole: whether the value is that of the variable, not a text that contains it.
    """

    name: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, bytes, a truth value, None or Ellipsis.

    Attributes:
        value: the constant.
        origin: where it was written: a literal, a default, an argument of the command line, a line of a configuration.
    """

    value: str | bytes | int | float | complex | bool | None
    origin: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A partly known text, such as an f-string.

    Attributes:
        parts: known parts as `str`, unknown ones as values, in order.
    """

    parts: tuple[str | Value, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple, list, set or dictionary.

    Attributes:
        kind: ``tuple``, ``list``, ``set`` or ``dict``.
        values: the items, or the values of a dictionary.
        keys: the keys of a dictionary; empty otherwise.
        complete: whether it certainly has no other items.
    """

    kind: str
    values: tuple[Value, ...]
    keys: tuple[Value, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class External:
    """A name of a library: ``torch.nn.Linear``.

    Attributes:
        name: dotted, as the library is imported, aliases resolved.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Own:
    """A function, class or module of the job.

    Attributes:
        name: dotted: module and qualified name.
        kind: ``function``, ``class`` or ``module``.
    """

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Instance:
    """The result of a call: an object of a class, or the result of a library's function.

    Attributes:
        made_by: dotted name of the class or function: ``torch.nn.Linear``, or a class of the job. For an attribute or
            item of a library's object also the path to it: ``torchvision.models.resnet18().fc``,
            ``torch.utils.data.DataLoader()[][0]``; then the place is None. A `pathlib` path has one argument, the whole
            path as a text.
        arguments: positional arguments of the call.
        keywords: keyword arguments of the call.
        own: whether the class is the job's own.
        place: location of the call.
        part_of: for an attribute or item, the object that contains it.
    """

    made_by: str
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict, hash=False)
    own: bool = False
    place: SourceLocation | None = None
    part_of: Value | None = field(default=None, compare=False)


Value: TypeAlias = Anything | Constant | Text | Items | External | Own | Instance


def constant_of(value: object, default: object = None) -> object:
    """The value of a constant; ``default`` for other values."""
    return value.value if isinstance(value, Constant) else default


def entries_of(value: Value | None) -> Iterator[tuple[Constant, Value]]:
    """The entries of a dictionary whose keys are known."""
    if isinstance(value, Items) and value.kind == "dict":
        for key, item in zip(value.keys, value.values, strict=False):
            if isinstance(key, Constant):
                yield key, item


def integer_of(value: Value | None) -> int | None:
    """An integer, if its value is known."""
    found = constant_of(value)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
