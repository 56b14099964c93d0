"""The state of the interpreter, the way to record events, and the walk of alternative paths."""

from __future__ import annotations

import ast
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from epochzero.check.findings import SourceLocation, Unknown
from epochzero.check.launch.model import Job
from epochzero.check.program.argument_origins import argument
from epochzero.check.program.events import CertainError, LibraryCall, LibraryImport, Lookup
from epochzero.check.program.frames import (
    Arguments,
    CallFrame,
    Flow,
    LimitReached,
    PathCondition,
    PathEnds,
)
from epochzero.check.program.heap import (
    Box,
    Function,
    HeapJournal,
    JobModule,
    LibraryResult,
    Object,
    Ref,
    V,
    maker,
    published,
    thawed,
)
from epochzero.check.program.model import Module
from epochzero.check.program.modules import Modules
from epochzero.check.program.recording import Recording
from epochzero.check.program.values import Anything, Constant, Value
from epochzero.check.target.model import Target

MOST_STEPS = 150_000
"""Limit of the statements and expressions that are walked; a program of 20,000 lines takes about two thirds."""
LONGEST_S = 3.0
"""Time limit for slow machines; for a large program, the limit on steps applies first."""
_ASK_TIME_EVERY = 1024
_STAYS = Flow.NEXT | Flow.BREAK | Flow.CONTINUE
"""Endings after which the function continues."""


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
        self.opened: dict[str, JobModule] = {}
        self.unknowns: dict[Unknown, None] = {}
        self.options: dict[str, Value] = {}
        self.environment: dict[str, V] = {}
        self.frame: CallFrame
        self.at: ast.expr = ast.Constant(None)
        """The call that is being evaluated."""
        self.path = PathCondition()
        """The conditions under which the walked code runs."""
        self.rounds = 0
        """Number of surrounding loops in which one iteration stands for all."""
        self.round_begun = 0
        """The position of the journal where the iteration of the innermost of them begins."""
        self.importing: list[str] = []
        """Modules of the job that are being executed."""
        self.is_lost = False
        """Whether some code was nested too deep to be walked, so that its effects are unknown."""
        self.arguments: Box = self._arguments_of(job)
        self.loaders: list[LibraryResult] = []
        """Data loaders that exist and were not yet iterated."""
        self.registered: dict[Ref, list[Function]] = {}
        """Functions that a decorator registered with a library's object: ``@app.command()``."""
        self.entered: dict[tuple[str, int], bool] = {}
        """Paths and lines of the functions that ran, and whether they certainly do."""
        self.recording = Recording()
        self._steps = 0
        self._end = time.thread_time() + LONGEST_S
        self._literals: dict[ast.AST, Constant] = {}

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
    def own_method(self, receiver: Object, name: str, given: Arguments) -> V | None:
        """Return the result of a method of the job's class; None if the class lacks the name."""

    @abstractmethod
    def has(self, owner: V, name: str) -> bool | None:
        """Whether a value has an attribute; None if unknown."""

    @abstractmethod
    def iterated_known(self, value: V | None) -> tuple[list[V] | None, bool, bool]:
        """Like `iterated`, with None for the items if nothing is known about them."""

    @abstractmethod
    def possibly(self, function: V, node: ast.expr, given: Arguments | None = None) -> None:
        """Walk a function that a library may call: its events are not certain."""

    @abstractmethod
    def open(self, name: str, node: ast.AST) -> JobModule | None:
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
            raise LimitReached
        if self._steps % _ASK_TIME_EVERY == 0 and time.thread_time() > self._end:
            raise LimitReached

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
        self._record(LibraryImport, (module, names), node)

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
        self._record(Lookup, (published(on), name, item, found, stored is not None, value), node)

    def called(
        self, name: str, given: Arguments, receiver: V | None, result: V, node: ast.expr
    ) -> None:
        """Record the call of a library."""
        fields = (
            name,
            tuple(published(value) for value in given.positional),
            {key: published(value) for key, value in given.keywords.items()},
            None if receiver is None else published(receiver),
            given.complete,
            published(result),
        )
        self.recording.add(LibraryCall, fields, self.place(node), self.frame, self.path, node)

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
        caught = {name.rpartition(".")[2] for name in (*self.path.handled, *self.path.replaced)}
        if any(above.__name__ in caught for above in error.__mro__):
            raise PathEnds
        if hasattr(node, "lineno") and not (self.is_lost or self.path.is_doubtful):
            self._record(CertainError, (kind, error.__name__, message, why, fix), node)
        return Anything("what fails")

    def _record(
        self,
        kind: type[LibraryImport | Lookup | CertainError],
        fields: tuple[object, ...],
        node: ast.AST,
    ) -> None:
        self.recording.add(kind, fields, self.place(node), self.frame, self.path)

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Walk a loop."""
        with self.on(replace(self.path, loops=self.path.loops + 1)), self.recording.loop():
            yield

    # -- Paths --------------------------------------------------------------------------------

    @contextmanager
    def on(self, path: PathCondition) -> Iterator[None]:
        """Walk code under these conditions."""
        before, self.path = self.path, path
        try:
            yield
        finally:
            self.path = before

    def under(
        self,
        certain: bool = True,
        handled: frozenset[str] = frozenset(),
        replaced: frozenset[str] = frozenset(),
    ) -> AbstractContextManager[None]:
        """Walk under a further condition, or where exceptions are handled or replaced."""
        path = self.path
        return self.on(
            replace(
                path,
                certain=path.certain and certain,
                handled=path.handled | handled,
                replaced=path.replaced | replaced,
            )
        )

    def narrow(self, **changes: bool) -> None:
        """Change the conditions for the rest of the code that is walked under `on`."""
        self.path = replace(self.path, **changes)  # type: ignore[arg-type]

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
