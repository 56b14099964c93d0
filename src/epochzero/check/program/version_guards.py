"""Version guards: code that runs only for some versions of a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Sequence

from epochzero.check.program.model import Module
from epochzero.check.program.syntax import Code, code_of

_ASKS = re.compile(
    r"\b(hasattr|getattr|signature|version\w*|__version__|\w*VERSION\w*)\b|(?<!\bis)_available\b"
)
"""Matches a condition on a version."""
_TELLS = re.compile(
    r"\b(hasattr|signature|find_spec|__version__|version_info|metadata\.version)\b|(?<!\bis)_available\b"
)
"""Matches a value that is tested elsewhere by its name."""
_LACKS = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError"})
"""Exceptions that a version without a name or parameter raises."""
_Lines = tuple[int, int]


def names_of_versions(modules: Iterable[Module]) -> frozenset[str]:
    """The names that hold, and functions that return, a version or whether a library has an attribute."""
    given = [row for module in modules for row in _given(code_of(module))]
    found: set[str] = set()
    before = -1
    while before != len(found):
        before = len(found)
        found |= {name for name, tells, value in given if tells or _derives(value, found)}
    return frozenset(found)


def _given(code: Code) -> Iterator[tuple[str, bool, ast.expr]]:
    """Yield names, whether a version determines their value, and the value."""
    for assign in code.of(ast.Assign):
        of_lack = _is_lack(code.parent[assign]) and isinstance(assign.value, ast.Constant)
        is_of_version = of_lack or _is_version(code, assign.value)
        for target in assign.targets:
            for element in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(element, ast.Name) and not isinstance(assign.value, ast.IfExp):
                    yield element.id, is_of_version, assign.value
    for returned in code.of(ast.Return):
        function = code.function(returned)
        if function is not None and isinstance(
            returned.value, ast.Compare | ast.Call | ast.Constant
        ):
            of_lack = _is_lack(code.parent[returned])
            yield function.name, of_lack or _is_version(code, returned.value), returned.value


def _is_version(code: Code, value: ast.expr) -> bool:
    match value:
        case ast.Call(ast.Name("getattr"), [library, *_]) if code.imported_name(library):
            return True
    return _TELLS.search(ast.unparse(value)) is not None


def _derives(value: ast.expr, names: Container[str]) -> bool:
    """Whether a value is a test of such names, or a call of such a function."""
    if isinstance(value, ast.Call):
        return _reads(value.func, names)
    return isinstance(value, ast.Compare | ast.BoolOp | ast.UnaryOp) and _reads(value, names)


def versioned_lines(module: Module, names: frozenset[str]) -> Iterator[_Lines]:
    """Yield the first and last lines of code whose execution a version test decides.

    Args:
        module: of the job.
        names: the result of `names_of_versions`.
    """
    code = code_of(module)
    choices: list[ast.If | ast.IfExp] = [*code.of(ast.If), *code.of(ast.IfExp)]
    for choice in choices:
        if _asks(choice.test, names):
            yield _lines([choice])
    for match in code.of(ast.Match):
        if _asks(match.subject, names):
            yield _lines([match])
    for either in code.of(ast.BoolOp):
        if any(_asks(value, names) for value in either.values[:-1]):
            yield _lines([either])
    for block in _blocks(module):
        for at, statement in enumerate(block[:-1]):
            if (
                isinstance(statement, ast.If)
                and isinstance(
                    statement.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break
                )
                and _asks(statement.test, names)
            ):
                yield _lines(block[at + 1 :])


def fallback_lines(module: Module) -> Iterator[_Lines]:
    """Yield the first and last lines of handlers for a missing attribute of a library."""
    for handler in code_of(module).of(ast.ExceptHandler):
        if _is_lack(handler):
            yield _lines(handler.body)


def _asks(test: ast.expr, names: Container[str]) -> bool:
    return _ASKS.search(ast.unparse(test)) is not None or _reads(test, names)


def _reads(value: ast.expr, names: Container[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
        for node in ast.walk(value)
    )


def _is_lack(node: ast.AST) -> bool:
    """Whether it handles an exception that another version raises."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(isinstance(kind, ast.Name) and kind.id in _LACKS for kind in kinds)


def _blocks(module: Module) -> Iterator[Sequence[ast.stmt]]:
    for node in ast.walk(module.tree) if module.tree is not None else ():
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def _lines(nodes: Sequence[ast.stmt | ast.expr]) -> _Lines:
    return nodes[0].lineno, nodes[-1].end_lineno or nodes[-1].lineno
