"""Definitions of functions and classes."""

from __future__ import annotations

import ast

from epochzero.check.program.assignments import Storing
from epochzero.check.program.construction import misplaced_field
from epochzero.check.program.frames import Arguments, CallFrame, Flow
from epochzero.check.program.heap import (
    BoundFunction,
    Class,
    Function,
    LibraryResult,
    Member,
    Scope,
    V,
    maker,
)
from epochzero.check.program.values import External

_TRANSPARENT = frozenset(
    """
    staticmethod classmethod property cached_property abstractmethod abstractproperty
    contextmanager asynccontextmanager lru_cache cache wraps override final no_grad
    inference_mode enable_grad autocast record compile setter deleter
    """.split()
)
"""Decorators that do not change the parameters and the result of a function."""


class Definitions(Storing):
    """Define functions and classes."""

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        """``def``: call the decorators and bind the function."""
        function: Function = self.function(node, node.name)
        values = [self.evaluate(decorator) for decorator in node.decorator_list]
        function.decorators = values
        for decorator, value in zip(reversed(node.decorator_list), reversed(values), strict=True):
            self._decorate(function, decorator, value)
        last = node.decorator_list[0] if node.decorator_list else None
        is_setter = isinstance(last, ast.Attribute) and last.attr in ("setter", "deleter")
        self.store_name(f"{node.name}.{last.attr}" if is_setter else node.name, function)  # type: ignore[union-attr]
        return Flow.NEXT

    def _decorate(self, function: Function, decorator: ast.expr, value: V) -> None:
        """Call a decorator, but bind the function itself."""
        self._add_command(function, decorator)
        last = maker(value).removesuffix("()").rpartition(".")[2]
        if isinstance(value, External):
            if last in ("staticmethod", "classmethod"):
                function.kind = last
            elif last in ("property", "cached_property"):
                function.kind = "property"
        if isinstance(value, (Function, BoundFunction)):
            result = self.apply(value, Arguments([function]), decorator)
            function.is_changed = function.is_changed or result is not function
        elif last not in _TRANSPARENT:
            function.is_changed = True
        owner = value.owner if isinstance(value, Member) else getattr(value, "receiver", None)
        if isinstance(owner, LibraryResult):
            self.registered.setdefault(owner, []).append(function)

    def _add_command(self, function: Function, decorator: ast.expr) -> None:
        """``@group.command()``: add the function to the commands of a click group."""
        call = decorator if isinstance(decorator, ast.Call) else None
        written = call.func if call is not None else decorator
        if not isinstance(written, ast.Attribute) or written.attr not in ("command", "group"):
            return
        group = self.evaluate(written.value)
        if isinstance(group, Function):
            name = function.node.name.replace("_", "-") if not isinstance(
                function.node, ast.Lambda) else ""  # fmt: skip
            if call is not None and call.args and isinstance(call.args[0], ast.Constant):
                name = str(call.args[0].value)
            group.commands[name] = function

    def define_class(self, node: ast.ClassDef) -> int:
        """``class``: walk the body and bind the class."""
        bases = tuple(self.evaluate(base) for base in node.bases)
        opaque = any(
            ast.unparse(keyword.value).rpartition(".")[2] != "ABCMeta" for keyword in node.keywords
        )
        data = False
        own: list[V] = []
        for decorator in node.decorator_list:
            value = self.evaluate(decorator)
            if isinstance(value, (Function, BoundFunction)):
                own.append(value)
                continue
            name = maker(value).removesuffix("()").rpartition(".")[2]
            data = data or name in ("dataclass", "define", "attrs", "frozen", "s")
            opaque = opaque or name != "dataclass"
        scope = Scope({}, self.module, self.frame.scope, is_class=True)
        inside = f"{self.frame.name}." if self.frame.name else ""
        cls = Class(
            f"{self.module.name}.{inside}{node.name}", node, self.module, bases, scope.names
        )
        cls.opaque = opaque
        inherited = any(parent.is_data for parent in cls.line())
        cls.is_data = data or inherited or any(n.endswith("NamedTuple") for n in cls.externals())
        outer = self.frame
        name = f"{outer.name}.{node.name}" if outer.name else node.name
        self.frame = CallFrame(scope, name, outer.via, outer.phase, outer.firm)
        try:
            self.execute(node.body)
        finally:
            self.frame = outer
        for value in scope.names.values():
            if isinstance(value, Function) and value.owner is None:
                value.owner = cls
        for decorator, value in zip(reversed(node.decorator_list), reversed(own), strict=False):
            given = self.apply(value, Arguments([cls]), decorator)
            cls.opaque = cls.opaque or given is not cls
        if field := misplaced_field(cls):
            message = f"non-default argument '{field}' follows default argument"
            self.fails("arguments", TypeError, message, (*node.decorator_list, node)[0])
        self.store_name(node.name, cls)
        return Flow.NEXT
