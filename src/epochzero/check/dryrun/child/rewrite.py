"""Gives each loop of a user's module a limiter, and leaves everything else as it was written.

    for epoch in range(epochs):                __l__ = __epochzero__.loop(line, end, "whole", tests)
        train(epoch)                  ->       for epoch in __l__.over(range(epochs)):
        step += 1                                  if __l__.skipped: step += 1 * __l__.skipped
        if epoch % 10 == 0: save()                 ...

The tests in a loop's body that depend on its variable, or on a counter that it advances, become
functions of the coming value, so that the limiter (`loops`) knows which iterations matter. A counter
that only loops within it advance, such as the steps of an episode, goes on by its mean growth. All
nodes keep the user's lines.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import TypeVar

RUNTIME = "__epochzero__"
_SKIPS = "__skips__"
_PURE_CALLS = frozenset({"abs", "int", "len", "max", "min", "round"})
_PURE = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Name, ast.Subscript,
    ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.operator, ast.unaryop,
)  # fmt: skip
_SCOPES = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Lambda)
_DEEPEST = 4
_ADDING = frozenset({"append", "extend"})
_TAKING = frozenset({"clear", "pop", "popleft", "remove"})

_Target = ast.Name | ast.Attribute | ast.Subscript
_Node = TypeVar("_Node", bound=ast.AST)


def rewritten(tree: ast.Module) -> ast.Module:
    """The module with its loops limited."""
    module: ast.Module = _Rewriter().visit(tree)
    return ast.fix_missing_locations(module)


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self._loops = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Only the functions in it: what a loop in its body binds would become an attribute."""
        for function in node.body:
            if isinstance(function, _SCOPES):
                self.visit(function)
        return node

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """``for`` runs over what the limiter lets through."""
        if _yields(node):
            return [self._deeper(node)]
        first = isinstance(node.target, (ast.Tuple, ast.List)) and bool(node.target.elts)
        variable = node.target.elts[0] if first else node.target  # type: ignore[attr-defined]
        name = variable.id if isinstance(variable, ast.Name) else ""
        limiter, head = self._head(node, name, "first" if first else "whole", _tests(node, name))
        self._deeper(node)
        node.iter = _call(limiter, "over", [_enumerated(node.iter)])
        return _located([head, node], node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        """``while`` continues as long as the limiter and the user's test do."""
        if _yields(node):
            return [self._deeper(node)]
        endless = isinstance(node.test, ast.Constant)
        own = [] if endless or not _pure(node.test) else [node.test]
        kind = "endless" if endless else "tested" if own else "while"
        limiter, head = self._head(node, "", kind, [*own, *_tests(node, "")])
        self._deeper(node)
        node.test = ast.BoolOp(ast.And(), [_call(limiter, "goes_on", []), node.test])
        return _located([head, node], node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """A comprehension over batches is shortened too."""
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """As a list."""
        return self._comprehension(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """The loop of one."""
        self.generic_visit(node)
        if not node.is_async:
            self._loops += 1
            place = [node.iter.lineno, node.iter.end_lineno, self._loops]
            loop = _call(RUNTIME, "comprehension", _placed(*place))
            method = ast.Attribute(loop, "over", ast.Load())
            node.iter = _at(ast.Call(method, [_enumerated(node.iter)], []), node.iter)
        return node

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> ast.AST:
        """One item an iteration: those that are left out can be made up for."""
        self.generic_visit(node)
        (loop, *others) = node.generators
        if others or loop.ifs or loop.is_async:
            return node
        return _at(_call(RUNTIME, "filled", [*_placed(self._loops), node]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``map`` of one function over one iterable, as a comprehension."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != "map" or node.keywords:
            return node
        if len(node.args) != 2 or any(isinstance(argument, ast.Starred) for argument in node.args):
            return node
        place = _placed(node.lineno, node.end_lineno)
        return _at(_call(RUNTIME, "mapped", [*place, node.func, *node.args]), node)

    def _deeper(self, node: ast.For | ast.While) -> ast.For | ast.While:
        self.generic_visit(node)
        return node

    def _head(
        self, node: ast.For | ast.While, name: str, kind: str, tests: list[ast.expr]
    ) -> tuple[str, ast.stmt]:
        """Name and making of a limiter; the body begins by advancing the counters over what it skips."""
        self._loops += 1
        limiter = f"__epochzero_{self._loops}__"
        counters = _counters(node)
        nested = _nested_counters(node)
        functions = [_function(test, name, counters, limiter, nested) for test in tests]
        numbers = {ast.unparse(test): number for number, test in enumerate(tests)}
        conditional = [
            (counter, numbers[text])
            for counter, text in _conditional_counters(node)
            if text in numbers
        ]
        lists = [(kept, numbers[t]) for kept, t in _conditional_lists(node) if t in numbers]
        known = {ast.unparse(kept) for kept, _ in lists}
        always = [kept for kept in _added_to(node) if ast.unparse(kept) not in known]
        arguments = [
            ast.Name("__file__", ast.Load()),
            ast.Constant(node.lineno),
            ast.Constant(node.end_lineno),
            ast.Constant(kind),
            ast.Tuple(functions, ast.Load()),
            ast.Tuple([_thunk(stepped) for stepped in _stepped(node)], ast.Load()),
            ast.Tuple([_thunk(kept) for kept in always], ast.Load()),
            ast.Constant(_ends_itself(node, name)),
            ast.Tuple([ast.Constant(number) for _, number in (*conditional, *lists)], ast.Load()),
            ast.Tuple([_thunk(_loaded(counter)) for counter in nested], ast.Load()),
        ]
        made = ast.Assign([ast.Name(limiter, ast.Store())], _call(RUNTIME, "loop", arguments))
        if counters or conditional or lists or nested:
            skipped = ast.Attribute(ast.Name(limiter, ast.Load()), "skipped", ast.Load())
            advances: list[ast.stmt] = [_advance(counter, skipped) for counter in counters]
            for counter, number in conditional:
                advances.append(_advance(counter, _call(limiter, "times", [ast.Constant(number)])))
            for number, target in enumerate(nested):
                grown = _call(limiter, "grown", [ast.Constant(number), deepcopy(skipped)])
                advance = ast.AugAssign(deepcopy(target), ast.Add(), grown)
                advances.append(ast.If(deepcopy(grown), [advance], []))
            for kept, number in lists:
                again = _call(limiter, "add_again", [_thunk(kept), ast.Constant(number)])
                advances.append(ast.Expr(again))
            node.body.insert(0, _at(ast.If(deepcopy(skipped), advances, []), node))
        return limiter, made


def _advance(counter: ast.AugAssign, skipped: ast.expr) -> ast.stmt:
    by = ast.BinOp(deepcopy(counter.value), ast.Mult(), deepcopy(skipped))
    return ast.AugAssign(deepcopy(counter.target), counter.op, by)


def _loaded(target: _Target) -> ast.expr:
    target = deepcopy(target)
    target.ctx = ast.Load()
    return target


# -- What of a loop's body decides which iterations matter -------------------------------------


def _tests(node: ast.For | ast.While, name: str) -> list[ast.expr]:
    """Tests in the body that depend on the loop's variable or on a counter."""
    derived = _derived(node)
    counted = {ast.unparse(counter.target) for counter in _counters(node)} | ({name} - {""})
    found = []
    for inner in _inside(node):
        if isinstance(inner, (ast.If, ast.IfExp)):
            test = _inlined(inner.test, derived, _DEEPEST)
            found += [part for part in _pure_parts(test) if _mentions(part, counted)]
    return found


def _inside(node: ast.For | ast.While) -> Iterator[ast.AST]:
    """The nodes of a loop's body, without those of functions defined there."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        inner = waiting.pop()
        if not isinstance(inner, _SCOPES):
            yield inner
            waiting += ast.iter_child_nodes(inner)


def _ends_itself(node: ast.For | ast.While, name: str) -> bool:
    """Whether what happens in the loop, and not a count, decides when it ends: an episode of a game."""
    counters = [*(counter.target for counter in _counters(node)), *_nested_counters(node)]
    counted = {ast.unparse(counter) for counter in counters} | ({name} - {""})
    if isinstance(node, ast.While):
        return not isinstance(node.test, ast.Constant) and not _mentions(node.test, counted)
    is_range = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range"
    return is_range and any(
        isinstance(inner, ast.If)
        and any(isinstance(part, ast.Break) for part in inner.body)
        and not _mentions(inner.test, counted)
        for inner in _inside(node)
    )


def _yields(node: ast.For | ast.While) -> bool:
    """Whether the loop feeds a consumer, which decides how long it runs."""
    return any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in _inside(node))


def _counters(node: ast.For | ast.While | ast.If) -> list[ast.AugAssign]:
    """What each iteration of a loop, or a branch, surely advances by a constant: ``step += 1``."""
    return [
        inner
        for inner in node.body
        if isinstance(inner, ast.AugAssign)
        and isinstance(inner.op, (ast.Add, ast.Sub))
        and isinstance(inner.value, ast.Constant)
        and isinstance(inner.value.value, int)
        and isinstance(inner.target, (ast.Name, ast.Attribute))
        and _pure(inner.target)
    ]


def _nested_counters(node: ast.For | ast.While) -> list[_Target]:
    """What only the loops within a loop change, and that by constants: the steps of an episode."""
    loops = [inner for inner in _inside(node) if isinstance(inner, (ast.For, ast.While))]
    targets = {ast.unparse(c.target): c.target for loop in loops for c in _counters(loop)}
    advanced = Counter(ast.unparse(c.target) for loop in loops for c in _counters(loop))
    changed = Counter(
        ast.unparse(inner)
        for inner in _inside(node)
        if isinstance(inner, (ast.Attribute, ast.Name)) and not isinstance(inner.ctx, ast.Load)
    )
    return [targets[text] for text, count in advanced.items() if count == changed[text]]


def _conditional_counters(node: ast.For | ast.While) -> Iterator[tuple[ast.AugAssign, str]]:
    """What an iteration advances by a constant if a test holds, and the text of the test."""
    derived = _derived(node)
    for inner in node.body:
        if isinstance(inner, ast.If) and _pure(test := _inlined(inner.test, derived, _DEEPEST)):
            yield from ((counter, ast.unparse(test)) for counter in _counters(inner))


def _conditional_lists(node: ast.For | ast.While) -> Iterator[tuple[ast.expr, str]]:
    """Lists to which an iteration adds one item if a test holds, and no other line does, and the text of the test."""
    derived = _derived(node)
    only_added = {ast.unparse(kept) for kept in _added_to(node)}
    used = Counter(
        ast.unparse(inner) for inner in _inside(node) if isinstance(inner, ast.Attribute)
    )
    for inner in node.body:
        if isinstance(inner, ast.If) and _pure(test := _inlined(inner.test, derived, _DEEPEST)):
            for call in (line.value for line in inner.body if isinstance(line, ast.Expr)):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    text = ast.unparse(call.func)
                    kept = call.func.value
                    added = call.func.attr == "append" and ast.unparse(kept) in only_added
                    if added and used[text] == 1 and not used[f"{ast.unparse(kept)}.extend"]:
                        yield kept, ast.unparse(test)


def _stepped(node: ast.For | ast.While) -> list[ast.expr]:
    """What each iteration surely steps without arguments, as schedulers are: ``scheduler.step()``."""
    return [
        call.func.value
        for inner in node.body
        if isinstance(inner, ast.Expr)
        and isinstance(call := inner.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "step"
        and not (call.args or call.keywords)
        and _pure(call.func.value)
    ]


def _added_to(node: ast.For | ast.While) -> list[ast.expr]:
    """Lists to which the body only adds: ``outputs.append(...)``."""
    added: dict[str, ast.expr] = {}
    others: set[str] = set()
    for inner in _inside(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, (ast.Name, ast.Attribute)):
            if inner.attr in _ADDING:
                added[ast.unparse(inner.value)] = inner.value
            elif inner.attr in _TAKING:
                others.add(ast.unparse(inner.value))
        elif isinstance(inner, (ast.Assign, ast.Delete)):
            targets = [inner_ for target in inner.targets for inner_ in ast.walk(target)]
            others |= {ast.unparse(target) for target in targets if isinstance(target, ast.expr)}
    return [n for name, n in added.items() if name not in others and _pure(n)]


def _thunk(value: ast.expr) -> ast.expr:
    none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return _at(ast.Lambda(none, deepcopy(value)), value)


def _derived(node: ast.For | ast.While) -> dict[str, ast.expr]:
    """Names that the body gives one value, which can be distinguished from others."""
    values: dict[str, list[ast.expr]] = {}
    for inner in _inside(node):
        if isinstance(inner, ast.Assign):
            for target in inner.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        values.setdefault(name.id, []).append(inner.value)
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            values.setdefault(inner.target.id, []).extend([inner.value, inner.value])
    return {name: given[0] for name, given in values.items() if len(given) == 1 and _pure(given[0])}


def _inlined(test: ast.expr, derived: dict[str, ast.expr], depth: int) -> ast.expr:
    class Inline(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if depth and node.id in derived:
                return _inlined(derived[node.id], derived, depth - 1)
            return node

    return Inline().visit(deepcopy(test))  # type: ignore[no-any-return]


def _pure(node: ast.expr) -> bool:
    """Whether evaluating it again changes nothing."""
    return all(
        isinstance(inner, _PURE)
        or (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Name)
            and inner.func.id in _PURE_CALLS
            and not inner.keywords
        )
        for inner in ast.walk(node)
    )


def _pure_parts(test: ast.expr) -> list[ast.expr]:
    """The test, or what of it can be evaluated: of ``rank() == 0 and epoch % 5 == 0`` the second."""
    if _pure(test):
        return [test]
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in _pure_parts(value)]
    if isinstance(test, ast.UnaryOp):
        return _pure_parts(test.operand)
    return []


def _mentions(test: ast.expr, texts: set[str]) -> bool:
    return any(
        ast.unparse(inner) in texts
        for inner in ast.walk(test)
        if isinstance(inner, (ast.Name, ast.Attribute))
    )


def _function(
    test: ast.expr,
    name: str,
    counters: list[ast.AugAssign],
    limiter: str,
    nested: list[_Target],
) -> ast.expr:
    """The test as a function of the loop's coming value and of how many iterations are skipped."""

    class Ahead(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            for counter in counters:
                if isinstance(node, ast.expr) and ast.unparse(node) == ast.unparse(counter.target):
                    return _ahead(node, counter, test.lineno)
            for number, target in enumerate(nested):
                if isinstance(node, ast.expr) and ast.unparse(node) == ast.unparse(target):
                    skips = ast.Name(_SKIPS, ast.Load())
                    grown = _call(limiter, "grown", [ast.Constant(number), skips])
                    return ast.BinOp(node, ast.Add(), grown)
            return super().generic_visit(node)

    names = [ast.arg(name or "__value__"), ast.arg(_SKIPS)]
    arguments = ast.arguments(
        posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    return _at(ast.Lambda(arguments, Ahead().visit(deepcopy(test))), test)


def _ahead(node: ast.expr, counter: ast.AugAssign, line: int) -> ast.expr:
    """A counter as it will be: further by the skipped iterations, and by this one's own advance."""
    skips: ast.expr = ast.Name(_SKIPS, ast.Load())
    if counter.lineno < line:
        skips = ast.BinOp(skips, ast.Add(), ast.Constant(1))
    return ast.BinOp(node, counter.op, ast.BinOp(deepcopy(counter.value), ast.Mult(), skips))


# -- Syntax ------------------------------------------------------------------------------------


def _enumerated(iterable: ast.expr) -> ast.expr:
    """``enumerate(...)`` in it made such that its numbers can be advanced."""

    class Enumerate(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.func, ast.Name) and node.func.id == "enumerate":
                runtime = ast.Name(RUNTIME, ast.Load())
                node.args.insert(0, node.func)
                node.func = _at(ast.Attribute(runtime, "enumerated", ast.Load()), node)
            return node

    return Enumerate().visit(iterable)  # type: ignore[no-any-return]


def _placed(*numbers: int | None) -> list[ast.expr]:
    """The file, and numbers in it."""
    return [ast.Name("__file__", ast.Load()), *(ast.Constant(number) for number in numbers)]


def _call(name: str, method: str, arguments: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(name, ast.Load()), method, ast.Load()), arguments, [])


def _at(node: _Node, where: ast.AST) -> _Node:
    """The node, and what is new in it, at the user's line."""
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node


def _located(statements: list[ast.stmt], where: ast.stmt) -> list[ast.stmt]:
    for statement in statements:
        _at(statement, where)
    return statements
