"""Expressions and their values."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import replace

from epochzero.check.program import python_errors
from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import Box, Function, LibraryResult, Scope, V
from epochzero.check.program.lookups import Lookups
from epochzero.check.program.operations import Operations
from epochzero.check.program.texts import concat, shown
from epochzero.check.program.values import Anything, Constant, External, Items

MOST_UNROLLED = 16
"""Limit of the known items of a comprehension or loop that are walked one by one."""
_LONGEST_FORMAT = 8
"""Limit of the length of a format specification that is tried, so that its width is small."""
_BUILTINS = frozenset(dir(builtins))


class Expressions(Lookups, Operations):
    """Evaluate expressions."""

    def evaluate(self, node: ast.expr) -> V:
        """Evaluate an expression and record the events in it."""
        self.step()
        found = _EVALUATORS.get(type(node))
        return Anything("an expression of a newer Python") if found is None else found(self, node)

    # -- Names --------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> V:
        return self.named(node.id, node)

    def named(self, name: str, node: ast.AST) -> V:
        """Look up a name in the current scope."""
        scope: Scope | None = self.frame.scope
        assert scope is not None
        if name in scope.elsewhere:
            scope = scope.elsewhere[name]
        start = scope
        while scope is not None:
            if name in scope.names and (scope is start or not scope.is_class):
                return scope.names[name]
            if name in scope.own:
                return self._unbound(name, scope, node)
            scope = scope.parent
        if name in _BUILTINS:
            return External(f"builtins.{name}")
        return Anything(f"{name} is not known")

    def _unbound(self, name: str, scope: Scope, node: ast.AST) -> V:
        """Look up a name that its scope binds elsewhere, but on no path that leads here."""
        if scope.parent is None:
            if name in _BUILTINS:
                return External(f"builtins.{name}")
            return self.fails("name", NameError, f"name '{name}' is not defined", node)
        if scope is not self.frame.scope:
            return Anything(f"{name} is not known")
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        return self.fails("name", UnboundLocalError, message, node)

    def _constant(self, node: ast.Constant) -> V:
        if node.value is Ellipsis:
            return Anything("an ellipsis")
        return self.literal(node, node.value)

    # -- Attributes and items -----------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> V:
        owner = self._owner(node.value)
        return self.attribute(owner, node.attr, node)

    def _owner(self, node: ast.expr) -> V:
        """Evaluate the owner of an attribute; in a chain of a library's names only the whole name is recorded."""
        if isinstance(node, ast.Attribute):
            owner = self._owner(node.value)
            if isinstance(owner, External):
                self.step()
                return self.external_attribute(owner, node.attr)
            return self.attribute(owner, node.attr, node)
        return self.evaluate(node)

    def _subscript(self, node: ast.Subscript) -> V:
        owner = self.evaluate(node.value)
        key = self.evaluate(node.slice)
        return self.item(owner, key, node)

    def _slice(self, node: ast.Slice) -> V:
        parts = [Constant(None) if p is None else self.evaluate(p) for p in
                 (node.lower, node.upper, node.step)]  # fmt: skip
        if all(isinstance(part, Constant) for part in parts):
            return LibraryResult("builtins.slice", tuple(parts))
        return Anything("a slice")

    # -- Texts and containers -----------------------------------------------------------------

    def _joined(self, node: ast.JoinedStr) -> V:
        parts: list[str | V] = []
        for operand in node.values:
            if isinstance(operand, ast.Constant):
                parts.append(str(operand.value))
            elif isinstance(operand, ast.FormattedValue):
                parts.append(self._formatted(operand))
        value = concat(parts)
        return Constant(value.value, self.place(node)) if isinstance(value, Constant) else value

    def _formatted(self, node: ast.FormattedValue) -> str | V:
        value = self.evaluate(node.value)
        if node.format_spec is None:
            return shown(value, node.conversion)
        spec = self.evaluate(node.format_spec)
        if isinstance(spec, Constant):
            if isinstance(value, (Constant, Box)) and node.conversion == -1:
                self._format(value, str(spec.value), node)
            return shown(value, node.conversion, str(spec.value))
        return Anything("formatted")

    def _format(self, value: Constant | Box, spec: str, node: ast.FormattedValue) -> None:
        """Record a format specification that does not fit its value."""
        if isinstance(value, Constant):
            try:
                format(value.value, spec if len(spec) < _LONGEST_FORMAT else "")
            except (TypeError, ValueError) as error:
                kind = "none" if python_errors.is_none(value) else "type"
                self.fails(kind, type(error), str(error), node)
        elif spec and value.mirrors is None:
            message = f"unsupported format string passed to {value.kind}.__format__"
            self.fails("type", TypeError, message, node)

    def _formatted_alone(self, node: ast.FormattedValue) -> V:
        return concat([self._formatted(node)])

    def _container(self, node: ast.Tuple | ast.List | ast.Set) -> V:
        kind = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}[type(node)]
        values: list[V] = []
        complete = True
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items, whole, _ = self.iterated(self.evaluate(element.value), element)
                values += items
                complete = complete and whole
            else:
                values.append(self.evaluate(element))
        return Box.of(kind, values, complete=complete)

    def _dictionary(self, node: ast.Dict) -> V:
        found: list[tuple[V, V]] = []
        complete = True
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                whole, pairs = _pairs(self.evaluate(value_node))
                complete = complete and whole
            else:
                pairs = [(self.evaluate(key_node), self.evaluate(value_node))]
            found += pairs
        return _dictionary_of(found, complete)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> V:
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        values: list[V] = []
        complete = self._rounds(node.generators, lambda _: values.append(self.evaluate(node.elt)))
        return Box.of(kind, values, complete=complete)

    def _dictionary_comprehension(self, node: ast.DictComp) -> V:
        pairs: list[tuple[V, V]] = []

        def put(is_there: bool) -> None:
            pair = self.evaluate(node.key), self.evaluate(node.value)
            if is_there:
                pairs.append(pair)

        return _dictionary_of(pairs, complete=self._rounds(node.generators, put))

    def _rounds(
        self, generators: Sequence[ast.comprehension], body: Callable[[bool], None]
    ) -> bool:
        """Walk a comprehension.

        Args:
            generators: its loops.
            body: called in each iteration, with whether its conditions are known to hold.

        Returns:
            whether all iterations are known.
        """
        scope = self.frame.scope
        inner = Scope({}, scope.module, scope)
        first = self.evaluate(generators[0].iter)
        self.frame.scope = inner
        try:
            with self.on(replace(self.path, loops=self.path.loops + 1)):
                return self._generate(generators, first, body)
        finally:
            self.frame.scope = scope

    def _generate(
        self,
        generators: Sequence[ast.comprehension],
        over: V,
        body: Callable[[bool], None],
        is_sure: bool = True,
    ) -> bool:
        node, *rest = generators
        items, complete, some = self.iterated(over, node.iter)
        if not complete or len(items) > MOST_UNROLLED:
            items, complete = items[:1] or [Anything("an item of what is not known")], False
        with self.under(certain=some):
            for item in items:
                self.assign(node.target, item)
                holds = [self.truth(self.evaluate(test)) for test in node.ifs]
                if False in holds:
                    continue
                known = None not in holds
                with self.under(certain=known):
                    complete = complete and known
                    if rest:
                        over = self.evaluate(rest[0].iter)
                        inner = self._generate(rest, over, body, is_sure and known)
                        complete = inner and complete
                    else:
                        body(is_sure and known)
        return complete

    # -- Functions and calls ------------------------------------------------------------------

    def _lambda(self, node: ast.Lambda) -> V:
        return self.function(node, "<lambda>")

    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str
    ) -> Function:
        """Define a function and evaluate its defaults."""
        inside = f"{self.frame.name}." if self.frame.name else ""
        return Function(
            node,
            f"{self.module.name}.{inside}{name}",
            self.frame.scope,
            tuple(self.evaluate(default) for default in node.args.defaults),
            tuple(
                None if default is None else self.evaluate(default)
                for default in node.args.kw_defaults
            ),
        )

    def _call(self, node: ast.Call) -> V:
        if isinstance(node.func, ast.Attribute):
            owner = self._owner(node.func.value)
            callee = self.attribute(owner, node.func.attr, node.func, called=True)
        else:
            callee = self.evaluate(node.func)
        return self.apply(callee, self._arguments(node), node)

    def _arguments(self, node: ast.Call) -> Arguments:
        given = Arguments()
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                items, whole, _ = self.iterated(self.evaluate(argument.value), argument)
                given.positional += items
                given.complete = given.complete and whole
            else:
                given.positional.append(self.evaluate(argument))
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                given.keywords[keyword.arg] = value
                continue
            whole, pairs = _pairs(value)
            given.complete = given.complete and whole
            for key, one_value in pairs:
                if isinstance(key, Constant) and isinstance(key.value, str):
                    given.keywords[key.value] = one_value
                else:
                    given.complete = False
        return given

    def _starred(self, node: ast.Starred) -> V:
        self.evaluate(node.value)
        return Anything("unpacked")

    def _walrus(self, node: ast.NamedExpr) -> V:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _await(self, node: ast.Await) -> V:
        return self.evaluate(node.value)

    def _yield(self, node: ast.Yield) -> V:
        value = Constant(None) if node.value is None else self.evaluate(node.value)
        self.frame.yields.append(value)
        if self._is_conditional():
            self.frame.all_yielded = False
        return Anything("what is sent to a generator")

    def _is_conditional(self) -> bool:
        """Whether the code runs under other conditions than the call of its function."""
        start = self.frame.start
        return (self.path.certain, self.path.loops) != (start.certain, start.loops)

    def _yield_from(self, node: ast.YieldFrom) -> V:
        items, complete, _ = self.iterated(self.evaluate(node.value), node)
        self.frame.yields += items
        if not complete or self._is_conditional():
            self.frame.all_yielded = False
        return Anything("what a generator returns")


