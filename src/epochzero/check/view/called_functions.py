"""The functions that calls in the source run, with their parameters and results."""

from __future__ import annotations

import ast

from epochzero.check.program.model import Module, Program
from epochzero.check.program.syntax import (
    Definition,
    Function,
    code_of,
    dotted,
    made_class,
    method_counts,
    resolve,
    stored_attributes,
)
from epochzero.check.target.model import Signature
from epochzero.check.target.signature import of_definition

_HARMLESS = frozenset(
    [
        "staticmethod",
        "classmethod",
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "no_grad",
        "functools.lru_cache",
        "functools.cache",
        "lru_cache",
        "cache",
        "override",
        "typing.override",
        "abstractmethod",
        "abc.abstractmethod",
    ]
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


def parameters(function: Function, bound: bool) -> Signature | None:
    """The parameters of a function of the job; None if a decorator may change them.

    Args:
        function: its definition.
        bound: whether the object passes the first one, ``self``.
    """
    if any(_name(one) not in _HARMLESS for one in function.decorator_list):
        return None
    return of_definition(function.args, bound=bound and not _is_static(function))


def _name(decorator: ast.expr) -> str:
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _is_static(function: Function) -> bool:
    return any(_name(one) == "staticmethod" for one in function.decorator_list)


def given(call: ast.Call) -> tuple[int, tuple[str, ...], bool]:
    """The number of positional arguments of a call, its keywords, and whether these are all."""
    positional = [one for one in call.args if not isinstance(one, ast.Starred)]
    keywords = tuple(one.arg for one in call.keywords if one.arg is not None)
    complete = len(positional) == len(call.args) and len(keywords) == len(call.keywords)
    return len(positional), keywords, complete


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


def gives_nothing(function: Function) -> bool:
    """Whether a function certainly returns None: it ends, and none of its returns has a value."""
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        return False
    todo: list[ast.AST] = list(function.body)
    for node in todo:
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
            return False
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(node)
    # A body that only raises or is an ellipsis is meant to be overridden.
    last = function.body[-1]
    is_stub = isinstance(last, ast.Raise | ast.Pass) or (
        isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)
    )
    return not is_stub


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def called_function(program: Program, module: Module, call: ast.Call) -> Function | None:
    """The function or method of the job that a call certainly runs; None if unknown."""
    own = resolve(program, module, call.func)
    if own is not None:
        return None if isinstance(own[1], ast.ClassDef) else own[1]
    return called_method(program, module, call)


def called_method(program: Program, module: Module, call: ast.Call) -> Function | None:
    """The method of the job's own object that a call certainly runs; None if unknown."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in method_counts(program):
        return None
    made = made_class(program, module, call.func.value)
    line = own_bases(program, *made) if made is not None else None
    if line is None or call.func.attr in stored_attributes(program):
        return None
    found = method_of(line, call.func.attr)
    return found[1] if found is not None else None


def constructor(program: Program, module: Module, definition: Definition) -> Signature | None:
    """The parameters of a function or class of the job when it is called; None if unknown."""
    if not isinstance(definition, ast.ClassDef):
        return parameters(definition, bound=False)
    line = own_bases(program, module, definition)
    if line is None or method_of(line, "__new__") is not None:
        return None
    found = method_of(line, "__init__")
    if found is not None:
        return parameters(found[1], bound=True)
    is_plain = not any(cls.bases for _, cls in line)
    return Signature() if is_plain else None
