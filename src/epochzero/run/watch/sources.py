"""Which lines made the layers of a model that is there already: from the source of their classes.

A layer of a class of the user's is where ``self.NAME`` is assigned in the class; one of a container is the
container's argument, as far as the source shows it. Source is parsed, never run.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from epochzero.run.watch.lines.program import parsed
from epochzero.run.watch.model import SourceLine

Expression = tuple[str, ast.expr]
"""A file, and an expression in it."""


def layer_places(model: Any, made: Expression | None = None) -> dict[str, SourceLine]:
    """The line that made each layer, by its path; those are left out that the source does not show.

    Args:
        model: a `torch.nn.Module`.
        made: the expression that made the model, if known.
    """
    found = {}
    for path, (file, expression) in _layers(model, "", made):
        if program := parsed(file):
            found[path] = program.place(expression)
    return found


def call_of(path: str, kind: str, *, first: int, last: int) -> Expression | None:
    """The call that makes what is of a class: the latest in a stretch of lines, or the only one of the file.

    Args:
        path: of the file.
        kind: the class, without its module.
        first, last: the lines.
    """
    program = parsed(path)
    calls = [node for node in program.nodes if _called(node) == kind] if program else []
    made = sorted((node for node in calls if isinstance(node, ast.Call)), key=lambda n: n.lineno)
    near = [node for node in made if first <= node.lineno <= last]
    found = near[-1:] or (made if len(made) == 1 else [])
    return (path, found[0]) if found else None


def _layers(module: Any, path: str, made: Expression | None) -> Iterator[tuple[str, Expression]]:
    if made is not None:
        yield path, made
    of_class = _assigned_in(type(module))
    for number, (name, child) in enumerate(module._modules.items()):
        if child is None:
            continue
        at = of_class.get(name)
        if made is not None and not of_class:
            at = made[0], _item(made[1], number, name)
        yield from _layers(child, f"{path}.{name}" if path else name, at)


def _assigned_in(kind: type) -> dict[str, Expression]:
    """What each attribute is made by in a class or its bases; nothing of the classes of torch."""
    found: dict[str, Expression] = {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in ("torch", "builtins", "typing"):
            continue
        file = ""
        with suppress(TypeError):
            file = inspect.getsourcefile(base) or ""
        program = parsed(file)
        for node in program.nodes if program else ():
            if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                for name, value in _attributes(node):
                    found.setdefault(name, (file, value))
    return found


def _attributes(body: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """``self.NAME = value`` and ``self.add_module("NAME", value)``."""
    for node in ast.walk(body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                # Whatever it is called, only a layer of the model has a name that is asked for.
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    yield target.attr, node.value
        elif isinstance(node, ast.Call) and _called(node) == "add_module" and len(node.args) == 2:
            name, value = node.args
            if isinstance(name, ast.Constant):
                yield str(name.value), value


def _item(made: ast.expr, number: int, name: str) -> ast.expr:
    """What stands for a layer in the call that made its container; the call where nothing does."""
    if not isinstance(made, ast.Call):
        return made
    items: list[ast.expr] = list(made.args)
    if len(items) == 1 and _called(items[0]) == "OrderedDict":
        items = list(items[0].args) if isinstance(items[0], ast.Call) else items
    if len(items) == 1 and isinstance(items[0], ast.ListComp | ast.GeneratorExp):
        return items[0].elt
    if len(items) == 1 and isinstance(items[0], ast.Dict):
        pairs = zip(items[0].keys, items[0].values, strict=True)
        return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == name), made)
    if len(items) == 1 and isinstance(items[0], ast.List | ast.Tuple):
        items = list(items[0].elts)
    if number >= len(items) or any(isinstance(item, ast.Starred) for item in items[: number + 1]):
        return made
    item = items[number]
    # A pair of an OrderedDict.
    return item.elts[1] if isinstance(item, ast.Tuple) and len(item.elts) == 2 else item


def _called(node: ast.AST) -> str:
    """The last name of what a call calls."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return getattr(function, "attr", "") or getattr(function, "id", "")
