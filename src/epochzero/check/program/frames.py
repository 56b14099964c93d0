"""Where the interpreter is: in which function, under which conditions, and how a statement may end."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from epochzero.check.findings import SourceLocation
from epochzero.check.program.heap import Function, Scope, V


class LimitReached(Exception):  # noqa: N818 -- no error: the walk has gone as far as it may
    """The limit on steps or on time is reached."""


class PathEnds(Exception):  # noqa: N818 -- no error: what the program does here ends this way
    """The program raises or exits."""


class Flow:
    """How a statement may end, as bits of an integer; `enum.IntFlag` is ten times slower."""

    NEXT = 1
    RETURN = 2
    BREAK = 4
    CONTINUE = 8
    RAISE = 16


@dataclass(frozen=True, slots=True)
class PathCondition:
    """The conditions under which the program reaches the statement that is walked.

    Attributes:
        certain: whether it certainly reaches it.
        handled: exceptions that a surrounding handler catches.
        replaced: exceptions that a surrounding handler replaces by another one.
        loops: number of surrounding loops.
        is_doubtful: whether it is behind an ``and`` or ``or`` whose value is unknown.
        is_later: whether this is a later iteration of a loop: earlier ones have changed the state.
        is_aside: whether this runs in a thread other than the main one.
    """

    certain: bool = True
    handled: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    loops: int = 0
    is_doubtful: bool = False
    is_later: bool = False
    is_aside: bool = False


@dataclass(slots=True)
class CallFrame:
    """A function or module that is being walked."""

    scope: Scope
    name: str = ""
    via: tuple[SourceLocation, ...] = ()
    phase: str = "initialization"
    firm: str = ""
    """The phase of all events in the frame, even in a training loop."""
    function: Function | None = None
    receiver: V | None = None
    returns: list[V] = field(default_factory=list)
    yields: list[V] = field(default_factory=list)
    start: PathCondition = PathCondition()
    """The path condition of its call."""
    all_yielded: bool = True
    left: list[dict[tuple[int, str], tuple[dict[str, object], str, object]]] = field(
        default_factory=list
    )
    """Changes outside of the function by paths that returned earlier."""


@dataclass(slots=True)
class Arguments:
    """The arguments of a call; ``complete`` unless a ``*`` or ``**`` is unknown."""

    positional: list[V] = field(default_factory=list)
    keywords: dict[str, V] = field(default_factory=dict)
    complete: bool = True

    @property
    def all(self) -> list[V]:
        """The positional and keyword arguments."""
        return [*self.positional, *self.keywords.values()]

    def get(self, position: int, name: str = "") -> V | None:
        """The argument at a position or with a name; None if it is not given."""
        if position < len(self.positional):
            return self.positional[position]
        return self.keywords.get(name)


def written_receiver(node: ast.expr) -> str:
    """The last name before the dot of a method call, as written; empty for other calls."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return ""
    inner = node.func.value
    return inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
