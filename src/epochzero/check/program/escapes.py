"""What code that is not followed may change: the containers and objects that reach it.

An item or attribute is known to be missing only while all code that could add it was followed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import replace

from epochzero.check.program.frames import Arguments
from epochzero.check.program.heap import (
    BoundFunction,
    Box,
    Class,
    Function,
    HeapJournal,
    LibraryResult,
    Member,
    Object,
    Scope,
    V,
)

_LITERALS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
_MAKERS = frozenset({"dict", "list", "set", "sorted", "tuple"})
_CALLBACKS = (Function, BoundFunction)
_JOB_CODE = (*_CALLBACKS, Class, Object)
_CAREFUL = frozenset(
    """
    absl accelerate click datasets hydra jax keras lightning mlflow numpy omegaconf pandas pytorch_lightning
    sklearn tensorboardX tensorflow torch torchvision tqdm transformers typer wandb yaml
    """.split()
)
"""Libraries that add nothing to the containers passed to them."""


def leaves_arguments(name: str, arguments: Iterable[V]) -> bool:
    """Whether a library's function adds nothing to its arguments, and calls no code of the job with them."""
    root = name.partition(".")[0].removesuffix("()")
    code = _CALLBACKS if root in sys.stdlib_module_names else _JOB_CODE
    is_careful = root in _CAREFUL or root in sys.stdlib_module_names
    return is_careful and not any(isinstance(value, code) for value in arguments)


def shared(given: Arguments, node: ast.expr) -> list[V]:
    """The arguments that the job may still hold: of a container that is made in the call itself, only its items."""
    if not isinstance(node, ast.Call) or len(given.all) != len(node.args) + len(node.keywords):
        return given.all
    found: list[V] = []
    written = [*node.args, *(keyword.value for keyword in node.keywords)]
    for value, made in zip(given.all, written, strict=True):
        is_made = isinstance(made, _LITERALS) or (
            isinstance(made, ast.Call)
            and isinstance(made.func, ast.Name)
            and made.func.id in _MAKERS
        )
        found += value.content.values if is_made and isinstance(value, Box) else [value]
    return found


def escape(journal: HeapJournal, values: Iterable[V]) -> None:
    """Account for code that received values and may have added items and attributes to all that they reach."""
    todo, seen = list(values), set[int]()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case Box():
                content = value.content
                if content.complete and value.kind != "tuple":
                    journal.set(value.state, "content", replace(content, complete=False))
                todo += content.values
            case LibraryResult():
                value.closed = False
                todo += value.attributes.values()
            case Object():
                todo += [value.cls, *value.attributes.values()]
            case Class():
                todo += value.names.values()
            case Function():
                todo += _captured(value.scope)
            case BoundFunction():
                todo += (
                    [value.receiver, value.function]
                    if isinstance(value.function, Function)
                    else [value.receiver]
                )
            case Member():
                todo.append(value.owner)


def _captured(scope: Scope | None) -> Iterable[V]:
    """The values of the functions around a function, which it may change when it is called."""
    while scope is not None and scope.parent is not None:
        yield from scope.names.values()
        scope = scope.parent
