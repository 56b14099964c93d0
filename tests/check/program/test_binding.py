"""Which names belong to a function or module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from epochzero.check.program.binding import own_names
from epochzero.check.program.model import Module


def _module(text: str) -> tuple[Module, ast.Module]:
    tree = ast.parse(text)
    return Module("__main__", "train.py", Path("/job/train.py"), text, tree), tree


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b, c as d\nx = [y for y in a]\nclass K:\n    z = 1\n", {"a", "d", "x", "K"}),
        ("def f():\n    global x\n    x = 1\n\ny = 1\n", {"f", "y"}),
        ("x = 1\n\ndef f():\n    global x\n    x = 2\n", {"f"}),
        ("from a import *\n", None),
        ("x = 1\nglobals()['y'] = 2\n", None),
        ("def f(o):\n    setattr(o, 'y', 2)\n", None),
    ],
)
def test_names_of_a_module(text: str, names: set[str] | None) -> None:
    assert own_names(*_module(text)) == names


def test_what_another_function_does_is_not_asked_of_a_function() -> None:
    module, tree = _module(
        "def f(a):\n    x = a\n    global y\n    y = 1\n\n"
        "def g():\n    x = 1\n    def h():\n        nonlocal x\n        x = 2\n\n"
        "def k():\n    x = 1\n    exec('y = 1')\n"
    )
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    assert [own_names(module, one) for one in functions] == [{"x"}, {"h"}, None]
