"""The state of the interpreter: events, known values, and the walk of alternative paths."""

from __future__ import annotations

import ast
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.job.model import Job
from epochzero.check.program import phases
from epochzero.check.program.argument_origins import argument
from epochzero.check.program.events import Called, Event, Failed, Imported, Looked, Situation
from epochzero.check.program.heap import (
    Box,
    Class,
    Function,
    HeapJournal,
    LibraryResult,
    Object,
    Opened,
    Ref,
    Scope,
    V,
    maker,
    published,
    thawed,
)
from epochzero.check.program.model import Module
from epochzero.check.program.modules import Modules
from epochzero.check.program.values import Anything, Constant, External, Value
from epochzero.check.target.model import Target

MOST_STEPS = 150_000
"""Limit of the statements and expressions that are walked; a program of 20,000 lines takes about two thirds."""
LONGEST_S = 3.0
"""Time limit for slow machines; for a large program, the limit on steps applies first."""
_ASK_TIME_EVERY = 1024
_LASTING = frozenset({"abstract", "arguments", "import", "unpack"})
"""Kinds of failures that do not depend on earlier iterations of a loop."""


class Exhausted(Exception):  # noqa: N818 -- no error: the walk has gone as far as it may
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


_STAYS = Flow.NEXT | Flow.BREAK | Flow.CONTINUE
"""Endings after which the function continues."""


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
    start: tuple[bool, int] = (True, 0)
    """Whether its call is certain, and the depth of loops around it."""
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


@dataclass(slots=True)
class _Happening:
    """An event whose phase may still change."""

    what: tuple[object, ...]
    place: SourceLocation
    via: tuple[SourceLocation, ...]
    certain: bool
    handled: frozenset[str]
    function: str
    loop: bool
    later: bool
    aside: bool
    phase: str
    firm: str

    def event(self) -> Event:
        at = Situation(
            self.place,
            self.via,
            self.phase,
            self.certain,
            self.handled,
            self.function,
            self.loop,
            self.later,
            self.aside,
        )
        kind, *fields = self.what
        return kind(*fields, at)  # type: ignore[operator,no-any-return]


