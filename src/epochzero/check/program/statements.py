"""Statements."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence

from epochzero.check.program.counted_loops import IterationValue, leaves
from epochzero.check.program.definitions import Definitions
from epochzero.check.program.frames import Arguments, Flow, PathEnds
from epochzero.check.program.heap import Box, LibraryResult, Object, V, published
from epochzero.check.program.imports import Imports
from epochzero.check.program.loops import Loops
from epochzero.check.program.ranks import is_first_rank
from epochzero.check.program.values import Anything, Constant, External

_SIGNALS = (LookupError, StopIteration, StopAsyncIteration)
"""Exceptions that also end an iteration of a caller."""


class Statements(Imports, Definitions, Loops):
    """Execute statements."""

    def execute(self, body: Sequence[ast.stmt]) -> int:
        """Walk statements; after one that may leave the function, nothing is certain."""
        before, ended = self.path, 0
        try:
            for at, statement in enumerate(body):
                self.step()
                flow = self._execute_one(statement)
                ended |= flow & ~Flow.NEXT
                if not flow & Flow.NEXT:
                    return ended
                left = flow & (Flow.BREAK | Flow.CONTINUE)
                if left and at + 1 < len(body):
                    return ended | self._in_some_rounds(body[at + 1 :], left)
                if flow & Flow.RETURN:
                    self.narrow(certain=False)
        finally:
            self.path = before
        return ended | Flow.NEXT

    def _in_some_rounds(self, rest: Sequence[ast.stmt], left: int) -> int:
        """Walk the rest of an iteration that a ``break`` or ``continue`` may have ended."""
        return self.either(lambda: self.execute(rest), lambda: left)

    def _execute_one(self, statement: ast.stmt) -> int:
        found = _EXECUTORS.get(type(statement))
        if found is None:
            return Flow.NEXT
        try:
            return found(self, statement)
        except PathEnds:
            return Flow.RAISE
        except RecursionError:
            self.unknown("a statement", "it is nested too deep", statement)
            self.is_lost = True
            return Flow.NEXT

    # -- Simple statements --------------------------------------------------------------------

    def _expression(self, node: ast.Expr) -> int:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)
        return Flow.NEXT

    def _return(self, node: ast.Return) -> int:
        value: V = Constant(None) if node.value is None else self.evaluate(node.value)
        self.frame.returns.append(value)
        return Flow.RETURN

    def _raise(self, node: ast.Raise) -> int:
        if node.exc is not None:
            self._raised(self.evaluate(node.exc), node)
        return Flow.RAISE

    def _raised(self, value: V, node: ast.Raise) -> None:
        """Record an exception that the program certainly raises."""
        name = value.name.removesuffix("()") if isinstance(value, (External, LibraryResult)) else ""
        error = getattr(builtins, name.removeprefix("builtins."), None)
        if not self.path.certain or not isinstance(error, type) or not issubclass(error, Exception):
            return
        if not issubclass(error, _SIGNALS):
            argument = (
                value.arguments[0] if isinstance(value, LibraryResult) and value.arguments else None
            )
            text = argument.value if isinstance(argument, Constant) else ""
            self.fails("raised", error, str(text or ""), node)

    def _assert(self, node: ast.Assert) -> int:
        known = self.truth(self.evaluate(node.test))
        if known is False:
            self.called("builtins.AssertionError", Arguments(), None, Constant(None), node.test)
        return Flow.RAISE if known is False else Flow.NEXT

    # -- Conditions ---------------------------------------------------------------------------

    def _if(self, node: ast.If) -> int:
        value = self.evaluate(node.test)
        known = self.truth(value)
        if known is not None:
            return self.execute(node.body if known else node.orelse)
        ways = [lambda: self.execute(node.body), lambda: self.execute(node.orelse)]
        if isinstance(value, IterationValue):
            return self._by_rounds(value, *ways)
        # One of the processes has rank 0: what fails there fails in every run.
        return self.either(*ways, certain=[0] if is_first_rank(node.test) else [])

    def _by_rounds(self, value: IterationValue, *ways: Callable[[], int]) -> int:
        """Walk both branches of a condition on the iteration number: each is certain if such an iteration exists."""

        def later(way: Callable[[], int]) -> Callable[[], int]:
            def walk() -> int:
                self.narrow(is_later=True)
                return way()

            return walk

        is_first = [value.first is holds for holds in (True, False)]
        comes = [
            value.comes(holds) and (first or not leaves(value.loop))
            for holds, first in zip((True, False), is_first, strict=True)
        ]
        walks = [way if first else later(way) for way, first in zip(ways, is_first, strict=True)]
        return self.either(*walks, certain=[at for at, sure in enumerate(comes) if sure])

    def _match(self, node: ast.Match) -> int:
        subject = self.evaluate(node.subject)
        ways: list[Callable[[], int]] = []
        for case in node.cases:
            known = self._fits(case, subject)
            if known is False:
                continue
            if known and not ways:
                return self.execute(case.body)
            self._capture(case.pattern)
            ways.append(lambda body=case.body: self.execute(body))  # type: ignore[misc]
            if known:
                break
        else:
            ways.append(lambda: Flow.NEXT)
        return self.either(*ways)

    def _fits(self, case: ast.match_case, subject: V) -> bool | None:
        if case.guard is not None:
            return None
        patterns = [case.pattern]
        if isinstance(case.pattern, ast.MatchOr):
            patterns = case.pattern.patterns
        known = [self._fits_one(pattern, subject) for pattern in patterns]
        return True if True in known else None if None in known else False

    def _fits_one(self, pattern: ast.pattern, subject: V) -> bool | None:
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            if pattern.name is not None:
                self.store_name(pattern.name, subject)
            return True
        if isinstance(pattern, ast.MatchValue):
            wanted = self.evaluate(pattern.value)
            return self.compared(ast.Eq(), subject, wanted)
        return None

    def _capture(self, pattern: ast.pattern) -> None:
        for node in ast.walk(pattern):
            if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name is not None:
                self.store_name(node.name, Anything("a part of what is matched"))

    # -- Exceptions and contexts --------------------------------------------------------------

    def _try(self, node: ast.Try) -> int:
        names = frozenset(name for handler in node.handlers for name in self._caught(handler))
        replaced = frozenset(name for handler in node.handlers for name in self._replaced(handler))
        mark = self.journal.mark()
        with self.under(handled=names, replaced=replaced):
            flow = self.execute(node.body)
        if flow & Flow.NEXT:
            flow = (flow & ~Flow.NEXT) | self.execute(node.orelse)
        if node.handlers:
            flow = self._handlers(node, flow, mark)
        final = self.execute(node.finalbody)
        return flow | (final & ~Flow.NEXT) if final & Flow.NEXT else final

    def _handlers(self, node: ast.Try, flow: int, mark: int) -> int:
        """Walk the handlers as alternatives to the path without an exception."""
        body = self.journal.rewind(mark)

        def unharmed() -> int:
            self.journal.merge([body])
            return flow

        def way(handler: ast.ExceptHandler) -> Callable[[], int]:
            def walk() -> int:
                # The exception may be raised before or after any change.
                self.journal.join_in(body)
                if handler.name:
                    self.store_name(handler.name, Anything("an exception"))
                flow = self.execute(handler.body)
                if handler.name:
                    self.journal.remove(self.frame.scope.names, handler.name)
                return flow

            return walk

        return self.either(unharmed, *(way(handler) for handler in node.handlers))

    def _caught(self, handler: ast.ExceptHandler) -> Iterator[str]:
        """Names of the exceptions that a handler catches without raising again."""
        if not _gives_up(handler):
            yield from self._named(handler)

    def _replaced(self, handler: ast.ExceptHandler) -> Iterator[str]:
        """Names of the exceptions that a handler replaces by another one."""
        last = handler.body[-1]
        if isinstance(last, ast.Raise) and isinstance(last.exc, ast.Call):
            yield from self._named(handler)

    def _named(self, handler: ast.ExceptHandler) -> Iterator[str]:
        if handler.type is None:
            yield "BaseException"
            return
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in types:
            value = published(self.evaluate(kind))
            if isinstance(value, External):
                yield value.name.removeprefix("builtins.")
            elif not isinstance(value, Anything):
                yield getattr(value, "name", "")

    def _with(self, node: ast.With | ast.AsyncWith) -> int:
        handled: set[str] = set()
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if isinstance(value, LibraryResult) and value.name == "contextlib.suppress":
                names = [arg.name for arg in value.arguments if isinstance(arg, External)]
                handled |= {name.removeprefix("builtins.") for name in names}
            entered = value
            if isinstance(value, Object):
                entered = self.own_method(value, "__enter__", Arguments()) or value
            elif isinstance(value, Box):
                entered = value.content.values[0] if value.content.values else Anything("entered")
            if item.optional_vars is not None:
                self.assign(item.optional_vars, entered)
        with self.under(handled=frozenset(handled)):
            return self.execute(node.body)


_EXECUTORS: dict[type[ast.stmt], Callable[..., int]] = {
    ast.Expr: Statements._expression,
    ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.Delete: Statements.delete,
    ast.Return: Statements._return,
    ast.Raise: Statements._raise,
    ast.Assert: Statements._assert,
    ast.Global: Statements.declare_global,
    ast.Nonlocal: Statements.declare_nonlocal,
    ast.Import: Statements.import_modules,
    ast.ImportFrom: Statements.import_from,
    ast.FunctionDef: Statements.define_function,
    ast.AsyncFunctionDef: Statements.define_function,
    ast.ClassDef: Statements.define_class,
    ast.If: Statements._if,
    ast.Match: Statements._match,
    ast.For: Statements.walk_for,
    ast.AsyncFor: Statements.walk_for,
    ast.While: Statements.walk_while,
    ast.Try: Statements._try,
    ast.TryStar: Statements._try,
    ast.With: Statements._with,
    ast.AsyncWith: Statements._with,
    ast.Break: lambda machine, node: Flow.BREAK,
    ast.Continue: lambda machine, node: Flow.CONTINUE,
}


def _gives_up(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises again or exits."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise):
        return True
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("exit", "_exit", "quit", "abort")
