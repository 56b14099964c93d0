"""What an expression of the program is known to be, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from epochzero.check.findings import SourceLocation


@dataclass(frozen=True, slots=True)
class Anything:
    """Not known, and why: ``an argument that is not given``, ``read from a file``."""

    reason: str = ""


ANYTHING = Anything()


@dataclass(frozen=True, slots=True)
class Raises(Anything):
    """A value of a configuration that raises an exception where it is read: ``???`` of OmegaConf.

    Attributes:
        error: the class of the exception.
        message: of the exception.
    """

    error: type[Exception] = ValueError
    message: str = ""


@dataclass(frozen=True, slots=True)
class Variable(Anything):
    """A value of a configuration that needs a variable of the environment where it is read.

    Attributes:
        name: of the variable.
        whole: whether the value is that of the variable, not a text with it.
    """

    name: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, bytes, a truth value, None or Ellipsis.

    Attributes:
        value: it.
        origin: where it was written: a literal, a default, an argument of the command line, a line
            of a configuration.
    """

    value: str | bytes | int | float | complex | bool | None
    origin: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of which only parts are known, such as an f-string.

    Attributes:
        parts: known parts as `str`, the others as values; in their order.
    """

    parts: tuple[str | Value, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple, list, set or dictionary.

    Attributes:
        kind: ``tuple``, ``list``, ``set`` or ``dict``.
        values: the items; of a dictionary the values.
        keys: of a dictionary; empty otherwise.
        complete: whether there are surely no others.
    """

    kind: str
    values: tuple[Value, ...]
    keys: tuple[Value, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class External:
    """A name of a library that is not part of the job: ``torch.nn.Linear``.

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
    """What a call made: an object of a class, or the result of a library's function.

    Attributes:
        made_by: dotted name of the class or function: ``torch.nn.Linear``, or a class of the job.
            Of an attribute or item of a library's object also the way to it:
            ``torchvision.models.resnet18().fc``, ``torch.utils.data.DataLoader()[][0]``; then the
            place is None. A path of `pathlib` has one argument, the whole path as a text.
        arguments: the call's arguments by position, then by keyword.
        keywords: likewise.
        own: whether the class is the job's own.
        place: of the call.
        part_of: of an attribute or item, the object that it is in.
        shape: of a tensor, with None for the sizes that are not known; None when nothing is known.
    """

    made_by: str
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict, hash=False)
    own: bool = False
    place: SourceLocation | None = None
    part_of: Value | None = field(default=None, compare=False)
    shape: tuple[int | None, ...] | None = field(default=None, compare=False)


Value: TypeAlias = Anything | Constant | Text | Items | External | Own | Instance
