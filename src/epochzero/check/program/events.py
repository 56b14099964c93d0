"""What the program does, in the order in which it does it, as far as reading can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from epochzero.check.findings import SourceLocation
from epochzero.check.program.values import Value


@dataclass(frozen=True, slots=True)
class Situation:
    """The circumstances in which something happens.

    Attributes:
        place: where.
        via: the calls and imports that lead there, the entry point first.
        phase: by the taxonomy.
        certain: whether it happens in every run that comes this far: under no condition that is not
            known to hold, in no loop that may be empty, in no function that only may be called.
        handled: names of the exceptions that a ``try`` around it, in this function or one that
            called it, catches and does not raise again; ``BaseException`` for a bare ``except``.
        function: qualified name of the function of the job; empty at module level.
        loop: whether it happens within a loop.
        later: whether it happens in rounds of a loop only that are not its first.
        aside: whether it happens in a thread, whose failure does not end the job.
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
class Imported:
    """A module outside of the job is imported.

    Attributes:
        module: dotted name, as written; relative ones resolved.
        names: taken from it (``from module import names``); empty for the module itself.
        at: where and when.
    """

    module: str
    names: tuple[str, ...]
    at: Situation


@dataclass(frozen=True, slots=True)
class Called:
    """Something outside of the job is called: a function, a class, a method.

    Attributes:
        name: dotted: ``torch.save``; of a method the maker of the object and the method, such as
            ``torch.nn.Linear().to`` or ``argparse.ArgumentParser().add_argument``; of a built-in
            ``builtins.open``; of a method of a text ``builtins.str().join``; of an object that is
            called itself ``torch.nn.Linear().__call__``. Where the object is not known, its maker is
            ``?``: ``?.backward``.
        arguments: by position.
        keywords: by name.
        receiver: the object of a method; None for functions.
        complete: whether there are no ``*`` or ``**`` arguments that are not known.
        result: what the call gives.
        at: where and when.
    """

    name: str
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]
    receiver: Value | None
    complete: bool
    result: Value
    at: Situation


@dataclass(frozen=True, slots=True)
class Looked:
    """An attribute or item is looked up on something known.

    Attributes:
        on: the object: a module or class outside (`External`), a configuration or dictionary
            (`Items`), an object of the job or of a library (`Instance`), or a constant.
        name: of the attribute, or the key.
        item: whether it is an item (``x["a"]``), not an attribute.
        found: whether it is there: None when that is not known.
        stored: whether it is set, not read.
        value: that it is set to; None where it is read.
        at: where and when.
    """

    on: Value
    name: str
    item: bool
    found: bool | None
    stored: bool
    value: Value | None
    at: Situation


@dataclass(frozen=True, slots=True)
class Failed:
    """What the program does here surely raises an exception that nothing catches.

    Attributes:
        kind: what is wrong, by which a rule finds it: ``arguments``, ``attribute``,
            ``configuration``, ``import``, ``index``, ``name``, ``none``, ``raised``, ``shape``,
            ``type``, ``unpack``, ``value`` or ``zero``.
        error: the class of the exception.
        message: of the exception.
        why: what is wrong, in a sentence, and
        fix: what to do, where the values are known; empty where they are not.
        at: where and when.
    """

    kind: str
    error: str
    message: str
    why: str
    fix: str
    at: Situation


Event: TypeAlias = Imported | Called | Looked | Failed
