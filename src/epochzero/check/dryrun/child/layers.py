"""Which layer failed: its path in the model, where it was made, the shapes, and the fix.

`watched` keeps the stack of modules that are being called and the place where each was made. `explain`
reads an exception: the layer that it passed first, or the function of torch that raised it, and what
stood in the variables of the failing line. It works on real and on fake tensors.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Optional

import torch

from epochzero.check.dryrun.child.mistakes import advise, advise_call, advise_line
from epochzero.injected.identity import ByIdentity

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# The most elements of a list or names of a line that are described.
_MOST = 8

_stack: list[tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]] = []
_made: ByIdentity[tuple[str, int]] = ByIdentity()
_names: ByIdentity[dict[int, str]] = ByIdentity()


@contextmanager
def watched() -> Iterator[None]:
    """Keep the stack of modules and the places where they are made, until the end of the block."""
    module = torch.nn.Module
    call, init = module.__call__, module.__init__

    def called(self: Any, *inputs: Any, **options: Any) -> Any:
        _stack.append((self, inputs, options))
        try:
            return call(self, *inputs, **options)
        except Exception as error:
            if not hasattr(error, "_layer"):
                error._layer = _describe(list(_stack), error)  # type: ignore[attr-defined]
            raise
        finally:
            _stack.pop()

    def made(self: Any, *inputs: Any, **options: Any) -> None:
        init(self, *inputs, **options)
        place = _maker(self)
        if place:
            _made.set(self, place)

    module.__call__, module.__init__ = called, made  # type: ignore[method-assign]
    try:
        yield
    finally:
        module.__call__, module.__init__ = call, init  # type: ignore[method-assign]


def depth() -> int:
    """How many modules are being called."""
    return len(_stack)


def path() -> str:
    """The module path, from the outermost model, of the layer that is being called."""
    return _path(_stack)


def explain(error: BaseException) -> Optional[dict[str, Any]]:
    """What is known of the layer or function that raised, and the fix.

    Returns:
        Keys as documented for the records of a dry run: ``path``, ``class``, ``config``, ``defined`` (path,
        line, code), ``shapes``, ``expected``, ``fix``, and ``tensors``: name, shape, type and device of what
        the failing line names. None where tensors have nothing to do with it.
    """
    found: dict[str, Any] = dict(getattr(error, "_layer", None) or {})
    message = str(error)
    call = _torch_function(error.__traceback__)
    if call is not None and not found.get("fix"):
        name, values = call
        advice = advise_call(name, values, message)
        if advice:
            found.update({"class": found.get("class") or name, **advice})
            found["shapes"] = [
                list(v.shape) for v in values.values() if isinstance(v, torch.Tensor)
            ]
    line = _user_line(error.__traceback__)
    if line is not None:
        tensors = _tensors_of(*line)
        if tensors:
            found["tensors"] = tensors
        if not found.get("fix"):
            found.update(advise_line(message, tensors))
    return found or None


def _describe(stack: list[Any], error: Exception) -> dict[str, Any]:
    module, inputs, options = stack[-1]
    tensors = [value for value in (*inputs, *options.values()) if isinstance(value, torch.Tensor)]
    parameter = next(iter(module.parameters(recurse=False)), None)
    shapes = [list(tensor.shape) for tensor in tensors]
    if parameter is not None:
        shapes.append(list(parameter.shape))
    described: dict[str, Any] = {
        "path": _path(stack),
        "class": type(module).__name__,
        "config": module.extra_repr(),
        "shapes": shapes,
    }
    place = next(filter(None, (_made.get(layer) for layer, *_ in reversed(stack))), None)
    if place:
        source = linecache.getline(*place).strip()
        described["defined"] = {"path": place[0], "line": place[1], "code": source}
    described.update(advise(module, inputs, str(error)))
    return described


def _path(stack: list[Any]) -> str:
    if not stack:
        return ""
    root, layer = stack[0][0], stack[-1][0]
    names = _names.get(root)
    if names is None or id(layer) not in names:
        names = {id(module): name for name, module in root.named_modules()}
        _names.set(root, names)
    return names.get(id(layer), "")


def _maker(module: torch.nn.Module) -> Optional[tuple[str, int]]:
    """Where the user's code asked for the module: outside of torch and of its own constructors."""
    frame: Optional[FrameType] = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        own = code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is module
        if not own and not code.co_filename.startswith((_TORCH, _HERE, "<frozen")):
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def _torch_function(trace: Optional[TracebackType]) -> Optional[tuple[str, dict[str, Any]]]:
    """The last function of `torch.nn.functional` on the way of the exception, and its arguments."""
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_TORCH) and code.co_filename.endswith("functional.py"):
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            values = trace.tb_frame.f_locals
            found = code.co_name, {name: values[name] for name in names if name in values}
        trace = trace.tb_next
    return found


def _user_line(trace: Optional[TracebackType]) -> Optional[tuple[FrameType, str]]:
    """The innermost frame of the user's code, and its line."""
    found = None
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith((_TORCH, _HERE, "<frozen")) and "site-packages" not in name:
            found = trace.tb_frame, linecache.getline(name, trace.tb_lineno).strip()
        trace = trace.tb_next
    return found


def _tensors_of(frame: FrameType, line: str) -> list[dict[str, Any]]:
    """The tensors that the line names: variables and attributes, nothing is called."""
    try:
        tree = ast.parse(line.removesuffix(":") if line.startswith(("if", "for", "with")) else line)
    except SyntaxError:
        return []
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = _value(node, frame)
            if isinstance(value, torch.Tensor):
                found.setdefault(ast.unparse(node), value)
    return [
        {
            "name": name,
            "shape": list(value.shape),
            "dtype": str(value.dtype).removeprefix("torch."),
            "device": str(value.device),
        }
        for name, value in list(found.items())[:_MOST]
    ]


def _value(node: ast.expr, frame: FrameType) -> Any:
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        if isinstance(owner, torch.nn.Module):
            members: dict[str, Any] = {**owner._parameters, **owner._buffers, **owner._modules}
            return members.get(node.attr, vars(owner).get(node.attr))
        return getattr(owner, "__dict__", {}).get(node.attr)
    return None
