"""Calls of any value: the callee decides what is called."""

from __future__ import annotations

import ast

from epochzero.check.program import python_errors
from epochzero.check.program.escapes import escape
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Function,
    JobModule,
    LibraryResult,
    Member,
    Object,
    V,
    is_torch_module,
)
from epochzero.check.program.library_calls import LibraryCalls
from epochzero.check.program.values import Anything, Constant, External, Text


class Calls(LibraryCalls):
    """Call values."""

    def apply(self, callee: V, given: Arguments, node: ast.expr) -> V:
        """Call a value.

        Raises:
            PathEnds: the call never returns.
        """
        before, self.at = self.at, node
        try:
            return self._apply(callee, given, node)
        finally:
            self.at = before

    def _apply(self, callee: V, given: Arguments, node: ast.expr) -> V:
        match callee:
            case Function():
                return self._function(callee, given, node)
            case BoundFunction(receiver, Function() as function):
                given = Arguments([receiver, *given.positional], given.keywords, given.complete)
                return self.run(function, given, node, receiver)
            case BoundFunction(receiver, str() as name):
                return self._built_in_method(receiver, name, given, node)
            case Class():
                return self.instance(callee, given, node)
            case Object():
                return self._called_object(callee, given, node)
            case External():
                return self._external(callee.name, given, node)
            case Member(owner, name):
                return self._method(owner, name, given, node)
            case LibraryResult(name="functools.partial") if callee.arguments:
                return self._apply(callee.arguments[0], _with_earlier(callee, given), node)
            case LibraryResult():
                return self._method(callee, "__call__", given, node)
            case Constant() | Text() | Box() | JobModule():
                kind = "none" if python_errors.is_none(callee) else "type"
                message = f"'{python_errors.type_name(callee)}' object is not callable"
                return self.fails(kind, TypeError, message, node)
        self.callbacks(given, node)
        escape(self.journal, given.all)
        return Anything("what a function gives that is not known")

    def _function(self, function: Function, given: Arguments, node: ast.expr) -> V:
        """Call a function; a command receives the arguments of the command line."""
        if not function.decorators or not self.command_lines.is_command(function):
            return self.run(function, given, node)
        for entry, parsed in self.command_lines.given_to(function):
            self.run(entry, parsed, node)
        return Constant(None)

    def _called_object(self, callee: Object, given: Arguments, node: ast.expr) -> V:
        found = self.own_method(callee, "__call__", given)
        if found is not None:
            return found
        if callee.cls.externals():
            # The library's call operator of layers and modules calls this method.
            for name in ("forward", "call"):
                # Keras does not pass `training` to a method that does not accept it.
                taken = Arguments(given.positional, {}, False) if name == "call" else given
                if (found := self.own_method(callee, name, taken)) is not None:
                    return found
            if self._lacks_forward(callee):
                name = python_errors.type_name(callee)
                message = f'Module [{name}] is missing the required "forward" function'
                return self.fails("forward", NotImplementedError, message, node)
            return self._method(callee, "__call__", given, node)
        if not any(cls.opaque for cls in callee.cls.line()):
            message = f"'{python_errors.type_name(callee)}' object is not callable"
            return self.fails("type", TypeError, message, node)
        escape(self.journal, [callee, *given.all])
        return Anything(f"what {callee.cls.name} gives")

    def _lacks_forward(self, module: Object) -> bool:
        """Whether nothing defines what a torch module does when it is called."""
        names = {name for cls in module.cls.line() for name in cls.names} | set(module.attributes)
        is_known = is_torch_module(module.cls) and not any(
            parent.opaque for parent in module.cls.line()
        )
        return is_known and names.isdisjoint({"forward", "__call__", "__getattr__"})


def _with_earlier(partial: LibraryResult, given: Arguments) -> Arguments:
    """Return the arguments of a call of a ``functools.partial``, including the bound ones."""
    positional = [*partial.arguments[1:], *given.positional]
    return Arguments(positional, {**partial.keywords, **given.keywords}, given.complete)
