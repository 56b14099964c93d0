"""Which line of the user's source made a layer or set a value.

Source is parsed, never run. What was changed since the job began may have other lines.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from epochzero.run.watch.history import History, Record
from epochzero.run.watch.model import Place

__all__ = ["backward_place", "parsed", "place_of", "setting_place"]


def place_of(record: Record) -> Place | None:
    """The line that made what a record tells of."""
    found = record.get("place")
    return Place(*found) if found else None


def backward_place(history: History) -> Place | None:
    """The line that calls ``backward``."""
    return next(map(place_of, history.backwards), None)


def setting_place(made: Place | None, keyword: str, position: int | None = None) -> Place | None:
    """The line that gave a keyword of a call its value: the argument, or what it names.

    Follows a name to its assignment, ``args.lr`` to the ``add_argument("--lr")`` of the same file, and
    an attribute or key to where one of that name is given a value. Where nothing is found, the call.

    Args:
        made: a line of the call.
        keyword: of the call.
        position: of the argument, for a call without the keyword.
    """
    if made is None:
        return None
    tree, lines = parsed(made.path)
    call = _call(tree, made.line, keyword, position) if tree else None
    if call is None or tree is None:
        return made
    value = _argument(call, keyword, position)
    if value is None:
        return made
    target = _origin(tree, value)
    number = target.lineno
    return Place(made.path, number, lines[number - 1].strip()[:200])


@lru_cache(maxsize=64)
def parsed(path: str) -> tuple[ast.Module | None, tuple[str, ...]]:
    """A file as a tree and its lines; None and none where it cannot be parsed."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return ast.parse(text), tuple(text.splitlines())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None, ()


def _call(tree: ast.Module, line: int, keyword: str, position: int | None) -> ast.Call | None:
    """The innermost call over the line that has the argument."""
    found: ast.Call | None = None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and _argument(node, keyword, position) is not None
            and (found is None or node.lineno >= found.lineno)
        ):
            found = node
    return found


def _argument(call: ast.Call, keyword: str, position: int | None) -> ast.expr | None:
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    if position is not None and position < len(call.args):
        return call.args[position]
    return None


def _origin(tree: ast.Module, value: ast.expr, depth: int = 0) -> ast.expr:
    """Where the value of an expression was written down."""
    name = value.id if isinstance(value, ast.Name) else _last_name(value)
    if not name or depth > 4:
        return value
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_option(node, name):
            return next((k.value for k in node.keywords if k.arg == "default"), node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_last_name(target) == name for target in targets):
                return node.value if node.value is value else _origin(tree, node.value, depth + 1)
        if isinstance(node, ast.Dict):
            for key, item in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return item
        if isinstance(node, ast.keyword) and node.arg == name and node.value is not value:
            return node.value
    return value


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _is_option(call: ast.Call, name: str) -> bool:
    """Whether a call is ``add_argument("--name", ...)`` or an option of click."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return function in ("add_argument", "option") and any(
        isinstance(given, ast.Constant)
        and isinstance(given.value, str)
        and given.value.lstrip("-").replace("-", "_") == name
        for given in call.args
    )
