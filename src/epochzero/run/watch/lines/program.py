"""A file of the user's source, and where a value in it comes from: parsed, never run.

A value is a `Use`: an expression, with what is taken of it. `ParsedFile.behind` goes one step back: from a name to
what it was last given, from a parameter to the argument of a call, from an element of a loader to the data set,
from what a function returns to its ``return``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from epochzero.run.watch.model import SourceLine

EACH = "*"
"""In a `Use`: of what is iterated over, an item."""
MOST_STEPS = 60
_LARGEST = 2_000_000
Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
_PASSING = ("data", "grad", "T", "mT", "shape", "values", "weight", "bias")
"""Attributes that every tensor or layer has: an assignment to one of that name says nothing."""
_PARTS = ("split", "chunk", "unbind", "batch")
"""Methods whose items are parts of what they were called on."""


@dataclass(frozen=True, slots=True)
class Use:
    """A value.

    Attributes:
        node: the expression; or a statement that changed the value in place.
        path: what of it is taken: numbers of elements, `EACH` for an item.
        calls: by which call a function was entered, and which item a comprehension is at, by their nodes.
        changes: of a statement, the name or attribute that it changed.
    """

    node: ast.AST
    path: tuple[int | str, ...] = ()
    calls: Mapping[ast.AST, ast.Call | int] = field(default_factory=dict)
    changes: ast.Name | ast.Attribute | None = None


@dataclass(frozen=True, slots=True)
class _Store:
    """A statement that gives a name or an attribute a value, or changes it in place."""

    node: ast.AST
    target: ast.Name | ast.Attribute
    value: ast.expr | None
    path: tuple[int | str, ...] = ()


@lru_cache(maxsize=64)
def parsed(path: str) -> ParsedFile | None:
    """The file; None where it cannot be read or is no Python."""
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        text = file.read_text(encoding="utf-8")
        return ParsedFile(path, ast.parse(text), tuple(text.splitlines()))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def names_in(*nodes: ast.AST, attributes: bool = False) -> set[str]:
    """The names that an expression or a statement reads or stores; with attributes, theirs too."""
    kinds = (ast.Name, ast.Attribute) if attributes else ast.Name
    return {last_name(part) for node in nodes for part in ast.walk(node) if isinstance(part, kinds)}


def last_name(node: ast.AST) -> str:
    """``lr`` of ``lr``, ``args.lr`` and ``config["lr"]``; of a call that of its function."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


