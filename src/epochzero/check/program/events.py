"""Events: what the program does, in order, as far as reading can determine it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from epochzero.check.findings import SourceLocation
from epochzero.check.program.values import Instance, Value


@dataclass(frozen=True, slots=True)
class Situation:
    """The circumstances of an event.

    Attributes:
        place: location.
        via: the calls and imports that lead there, the entry point first.
        phase: phase of the taxonomy.
        certain: whether it happens in every run that comes this far: under no unknown condition, in no loop that
            may be empty, in no function that is called only perhaps.
        handled: names of the exceptions that a ``try`` around it, in this function or a caller, catches and does
            not raise again; ``BaseException`` for a bare ``except``.
        function: qualified name of the function of the job; empty at module level.
        loop: whether it happens in a loop.
        later: whether it happens only in later iterations of a loop.
        aside: whether it happens in another thread, whose failure does not end the job.
    """

    place: SourceLocation
    via: tuple[SourceLocation, ...] = ()
    phase: str = "initialization"
    certain: bool = True
    handled: frozenset[str] = frozenset()
    function: str = ""
    loop: bool = False
    later: bool = False
    aside: bool = False


@dataclass(frozen=True, slots=True)
class LibraryImport:
    """The import of a library.

    Attributes:
        module: dotted name, as written; relative names resolved.
        names: the imported names (``from module import names``); empty for the module itself.
        at: circumstances.
    """

    module: str
    names: tuple[str, ...]
    at: Situation


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The call of a function, class or method of a library.

    Attributes:
        name: dotted name: ``torch.save``. The name of a method starts with what created its object:
            ``torch.nn.Linear().to``, ``builtins.str().join``; for an unknown object with ``?``:
            ``?.backward``. Built-in functions are ``builtins.open``; the call of an object itself is
            ``torch.nn.Linear().__call__``.
        arguments: positional arguments.
        keywords: keyword arguments.
        receiver: the object of a method; None for functions.
        complete: whether there are no unknown ``*`` or ``**`` arguments.
        result: the result.
        at: circumstances.
    """

    name: str
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]
    receiver: Value | None
    complete: bool
    result: Value
    at: Situation


@dataclass(frozen=True, slots=True)
class Lookup:
    """The lookup of an attribute or item of a known value.

    Attributes:
        on: the value: a module or class of a library (`External`), a configuration or dictionary (`Items`), an
            object of the job or of a library (`Instance`), or a constant.
        name: name of the attribute, or the key.
        item: whether it is an item (``x["a"]``), not an attribute.
        found: whether it exists; None if unknown.
        stored: whether it is set, not read.
        value: the value that it is set to; None if it is read.
        at: circumstances.
    """

    on: Value
    name: str
    item: bool
    found: bool | None
    stored: bool
    value: Value | None
    at: Situation


@dataclass(frozen=True, slots=True)
class CertainError:
    """An operation that certainly raises an exception that nothing catches.

    Attributes:
        kind: the kind of failure, by which rules select it: ``arguments``, ``attribute``, ``configuration``,
            ``forward``, ``import``, ``index``, ``name``, ``none``, ``raised``, ``shape``, ``type``, ``unpack``, ``value`` or
            ``zero``.
        error: class of the exception.
        message: message of the exception.
        why: what is wrong, in a sentence; empty if the values are unknown.
        fix: what to do; likewise.
        at: circumstances.
    """

    kind: str
    error: str
    message: str
    why: str
    fix: str
    at: Situation


Event: TypeAlias = LibraryImport | LibraryCall | Lookup | CertainError


def guarded(at: Situation, *exceptions: type[BaseException]) -> bool:
    """Whether one of the exceptions, or one of its base classes, is caught around the event."""
    above = {parent.__name__ for exception in exceptions for parent in exception.__mro__}
    # OSError has older names, and a handler may qualify it with its module.
    above |= {"IOError", "EnvironmentError"} if "OSError" in above else set()
    return any(name.rpartition(".")[2] in above for name in at.handled)


def argument(call: LibraryCall | Instance, position: int | None, name: str) -> Value | None:
    """An argument of a call, or of the call that created an object; None if none is known to be passed.

    Args:
        call: the call or the object.
        position: among the positional arguments; -1 for the object of a method, None for a keyword alone.
        name: keyword; empty for a positional argument alone.
    """
    if name in call.keywords:
        return call.keywords[name]
    if position == -1:
        return call.receiver if isinstance(call, LibraryCall) else None
    if position is None or position >= len(call.arguments):
        return None
    return call.arguments[position]
