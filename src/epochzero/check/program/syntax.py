"""The syntax of the job's own modules: definitions, and the meaning of names."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    # The package `program` imports this module when it is imported.
    from epochzero.check.program.model import Module, Program


Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef
_Located = TypeVar("_Located", bound=ast.stmt | ast.expr)
_Node = TypeVar("_Node", bound=ast.AST)
# Contexts and operators have no location: all nodes share them.
_PLAIN_FIELDS = {
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op",
    "ops", "simple", "type_comment",
}  # fmt: skip
_INNER_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in _PLAIN_FIELDS)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each node type that contain other nodes."""
_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})


@lru_cache(maxsize=4096)
def code_of(module: Module) -> Code:
    """The syntax of a module; computed once."""
    return Code(module)


def _first(node: ast.AST) -> str:
    """``a`` for ``a`` and ``a.b.c``; empty for other expressions."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for such an expression; empty for others."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


@dataclass(frozen=True, slots=True)
class _Binding:
    """What an import binds to a name: a module, or a name of it."""

    module: str
    name: str


class Code:
    """The nodes of a module by type, their parents, and the names that the module binds."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.parent: dict[ast.AST, ast.AST] = {}
        self._nodes: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._scopes: dict[ast.AST, tuple[ast.AST, ...]] = {}
        todo: list[ast.AST] = [] if module.tree is None else [module.tree]
        for node in todo:  # The list grows during the walk: breadth first, without recursion.
            self._nodes[type(node)].append(node)
            for field in _INNER_FIELDS[type(node)]:
                value = getattr(node, field, None)
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        self.parent[child] = node
                        todo.append(child)

    def of(self, kind: type[_Node]) -> Sequence[_Node]:
        """All nodes of a type."""
        return self._nodes.get(kind, [])  # type: ignore[return-value]

    def around_line(self, line: int, *kinds: type[_Located]) -> list[_Located]:
        """The nodes of these types that contain a line, the outermost first."""
        found = [node for kind in kinds for node in self.of(kind)]
        found = [node for node in found if node.lineno <= line <= (node.end_lineno or node.lineno)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def names(self) -> frozenset[str]:
        """All names, read or set."""
        return frozenset({node.id for node in self.of(ast.Name)})

    @cached_property
    def attributes(self) -> frozenset[str]:
        """All names after a dot, read or set."""
        return frozenset({node.attr for node in self.of(ast.Attribute)})

    @cached_property
    def stored(self) -> dict[str, int]:
        """How often the module level, or a ``global`` statement, binds a name."""
        count: dict[str, int] = {}
        for name, scope in self.bindings:
            if scope is self.module.tree:
                count[name] = count.get(name, 0) + 1
        for declared in self.of(ast.Global):
            for name in declared.names:
                count[name] = count.get(name, 0) + 2
        return count

    @cached_property
    def locals(self) -> dict[ast.AST, frozenset[str]]:
        """The names that a function, lambda or class binds, including parameters."""
        found: dict[ast.AST, set[str]] = {}
        for name, scope in self.bindings:
            found.setdefault(scope, set()).add(name)
        return {scope: frozenset(names) for scope, names in found.items()}

    @cached_property
    def bindings(self) -> list[tuple[str, ast.AST]]:
        """Names, and the scope in which they are bound."""
        found: list[tuple[str, ast.AST]] = []
        for node in self.of(ast.Name):
            if type(node.ctx) is not ast.Load:
                found.append((node.id, self.scope(node)))
        for arg in self.of(ast.arg):
            found.append((arg.arg, self.scope(arg)))
        definitions: list[Definition] = [
            *self.of(ast.FunctionDef),
            *self.of(ast.AsyncFunctionDef),
            *self.of(ast.ClassDef),
        ]
        for definition in definitions:
            found.append((definition.name, self.scope(self.parent[definition])))
        for alias in self.of(ast.alias):
            name = alias.asname or alias.name.partition(".")[0]
            found.append((name, self.scope(self.parent[alias])))
        for handler in self.of(ast.ExceptHandler):
            if handler.name:
                found.append((handler.name, self.scope(handler)))
        patterns: list[ast.MatchAs | ast.MatchStar] = [
            *self.of(ast.MatchAs),
            *self.of(ast.MatchStar),
        ]
        for pattern in patterns:
            if pattern.name:
                found.append((pattern.name, self.scope(pattern)))
        return found

    @cached_property
    def bound(self) -> Counter[tuple[str, ast.AST]]:
        """How often a scope binds a name."""
        return Counter(self.bindings)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The names that a ``global`` or ``nonlocal`` declares."""
        declared: list[ast.Global | ast.Nonlocal] = [*self.of(ast.Global), *self.of(ast.Nonlocal)]
        return frozenset(name for node in declared for name in node.names)

    @cached_property
    def set_attributes(self) -> frozenset[str]:
        """All names after a dot that are assigned or deleted."""
        return frozenset(
            node.attr for node in self.of(ast.Attribute) if not isinstance(node.ctx, ast.Load)
        )

    @cached_property
    def asked(self) -> frozenset[str]:
        """All names that conditions read."""
        conditions: list[ast.If | ast.IfExp | ast.While | ast.Assert] = [
            *self.of(ast.If),
            *self.of(ast.IfExp),
            *self.of(ast.While),
            *self.of(ast.Assert),
        ]
        tests: list[ast.expr] = [condition.test for condition in conditions]
        within = (node for test in [*tests, *self.of(ast.BoolOp)] for node in ast.walk(test))
        return frozenset(node.id for node in within if isinstance(node, ast.Name))

    @cached_property
    def assigned(self) -> dict[str, list[ast.Assign]]:
        """The plain assignments ``name = value``, by name."""
        found: dict[str, list[ast.Assign]] = {}
        for assignment in self.of(ast.Assign):
            if len(assignment.targets) == 1 and isinstance(assignment.targets[0], ast.Name):
                found.setdefault(assignment.targets[0].id, []).append(assignment)
        return found

    def scope(self, node: ast.AST) -> ast.AST:
        """The innermost function, lambda, class or module that contains or is the node."""
        while type(node) not in _SCOPES and (outer := self.parent.get(node)) is not None:
            node = outer
        return node

    def scopes(self, node: ast.AST) -> tuple[ast.AST, ...]:
        """The functions, lambdas and classes around a node, the innermost first."""
        outer = self.parent.get(node)
        while outer is not None:
            if type(outer) in _SCOPES:
                if outer not in self._scopes:
                    self._scopes[outer] = (outer, *self.scopes(outer))
                return self._scopes[outer]
            outer = self.parent.get(outer)
        return ()

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        for scope in self.scopes(node):
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                return scope
        return None

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions at module level whose names are bound once."""
        return {node.name: node for node in self._top() if not isinstance(node, ast.ClassDef)}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes at module level whose names are bound once."""
        return {node.name: node for node in self._top() if isinstance(node, ast.ClassDef)}

    def _top(self) -> Iterator[Definition]:
        for node in self.module.tree.body if self.module.tree is not None else ():
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                and self.stored.get(node.name) == 1
            ):
                yield node

    @staticmethod
    def methods(cls: ast.ClassDef) -> list[Function]:
        """The methods of a class."""
        return [
            node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    def library_bases(self, cls: ast.ClassDef) -> list[str]:
        """The dotted names of a class's bases from libraries: ``torch.nn.Module``."""
        return [name for base in cls.bases if (name := self.imported_name(base))]

    @cached_property
    def imports(self) -> dict[str, _Binding]:
        """The bindings of imports at module level, if nothing else binds the name."""
        found: dict[str, _Binding] = {}
        for node in self.of(ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                module = alias.name if alias.asname else first
                found[alias.asname or first] = _Binding(module, "")
        for taken in self.of(ast.ImportFrom):
            for alias in taken.names:
                module = self.absolute(taken)
                found[alias.asname or alias.name] = _Binding(module, alias.name)
        return found

    def absolute(self, node: ast.ImportFrom) -> str:
        """The module of a ``from``, with relative names resolved."""
        if not node.level:
            return node.module or ""
        is_package = self.module.path.endswith("__init__.py")
        parts = self.module.name.split(".")
        base = parts[: len(parts) - node.level + is_package]
        return ".".join([*base, node.module] if node.module else base)

    def imported_name(self, node: ast.AST) -> str:
        """The dotted name of an expression that refers to an import, with aliases resolved."""
        first = _first(node)
        binding = self.imports.get(first)
        if binding is None or self.is_local(node, first):
            return ""
        rest = dotted(node).partition(".")[2]
        return ".".join(part for part in (binding.module, binding.name, rest) if part)

    def is_local(self, node: ast.AST, name: str) -> bool:
        """Whether a function around a node binds a name by anything but an import."""
        return name in self._bound_within and any(
            name in self.locals.get(scope, ()) and name not in self._imported_within.get(scope, ())
            for scope in self.scopes(node)
        )

    @cached_property
    def _bound_within(self) -> frozenset[str]:
        """The names that any function, lambda or class binds."""
        inner = (names for scope, names in self.locals.items() if scope is not self.module.tree)
        return frozenset[str]().union(*inner)

    @cached_property
    def _imported_within(self) -> dict[ast.AST, frozenset[str]]:
        """The names that imports bind in a scope or in its nested scopes."""
        found: dict[ast.AST, set[str]] = {}
        for alias in self.of(ast.alias):
            for scope in self.scopes(alias):
                found.setdefault(scope, set()).add(alias.asname or alias.name.partition(".")[0])
        return {scope: frozenset(names) for scope, names in found.items()}


def resolve(program: Program, module: Module, node: ast.AST) -> tuple[Module, Definition] | None:
    """The function or class of the job that an expression certainly refers to.

    None if it refers to none, if the name is bound again, or if the definition is decorated or nested.
    """
    code = code_of(module)
    first, own = _first(node), None
    if isinstance(node, ast.Name):
        own = code.functions.get(first) or code.classes.get(first)
    if (own is None and first not in code.imports) or code.is_local(node, first):
        return None
    if own is not None:
        return module, own
    if code.stored.get(first, 0) > 1:
        return None
    return _defined(program, code.imported_name(node))


def _defined(program: Program, name: str, depth: int = 0) -> tuple[Module, Definition] | None:
    """A definition of the job by its dotted name, through re-exports."""
    within, _, last = name.rpartition(".")
    module = program.modules.get(within)
    if module is None or depth > 8:
        return None
    code = code_of(module)
    if own := code.functions.get(last) or code.classes.get(last):
        return module, own
    if code.stored.get(last, 0) != 1:
        return None
    return _defined(program, code.imported_name(ast.Name(last, ast.Load())), depth + 1)