class ParsedFile:
    """A parsed file.

    Args:
        path: of the file.
        tree: of its source.
        lines: their text.
    """

    def __init__(self, path: str, tree: ast.Module, lines: tuple[str, ...]) -> None:
        self.path = path
        self.tree = tree
        self.lines = lines
        self.nodes = tuple(ast.walk(tree))
        self._parents = {
            child: parent for parent in self.nodes for child in ast.iter_child_nodes(parent)
        }

    # Where things are -------------------------------------------------------------------------------

    def place(self, node: ast.AST) -> SourceLine:
        """The line of a node."""
        number: int = getattr(node, "lineno", 1)
        text = self.lines[number - 1] if number <= len(self.lines) else ""
        return SourceLine(self.path, number, text.strip()[:200])

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node lies in, the innermost first."""
        while (parent := self._parents.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> Function | None:
        """The function that a node lies in."""
        return next((n for n in self.around(node) if isinstance(n, Function)), None)

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The class that a node lies in."""
        return next((n for n in self.around(node) if isinstance(n, ast.ClassDef)), None)

    def calls(self, line: int) -> list[ast.Call]:
        """The calls that a line belongs to, the innermost last."""
        return [call for call in self.all_calls if call.lineno <= line <= (call.end_lineno or 0)]

    def class_at(self, line: int) -> ast.ClassDef | None:
        """The class that a line lies in."""
        classes = self._classes.values()
        return next((c for c in classes if c.lineno <= line <= (c.end_lineno or 0)), None)

    @cached_property
    def _functions(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for node in self.nodes:
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def function_names(self) -> frozenset[str]:
        """Of all functions and classes of the file."""
        return frozenset((*self._functions, *self._classes))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names and attributes that the file uses."""
        used = (last_name(n) for n in self.nodes if isinstance(n, ast.Name | ast.Attribute))
        return tuple(dict.fromkeys(used))

    @cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}

    @cached_property
    def _imported(self) -> set[str]:
        return {
            (name.asname or name.name).partition(".")[0]
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in node.names
        }

    def defined(self, call: ast.Call) -> Function | None:
        """The function of this file that a call calls; of a class its ``__init__``."""
        name = last_name(call.func)
        if isinstance(call.func, ast.Name) and name in self._classes:
            return self.method(self._classes[name], "__init__")
        of_class = isinstance(call.func, ast.Attribute)
        found = [f for f in self._functions.get(name, ()) if self._is_method(f) == of_class]
        return found[0] if len(found) == 1 else None

    def class_of(self, call: ast.Call) -> ast.ClassDef | None:
        """The class of this file that a call makes an object of."""
        return self._classes.get(last_name(call.func)) if isinstance(call.func, ast.Name) else None

    @staticmethod
    def method(owner: ast.ClassDef, name: str) -> Function | None:
        """A method of a class."""
        methods = (node for node in owner.body if isinstance(node, Function))
        return next((method for method in methods if method.name == name), None)

    def calls_of(self, function: Function) -> Iterator[ast.Call]:
        """The calls of a function of this file, in their order."""
        owner = self.owner(function)
        is_made = owner is not None and function.name == "__init__"
        name = owner.name if owner is not None and is_made else function.name
        for node in self.all_calls:
            if last_name(node.func) == name and self.function(node) is not function:
                yield node

    @cached_property
    def all_calls(self) -> list[ast.Call]:
        """The calls of the file, in their order."""
        found = [node for node in self.nodes if isinstance(node, ast.Call)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def _is_method(self, function: Function) -> bool:
        return isinstance(self._parents.get(function), ast.ClassDef)

    def is_of_library(self, node: ast.AST) -> bool:
        """Whether an expression begins with the name of a module, as in ``torch.nn.Linear``."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and (
            node.id in self._imported or hasattr(builtins, node.id)
        )

    # Where values come from -------------------------------------------------------------------------

    def lineage(self, use: Use) -> Iterator[Use]:
        """A value as it was before and before that, back to what it was made of."""
        seen: set[tuple[ast.AST, tuple[int | str, ...]]] = set()
        found: Use | None = use
        while found is not None and len(seen) < MOST_STEPS:
            if (found.node, found.path) in seen:
                return
            seen.add((found.node, found.path))
            yield found
            found = self.behind(found)

    def behind(self, use: Use) -> Use | None:
        """One step back; None if unknown."""
        node = use.node
        if use.changes is not None:
            return self._before(use.changes, use)
        if isinstance(node, ast.Name):
            return self._before(node, use)
        if isinstance(node, ast.Attribute):
            return self._before(node, use) or self._of_object(node, use)
        if isinstance(node, ast.Subscript):
            return self._of_subscript(node, use)
        if isinstance(node, ast.Call):
            return self._of_call(node, use)
        if isinstance(node, ast.Tuple | ast.List):
            return self._of_tuple(node, use)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self._of_comprehension(node, use)
        parts = (
            [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
        )
        named = (
            part
            for part in parts
            if isinstance(part, ast.expr) and any(isinstance(n, ast.Name) for n in ast.walk(part))
        )
        following = next(named, None)
        return replace(use, node=following) if following is not None else None

    def _before(self, name: ast.Name | ast.Attribute, use: Use) -> Use | None:
        """What a name or attribute was given last before, or how it was changed."""
        store = self._last_store(name, use.node)
        if store is None:
            return self._of_parameter(name, use) if isinstance(name, ast.Name) else None
        if store.value is None:
            return Use(store.node, use.path, use.calls, store.target)
        field_of = self._parents.get(store.node)
        given = self._given(field_of, store.target) if isinstance(field_of, ast.ClassDef) else None
        item = use.calls.get(store.node)
        path = (item, *store.path[1:]) if isinstance(item, int) else store.path
        return Use(given or store.value, (*path, *use.path), use.calls)

    def _last_store(self, name: ast.Name | ast.Attribute, at: ast.AST) -> _Store | None:
        stores = self._stores.get(_key(name), [])
        if isinstance(name, ast.Attribute):
            return self._last_of_attribute(name, at, stores)
        for node in self.around(at):
            if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
                for store in stores:
                    if store.node in node.generators and not _is_in(at, node.generators[0].iter):
                        return store
        own = self._scope(at)
        for scope in (own, *(n for n in self.around(own) if isinstance(n, _SCOPES))):
            here = [
                s
                for s in stores
                if self._scope(s.node) is scope and not isinstance(s.node, ast.comprehension)
            ]
            earlier = [s for s in here if scope is not own or self._is_before(s, at)]
            if earlier:
                return earlier[-1]
            if name.id in _parameters(scope):
                return None
            if here:
                return here[-1]
        return None

    def _last_of_attribute(
        self, name: ast.Attribute, at: ast.AST, stores: list[_Store]
    ) -> _Store | None:
        is_own = isinstance(name.value, ast.Name) and name.value.id == "self"
        if is_own:
            stores = [store for store in stores if self.owner(store.node) is self.owner(at)]
        elif name.attr in _PASSING:
            return None
        own = self._scope(at)
        here = [store for store in stores if self._scope(store.node) is own]
        earlier = [store for store in here if self._is_before(store, at)]
        if earlier:
            return earlier[-1]
        others = [store for store in stores if store not in here]
        return others[-1] if others else None

    def _is_before(self, store: _Store, at: ast.AST) -> bool:
        """Whether a value was stored before a node of the same function, and is no part of it."""
        if _position(store.target) >= _position(at):
            return False
        if isinstance(store.node, ast.For | ast.AsyncFor | ast.withitem):
            return store.value is None or not _is_in(at, store.value)
        return not _is_in(at, store.node)

    def _scope(self, node: ast.AST) -> ast.AST:
        return next((n for n in self.around(node) if isinstance(n, _SCOPES)), self.tree)

    @cached_property
    def _stores(self) -> dict[str, list[_Store]]:
        found: dict[str, list[_Store]] = {}
        for node in self.nodes:
            for store in _stored(node):
                target = store.target
                of_class = isinstance(self._parents.get(node), ast.ClassDef)
                key = f".{last_name(target)}" if of_class else _key(target)
                found.setdefault(key, []).append(store)
        for stores in found.values():
            stores.sort(key=lambda store: _position(store.target))
        return found

    def _given(self, owner: ast.ClassDef, name: ast.expr) -> ast.expr | None:
        """What objects of a class were made with, instead of what its body says."""
        made = (call for call in self.all_calls if last_name(call.func) == owner.name)
        return next(
            (v for call in made if (v := argument(call, last_name(name))) is not None), None
        )

    def _of_parameter(self, name: ast.Name, use: Use) -> Use | None:
        functions = (node for node in self.around(use.node) if isinstance(node, Function))
        function = next((node for node in functions if name.id in _parameters(node)), None)
        if function is None:
            return None
        names = [posonlyarg.arg for posonlyarg in (*function.args.posonlyargs, *function.args.args)]
        position = names.index(name.id) if name.id in names else None
        if position is not None and self._is_method(function):
            position -= 1
        entered = use.calls.get(function)
        calls = [entered] if isinstance(entered, ast.Call) else list(self.calls_of(function))
        for call in calls:
            value = argument(call, name.id, position)
            if value is not None:
                return Use(value, use.path, {**use.calls, function: call})
        default = _default(function, name.id)
        return Use(default, use.path, use.calls) if default is not None else None

    def _of_object(self, node: ast.Attribute, use: Use) -> Use | None:
        return None if self.is_of_library(node.value) else replace(use, node=node.value)

    @staticmethod
    def _of_subscript(node: ast.Subscript, use: Use) -> Use:
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        path = (index, *use.path) if type(index) is int else use.path
        return replace(use, node=node.value, path=path)

    @staticmethod
    def _of_tuple(node: ast.Tuple | ast.List, use: Use) -> Use | None:
        if not node.elts:
            return None
        first, *rest = use.path or (EACH,)
        number = first if isinstance(first, int) and first < len(node.elts) else 0
        return replace(use, node=node.elts[number], path=tuple(rest))

    @staticmethod
    def _of_comprehension(node: ast.ListComp | ast.GeneratorExp, use: Use) -> Use:
        first, *rest = use.path or (EACH,)
        calls = {**use.calls, node.generators[0]: first} if isinstance(first, int) else use.calls
        return replace(use, node=node.elt, path=tuple(rest), calls=calls)

    def _of_call(self, call: ast.Call, use: Use) -> Use | None:
        name = last_name(call.func)
        first, rest = (use.path[0], use.path[1:]) if use.path else (None, ())
        given = [node for node in call.args if not isinstance(node, ast.Starred)]
        if name == "enumerate" and len(rest) and first == EACH:
            return Use(given[0], (EACH, *rest[1:]), use.calls) if rest[0] == 1 and given else None
        if name == "zip" and first == EACH and rest and isinstance(rest[0], int):
            return (
                Use(given[rest[0]], (EACH, *rest[1:]), use.calls) if rest[0] < len(given) else None
            )
        if name == "TensorDataset" and first == EACH and rest and isinstance(rest[0], int):
            return Use(given[rest[0]], rest[1:], use.calls) if rest[0] < len(given) else None
        if name == "train_test_split" and isinstance(first, int) and first // 2 < len(given):
            return Use(given[first // 2], rest, use.calls)
        if name == "random_split" and given:
            return Use(given[0], rest, use.calls)
        made = self.class_of(call)
        function = self._item(made) if made is not None and first == EACH else self.defined(call)
        if function is not None and function.name != "__init__":
            return self._returned(function, call, made, use)
        return self._through(call, use)

    @staticmethod
    def _item(owner: ast.ClassDef) -> Function | None:
        """What gives an item of a data set."""
        return ParsedFile.method(owner, "__getitem__") or ParsedFile.method(owner, "__iter__")

    def _returned(
        self, function: Function, call: ast.Call, made: ast.ClassDef | None, use: Use
    ) -> Use | None:
        begun = self.method(made, "__init__") if made is not None else None
        calls = {**use.calls, begun or function: call}
        inside = [node for node in ast.walk(function) if self.function(node) is function]
        yielded = any(isinstance(node, ast.Yield) for node in inside)
        ends = [node for node in inside if isinstance(node, ast.Yield if yielded else ast.Return)]
        value = getattr(max(ends, key=_position), "value", None) if ends else None
        if value is None:
            return None
        an_item = use.path[:1] == (EACH,) and (yielded or function.name == "__getitem__")
        return Use(value, use.path[1:] if an_item else use.path, calls)

    def _through(self, call: ast.Call, use: Use) -> Use | None:
        """What an unknown function was given: the object of a method, else the first argument."""
        function = call.func
        position = 1 if last_name(function) == "where" and len(call.args) > 1 else 0
        value = argument(call, "dataset", position)
        if isinstance(value, ast.Starred):
            value = value.value
        method_of = function.value if isinstance(function, ast.Attribute) else None
        if (
            method_of is not None
            and not self.is_of_library(method_of)
            and (value is None or not self._is_tool(method_of))
        ):
            path = use.path[1:] if last_name(function) in _PARTS else use.path
            return Use(method_of, path, use.calls)
        return Use(value, use.path, use.calls) if value is not None else None

    def _is_tool(self, node: ast.expr) -> bool:
        """Whether a value works on others, as a scaler or a random generator does."""
        names = ast.Name | ast.Attribute
        made = next((u for u in self.lineage(Use(node)) if not isinstance(u.node, names)), None)
        is_made = made is not None and isinstance(made.node, ast.Call) and not made.path
        maker = last_name(made.node) if made is not None and is_made else ""
        return maker[:1].isupper() or "rng" in maker or "generator" in last_name(node)


def argument(call: ast.Call, keyword: str, position: int | None = None) -> ast.expr | None:
    """What a call gives for a parameter."""
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    if position is not None and 0 <= position < len(call.args):
        return call.args[position]
    return None


def _stored(node: ast.AST) -> Iterator[_Store]:
    """What a statement gives values to, or changes in place."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _targets(node, target, node.value, ())
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _targets(node, node.target, node.value, ())
    elif isinstance(node, ast.AugAssign):
        yield from _targets(node, node.target, None, ())
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield from _targets(node, node.target, node.iter, (EACH,))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _targets(node, node.optional_vars, node.context_expr, ())
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function, given = node.value.func, node.value.args
        name = last_name(function)
        if name == "shuffle" and given:
            yield from _targets(node, given[0], None, ())
        elif isinstance(function, ast.Attribute) and name.endswith("_"):
            yield from _targets(node, function.value, None, ())


def _targets(
    node: ast.AST, target: ast.expr, value: ast.expr | None, path: tuple[int | str, ...]
) -> Iterator[_Store]:
    if isinstance(target, ast.Name | ast.Attribute):
        yield _Store(node, target, value, path)
    elif isinstance(target, ast.Subscript):
        yield from _targets(node, target.value, None, ())
    elif isinstance(target, ast.Tuple | ast.List):
        for number, element in enumerate(target.elts):
            yield from _targets(node, element, value, (*path, number))


def _key(name: ast.AST) -> str:
    return f".{name.attr}" if isinstance(name, ast.Attribute) else last_name(name)


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _is_in(node: ast.AST, whole: ast.AST) -> bool:
    return any(part is node for part in ast.walk(whole))


def _parameters(scope: ast.AST) -> set[str]:
    if not isinstance(scope, Function | ast.Lambda):
        return set()
    found = scope.args
    return {posonlyarg.arg for posonlyarg in (*found.posonlyargs, *found.args, *found.kwonlyargs)}


def _default(function: Function, name: str) -> ast.expr | None:
    found = function.args
    positional = [posonlyarg.arg for posonlyarg in (*found.posonlyargs, *found.args)]
    with_default = positional[len(positional) - len(found.defaults) :]
    pairs = [*zip(with_default, found.defaults, strict=True)]
    pairs += [(n.arg, d) for n, d in zip(found.kwonlyargs, found.kw_defaults, strict=True) if d]
    return dict(pairs).get(name)