class Core(ABC):
    """The state of the interpreter, and the ways to change it.

    Args:
        job: the job to read.
        target: the platform it runs on.
    """

    def __init__(self, job: Job, target: Target) -> None:
        self.job = job
        self.target = target
        self.modules = Modules(job, target)
        self.journal = HeapJournal()
        self.opened: dict[str, Opened] = {}
        self.unknowns: dict[Unknown, None] = {}
        self.options: dict[str, Value] = {}
        self.environment: dict[str, V] = {}
        self.frame: CallFrame
        self.at: ast.expr = ast.Constant(None)
        """The call that is being evaluated."""
        self.certain = True
        self.handled: frozenset[str] = frozenset()
        self.turned: frozenset[str] = frozenset()
        """Exceptions that a handler replaces by another one."""
        self.loops = 0
        self.rounds = 0
        """Number of surrounding loops of which one iteration stands for all."""
        self.importing: list[str] = []
        """Modules of the job that are being executed."""
        self.is_doubtful = False
        """Whether the walk is behind an ``and`` or ``or`` whose value is unknown."""
        self.is_later = False
        """Whether this is a later iteration of a loop: earlier ones have changed the state."""
        self.is_aside = False
        """Whether this runs in a thread other than the main one."""
        self.is_lost = False
        """Whether some code was nested too deep to be walked, so that its effects are unknown."""
        self.arguments: Box = self._arguments_of(job)
        self.loaders: list[LibraryResult] = []
        """Data loaders that exist and were not yet iterated."""
        self.registered: dict[Ref, list[Function]] = {}
        """Functions that a decorator registered with a library's object: ``@app.command()``."""
        self.entered: dict[tuple[str, int], bool] = {}
        """Paths and lines of the functions that ran, and whether they certainly do."""
        self._happenings: list[_Happening] = []
        self._steps = 0
        self._end = time.thread_time() + LONGEST_S
        self._literals: dict[ast.AST, Constant] = {}
        self._has_stepped = False
        self._trained_at = -1
        self._evaluates = False

    # -- What the other parts of the interpreter do -------------------------------------------

    @abstractmethod
    def evaluate(self, node: ast.expr) -> V:
        """Evaluate an expression and record the events in it."""

    @abstractmethod
    def execute(self, body: Sequence[ast.stmt]) -> int:
        """Walk statements."""

    @abstractmethod
    def assign(self, target: ast.expr, value: V) -> None:
        """Assign a value to a target."""

    @abstractmethod
    def apply(self, callee: V, given: Arguments, node: ast.expr) -> V:
        """Call a value."""

    @abstractmethod
    def attribute(self, owner: V, name: str, node: ast.AST, called: bool = False) -> V:
        """Look up an attribute of a value."""

    @abstractmethod
    def iterated(self, value: V, node: ast.AST) -> tuple[list[V], bool, bool]:
        """Return the items of an iteration, whether they are all known, and whether there is at least one."""

    @abstractmethod
    def variable(self, name: str) -> tuple[V, bool | None]:
        """Return an environment variable, and whether it is set (None: unknown)."""

    @abstractmethod
    def operate(self, op: ast.operator, left: V, right: V, node: ast.AST) -> V:
        """Apply an operator."""

    @abstractmethod
    def compared(self, op: ast.cmpop, left: V, right: V) -> bool | None:
        """Whether a comparison holds; None if unknown."""

    @abstractmethod
    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str
    ) -> Function:
        """Define a function."""

    @abstractmethod
    def own_method(self, receiver: Object, name: str, given: Arguments) -> V | None:
        """Return the result of a method of the job's class; None if the class lacks the name."""

    @abstractmethod
    def has(self, owner: V, name: str) -> bool | None:
        """Whether a value has an attribute; None if unknown."""

    @abstractmethod
    def in_class(self, line: Iterable[Class], name: str) -> V | None:
        """Look up a name in the first of several classes that has it."""

    @abstractmethod
    def iterated_known(self, value: V | None) -> tuple[list[V] | None, bool, bool]:
        """Like `iterated`, with None for the items if nothing is known about them."""

    @abstractmethod
    def possibly(self, function: V, node: ast.expr, given: Arguments | None = None) -> None:
        """Walk a function that a library may call: its events are not certain."""

    @abstractmethod
    def external_attribute(self, owner: External, name: str) -> V:
        """Look up a name of a library; for some names of the standard library its value."""

    @abstractmethod
    def open(self, name: str, node: ast.AST) -> Opened | None:
        """Return a module of the job, and execute it on first use; None if it is not part of the job."""

    @abstractmethod
    def flag(self, name: str) -> V | None:
        """Return the value of an absl flag; None if it is not a flag or unknown."""

    @abstractmethod
    def read_flags(self) -> None:
        """Parse the flags, as ``absl.app.run`` does first."""

    @abstractmethod
    def callbacks(
        self, given: Arguments, node: ast.expr, each: Mapping[int | str, int] | None = None
    ) -> None:
        """Walk the functions of the job that are passed to a library, which may call them."""

    @abstractmethod
    def truth(self, value: V) -> bool | None:
        """The truth value of a value; None if unknown."""

    @staticmethod
    def _arguments_of(job: Job) -> Box:
        """The value of ``sys.argv``."""
        script = job.module if job.script is None else job.script.as_posix()
        given = [thawed(argument(job, at)) for at in range(len(job.argv))]
        return Box.of("list", [Constant(script), *given], complete=job.complete)

    # -- Bounds -------------------------------------------------------------------------------

    def step(self) -> None:
        """Count a step.

        Raises:
            Exhausted: the limit is reached.
        """
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Exhausted
        if self._steps % _ASK_TIME_EVERY == 0 and time.thread_time() > self._end:
            raise Exhausted

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._steps

    # -- What happens -------------------------------------------------------------------------

    @property
    def module(self) -> Module:
        """The module whose code is walked."""
        return self.frame.scope.module

    def place(self, node: ast.AST) -> SourceLocation:
        """The location of a node of the current module."""
        return self.module.place(node)

    def literal(self, node: ast.AST, value: str | bytes | int | float | complex | None) -> Constant:
        """A literal of the source."""
        if (found := self._literals.get(node)) is None:
            found = self._literals[node] = Constant(value, self.place(node))
        return found

    def unknown(self, what: str, reason: str, node: ast.AST) -> None:
        """Record what could not be followed."""
        self.unknowns[Unknown(what, reason, self.place(node))] = None

    def imported(self, module: str, names: tuple[str, ...], node: ast.AST) -> None:
        """Record the import of a library."""
        self._happen((Imported, module, names), node, self._phase())

    def looked(
        self,
        on: V,
        name: str,
        node: ast.AST,
        *,
        item: bool,
        found: bool | None,
        stored: V | None = None,
    ) -> None:
        """Record the lookup of an attribute or item, or a value stored under it."""
        value = None if stored is None else published(stored)
        what = (Looked, published(on), name, item, found, stored is not None, value)
        self._happen(what, node, self._phase())

    def called(
        self, name: str, given: Arguments, receiver: V | None, result: V, node: ast.expr
    ) -> None:
        """Record the call of a library."""
        what = (
            Called,
            name,
            tuple(published(one) for one in given.positional),
            {key: published(one) for key, one in given.keywords.items()},
            None if receiver is None else published(receiver),
            given.complete,
            published(result),
        )
        self._happen(what, node, self._phase_of_call(name, node))

    def fails(
        self,
        kind: str,
        error: type[Exception],
        message: str,
        node: ast.AST,
        why: str = "",
        fix: str = "",
    ) -> Anything:
        """Record an operation that certainly raises.

        Returns:
            an unknown value: the walk continues, to find further failures.

        Raises:
            PathEnds: the program catches the exception.
        """
        caught = {name.rpartition(".")[2] for name in (*self.handled, *self.turned)}
        if any(one.__name__ in caught for one in error.__mro__):
            raise PathEnds
        if hasattr(node, "lineno") and not (self.is_lost or self.is_doubtful):
            what = (Failed, kind, error.__name__, message, why, fix)
            self._happen(what, node, self._phase())
        return Anything("what fails")

    def _happen(self, what: tuple[object, ...], node: ast.AST, phase: str) -> None:
        frame = self.frame
        self._happenings.append(
            _Happening(
                what,
                self.place(node),
                frame.via,
                self.certain and not (self.is_later and _may_be_undone(what)),
                self.handled,
                frame.name,
                self.loops > 0,
                self.is_later,
                self.is_aside,
                phase,
                frame.firm,
            )
        )

    def events(self) -> tuple[Event, ...]:
        """All events."""
        return tuple(one.event() for one in self._happenings)

    @property
    def event_count(self) -> int:
        """Number of events so far."""
        return len(self._happenings)

    # -- Phases -------------------------------------------------------------------------------

    def _phase(self) -> str:
        phase = self.frame.phase
        return "evaluation" if self._trained_at >= 0 or self._evaluates else phase

    def _phase_of_call(self, name: str, node: ast.expr) -> str:
        written = ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = node.func.value
            written = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
        if self.loops and phases.is_step(name, written):
            self._has_stepped = True
        if name.endswith((".eval", ".train")) and name.startswith(("torch.nn.", "transformers.")):
            self._evaluates = name.endswith(".eval")
        if phases.is_fit(name):
            self.train_from(len(self._happenings))
            return "training"
        if phases.is_optimizer(name):
            self._trained_at = -1
        if phases.is_verdict(name):
            return "evaluation"
        phase = self._phase()
        return "preprocessing" if phase == "initialization" and phases.is_data(name) else phase

    def train_from(self, begin: int) -> None:
        """Assign the training phase to all events since ``begin``, and to those between an earlier training and it."""
        earlier = self._trained_at if self._trained_at >= 0 else begin
        for one in self._happenings[min(earlier, begin) :]:
            one.phase = one.firm or "training"
        self._trained_at = len(self._happenings)

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Walk a loop; if an optimizer is stepped in it, its events belong to training."""
        stepped, begin = self._has_stepped, len(self._happenings)
        self._has_stepped = False
        self.loops += 1
        try:
            yield
        finally:
            self.loops -= 1
            if self._has_stepped and not self._sets_up(begin):
                self.train_from(begin)
            self._has_stepped = self._has_stepped or stepped

    def _sets_up(self, begin: int) -> bool:
        """Whether an optimizer was created since ``begin``: then the loop is over whole runs, not over steps."""
        return any(
            one.what[0] is Called and phases.is_optimizer(str(one.what[1]))
            for one in self._happenings[begin:]
        )

    # -- Ways ---------------------------------------------------------------------------------

    @contextmanager
    def under(
        self,
        certain: bool = True,
        handled: frozenset[str] = frozenset(),
        turned: frozenset[str] = frozenset(),
    ) -> Iterator[None]:
        """Walk under a condition, or where exceptions are handled or replaced."""
        before = self.certain, self.handled, self.turned, self.is_doubtful, self.is_later
        self.certain = self.certain and certain
        self.handled = self.handled | handled
        self.turned = self.turned | turned
        try:
            yield
        finally:
            self.certain, self.handled, self.turned, self.is_doubtful, self.is_later = before

    @contextmanager
    def thread(self) -> Iterator[None]:
        """Walk code that runs in another thread."""
        before, self.is_aside = self.is_aside, True
        try:
            yield
        finally:
            self.is_aside = before

    def either(self, *ways: Callable[[], int], certain: Collection[int] = ()) -> int:
        """Walk alternative paths from the same state, and continue with what they have in common.

        Args:
            ways: functions that walk one path each.
            certain: indices of the paths that some process, or some iteration, certainly takes.
        """
        mark = self.journal.mark()
        flow = 0
        going, returned = [], []
        for at, way in enumerate(ways):
            with self.under(certain=at in certain):
                try:
                    ended = way()
                except PathEnds:
                    ended = Flow.RAISE
            flow |= ended
            changes = self.journal.rewind(mark)
            if ended & _STAYS:
                going.append(changes)
            elif ended & Flow.RETURN:
                returned.append(changes)
        if going:
            self.journal.merge(going)
            self.frame.left += [self._outside(changes) for changes in returned]
        elif returned:
            self.journal.merge(returned)
        return flow

    def _outside(
        self, changes: Mapping[tuple[int, str], tuple[dict[str, object], str, object]]
    ) -> dict[tuple[int, str], tuple[dict[str, object], str, object]]:
        """Changes that outlive the function."""
        names = self.frame.scope.names
        return {at: entry for at, entry in changes.items() if entry[0] is not names}

    def method_name(self, owner: V, name: str) -> str:
        """The dotted name of a method; the maker is ``?`` if unknown."""
        return f"{maker(owner) or '?'}.{name}"


def _may_be_undone(what: tuple[object, ...]) -> bool:
    """Whether an earlier iteration of a loop may have added what is missing."""
    return what[0] is Looked or (what[0] is Failed and what[1] not in _LASTING)
