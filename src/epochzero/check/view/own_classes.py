"""The base classes and methods of the job's own classes."""

from __future__ import annotations

import ast

from epochzero.check.program.model import Module, Program
from epochzero.check.program.syntax import (
    Function,
    code_of,
    dotted,
    resolve,
)

_PLAIN_BASES = frozenset(
    [
        "object",
        "torch.nn.Module",
        "torch.nn.modules.Module",
        "torch.utils.data.Dataset",
        "torch.utils.data.dataset.Dataset",
        "torch.utils.data.IterableDataset",
        "torch.autograd.Function",
        "pytorch_lightning.LightningModule",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "Exception",
        "abc.ABC",
    ]
)


def own_bases(
    program: Program, module: Module, cls: ast.ClassDef, depth: int = 0
) -> list[tuple[Module, ast.ClassDef]] | None:
    """A class and its bases in the job; None if one of its bases is unknown.

    Library classes that do not affect the construction of an object are ignored.
    """
    if depth > 8 or cls.keywords or cls.decorator_list:
        return None
    found = [(module, cls)]
    for base in cls.bases:
        resolved = resolve(program, module, base)
        if resolved is not None and isinstance(resolved[1], ast.ClassDef):
            above = own_bases(program, resolved[0], resolved[1], depth + 1)
            if above is None:
                return None
            found += above
        elif (code_of(module).imported_name(base) or dotted(base)) not in _PLAIN_BASES:
            return None
    return found


def method_of(line: list[tuple[Module, ast.ClassDef]], name: str) -> tuple[Module, Function] | None:
    """The method of a class or its bases; None if it is not a plain function."""
    for module, cls in line:
        named = [one for one in code_of(module).methods(cls) if one.name == name]
        assigned = [
            node
            for node in cls.body
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        if any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for statement in assigned
            for node in ast.walk(statement)
        ):
            return None
        if named:
            return (module, named[0]) if len(named) == 1 else None
    return None
