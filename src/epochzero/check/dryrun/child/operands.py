"""What the line that failed works with, to compare two runs with different numbers of iterations.

A failure after a shortened loop is certain if the same line fails in the same way, with operands of
the same sizes and keys, after another number of iterations: then it does not depend on the skipped
ones. What only values decide (assertions, divisions) is never certain in this way.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from epochzero.check.dryrun.child.frames import Roots, walked

MOST_KEYS = 50
LONGEST = 200
_BY_VALUE = (ArithmeticError, AssertionError, StopIteration, SystemExit)


def is_comparable(error: BaseException, roots: Roots) -> bool:
    """Whether the same failure after another number of iterations would be certain."""
    own = _own(error, roots)
    if own is None or isinstance(error, _BY_VALUE):
        return False
    frame, line = own
    code = linecache.getline(frame.f_code.co_filename, line).strip()
    innermost = list(walked(error.__traceback__))[-1][0]
    if innermost is frame and code.startswith(("raise", "assert")):
        return False
    if isinstance(error, KeyError) and error.args:
        return not _is_stored(error.args[0], _filled(frame, line), roots)
    if isinstance(error, NameError):
        return not _is_bound(str(error), frame)
    return True


def operands(error: BaseException, roots: Roots) -> dict[str, str]:
    """The names and attributes in the user's innermost line, with their sizes, keys or values."""
    own = _own(error, roots)
    if own is None:
        return {}
    frame, line = own
    found: dict[str, str] = {}
    for text in sorted(_names(frame.f_code.co_filename, line)):
        first, *attributes = text.split(".")
        try:
            value = frame.f_locals[first] if first in frame.f_locals else frame.f_globals[first]
            for attribute in attributes:
                value = vars(value)[attribute]
        except (KeyError, TypeError):
            continue
        found[text] = _summary(value)[:LONGEST]
    return found


def is_bound(error: NameError, roots: Roots) -> bool:
    """Whether the missing name is assigned somewhere, if only under a condition that did not hold."""
    own = _own(error, roots)
    return own is not None and _is_bound(str(error), own[0])


def _own(error: BaseException, roots: Roots) -> tuple[FrameType, int] | None:
    own = [(f, n) for f, n in walked(error.__traceback__) if roots.holds(f.f_code.co_filename)]
    return own[-1] if own else None


def _names(path: str, line: int) -> set[str]:
    """The names and attributes of the smallest statement at a line."""
    statement = _statement(path, line)
    return {
        ast.unparse(node)
        for node in (ast.walk(statement) if statement else ())
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    }


def _statement(path: str, line: int) -> ast.stmt | None:
    """The smallest statement at a line."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return None
    at = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return min(at, key=lambda node: (node.end_lineno or node.lineno) - node.lineno, default=None)


def _summary(value: Any) -> str:
    """What of a value the failure may depend on: keys, shape, length, text or number."""
    if isinstance(value, dict):
        keys = sorted(map(repr, list(value)[:MOST_KEYS]))
        return f"keys {len(value)} {' '.join(keys)}"
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        return repr(value)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"shape {tuple(shape)}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"length {len(value)}"
    return type(value).__name__


def _filled(frame: FrameType, line: int) -> list[str]:
    """The last names of what the line takes values from by a key: ``history`` of ``self.history[64]``."""
    tree = _statement(frame.f_code.co_filename, line)
    taken = (
        (node.value for node in ast.walk(tree) if isinstance(node, ast.Subscript)) if tree else ()
    )
    return [
        ast.unparse(value).rpartition(".")[2]
        for value in taken
        if isinstance(value, (ast.Attribute, ast.Name))
    ]


def _is_stored(key: Any, names: Sequence[str], roots: Roots) -> bool:
    """Whether the user's code stores by this key, or by one that it computes, if only in an iteration that was skipped."""
    patterns = [rf"\b{re.escape(name)}\[\s*[^'\"\s\d].*\]\s*=[^=]" for name in names]
    if isinstance(key, str):
        text = re.escape(key)
        patterns.append(rf"\[\s*['\"]{text}['\"]\s*\]\s*=[^=]|(update|setdefault)\([^)\n]*{text}")
    stored = re.compile("|".join(patterns) or r"(?!)")
    return any(stored.search(source) for source in _sources(roots))


def _sources(roots: Roots) -> list[str]:
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = [path for path in paths if isinstance(path, str) and roots.holds(path)]
    return ["".join(linecache.getlines(path)) for path in own]


def _is_bound(message: str, frame: FrameType) -> bool:
    named = re.search(r"'(\w+)'", message)
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:
        return False
    return named is not None and any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == named[1]
        for node in ast.walk(tree)
    )
