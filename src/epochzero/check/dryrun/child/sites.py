"""Where in the user's source parts of a job stand that a dry run should come to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

_PARTS = (
    ("arguments", re.compile(r"\.parse_args$")),
    ("backward", re.compile(r"\.backward$|tape\.gradient$")),
    ("export", re.compile(r"^torch\.(onnx\.export|jit\.(save|script|trace)|export\.export)$")),
    ("load", re.compile(r"^torch\.load$|\.(load_state_dict|load_weights)$")),
    ("optimizer step", re.compile(r"(optim|^opt|scaler)\w*\.step$|\.apply_(gradients|updates)$")),
    (
        "save",
        re.compile(r"^torch\.save$|\.(save_pretrained|save_checkpoint|save_model|save_weights)$"),
    ),
    ("schedule", re.compile(r"sched\w*\.step$")),
)


class CallSite(NamedTuple):
    """A call that is a part of a job.

    Attributes:
        part: what it does.
        line, end: where it stands.
        function: in which; empty for the module itself.
        condition: the test that it stands under; empty where there is none.
    """

    part: str
    line: int
    end: int
    function: str
    condition: str


def sites(node: ast.AST, function: str = "", condition: str = "") -> Iterator[CallSite]:
    """The parts in a module."""
    if isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef)):
        function, condition = node.name, ""
    if isinstance(node, ast.Call) and (part := _part(node)):
        yield CallSite(part, node.lineno, node.end_lineno or node.lineno, function, condition)
    for inner in ast.iter_child_nodes(node):
        under = condition
        if isinstance(node, ast.If) and inner in node.body:
            under = f"if {ast.unparse(node.test)}"
        yield from sites(inner, function, under)


def _part(call: ast.Call) -> str:
    if not isinstance(call.func, ast.Attribute):
        return ""
    name = ast.unparse(call.func)
    return next((part for part, pattern in _PARTS if pattern.search(name)), "")
