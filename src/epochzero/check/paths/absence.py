"""Whether a line is reached only if a path does not exist: ``if not path.exists(): path.mkdir()``."""

from __future__ import annotations

import ast
import re

from epochzero.check.findings import SourceLocation
from epochzero.check.program.model import Program

_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASKS = re.compile(r"(\.|\b)(exists|is_file|is_dir|isfile|isdir)$")
_LEAVES = re.compile(r"\b(return|raise|break|continue|exit|_exit)\b")


def is_reached_if_absent(program: Program, place: SourceLocation) -> bool:
    """Whether a function reaches a line unless certain paths exist."""
    module = program.by_path.get(place.path)
    nodes = ast.walk(module.tree) if module and module.tree else ()
    around = [node for node in nodes if _holds(node, place.line)]
    functions = [node for node in around if isinstance(node, _FUNCTIONS)]
    if not functions:
        return False
    branches = [
        node
        for node in ast.walk(functions[-1])
        if isinstance(node, _BRANCHES)
        and node.lineno < place.line
        and (_holds(node, place.line) or _LEAVES.search(ast.unparse(node)))
    ]
    return all(_passes(node, place.line) for node in branches)


def _holds(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _passes(node: ast.AST, line: int) -> bool:
    """Whether a branch allows a line to be reached if the tested path does not exist."""
    if not isinstance(node, ast.If):
        return False
    negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    asks = isinstance(test, ast.Call) and _ASKS.search(ast.unparse(test.func))
    taken = node.body if negated else node.orelse
    if any(_holds(statement, line) for statement in taken):
        return bool(asks)
    return bool(asks) and not negated and not _holds(node, line)