_EVALUATORS: dict[type[ast.expr], Callable[..., V]] = {
    ast.Name: Expressions._name,
    ast.Constant: Expressions._constant,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.all_or_any,
    ast.Compare: Expressions.compare,
    ast.IfExp: Expressions.choice,
    ast.JoinedStr: Expressions._joined,
    ast.FormattedValue: Expressions._formatted_alone,
    ast.Tuple: Expressions._container,
    ast.List: Expressions._container,
    ast.Set: Expressions._container,
    ast.Dict: Expressions._dictionary,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dictionary_comprehension,
    ast.Lambda: Expressions._lambda,
    ast.Call: Expressions._call,
    ast.Starred: Expressions._starred,
    ast.NamedExpr: Expressions._walrus,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
}


def _dictionary_of(pairs: Sequence[tuple[V, V]], complete: bool) -> Box:
    """Create a dictionary; equal constants are one key wherever they are written."""
    entries: dict[Constant, V] = {}
    others: list[tuple[V, V]] = []
    for key, value in pairs:
        if isinstance(key, Constant):
            entries[Constant(key.value)] = value
        else:
            others.append((key, value))
    unique = [*entries.items(), *others]
    return Box.of("dict", (v for _, v in unique), (k for k, _ in unique), complete)


def _pairs(value: V) -> tuple[bool, list[tuple[V, V]]]:
    """Return whether all entries of a dictionary are known, and the known ones."""
    if isinstance(value, (Box, Items)) and value.kind == "dict":
        content = value.content if isinstance(value, Box) else value
        return content.complete, list(zip(content.keys, content.values, strict=True))
    return False, []
