"""The job uses a name that nothing defines."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from epochzero.check.code import Code, Function, code_of
from epochzero.check.rules.base import (
    Case,
    Claim,
    Claims,
    Module,
    Program,
    Rule,
    Target,
    claim_failure,
    failures,
)
from epochzero.check.rules.flakes import Flake, flakes, reading

# Modules that define names without an assignment.
_EVERYWHERE = ("builtins", "__builtin__")
_IN_MODULE = re.compile(r"\bglobals\(\)|\bexec\s*\(|\bvars\(\)|\binject")
_BUILTIN = frozenset(dir(builtins))
_OF_LAUNCHER = {
    "kernprof": {"profile"},
    "ipython": {"get_ipython", "display"},
}
ANNOTATIONS_ARE_LAZY = (3, 14)
"""Since this version annotations are evaluated lazily (PEP 649)."""


def _check(program: Program, target: Target) -> Claims:
    if any(word in module.text for module in program.modules.values() for word in _EVERYWHERE):
        return
    given = {name for one in program.job.launchers for name in _OF_LAUNCHER.get(one, ())}
    reported: set[tuple[str, int]] = set()
    lazy = target.python is not None and target.python[:2] >= ANNOTATIONS_ARE_LAZY
    for flake in flakes(program, target, ("F821", "F823")):
        name = flake.values[0]
        if flake.code == "F821":
            if name in given or _is_bound_in_loop(flake, name) or _is_deleted_later(flake, name):
                continue
            if _is_evaluated(flake, name, lazy):
                yield _undefined(flake, name)
        else:
            yield _unbound(flake, name)
        reported.add((flake.place.path, flake.place.line))
    for failed in failures(program, "name", reported=reported):
        name = failed.message.split("'")[1]
        yield claim_failure(
            failed,
            message=f"{name} has no value when the job reaches this line.",
            fix=f"Assign {name} on every path that leads to this line.",
        )


def _is_bound_in_loop(flake: Flake, name: str) -> bool:
    """Whether an earlier iteration of a surrounding loop may have bound the name."""
    code = code_of(flake.module)
    around = [
        loop
        for loop in (*code.of(ast.For), *code.of(ast.While))
        if loop.lineno <= flake.place.line <= (loop.end_lineno or 0)
    ]
    return bool(around) and any(
        one.id == name
        and isinstance(one.ctx, ast.Store)
        and loop.lineno <= one.lineno <= (loop.end_lineno or 0)
        for one in code.of(ast.Name)
        for loop in around
    )


def _is_deleted_later(flake: Flake, name: str) -> bool:
    """Whether a surrounding function deletes the name, perhaps after the call."""
    code = code_of(flake.module)
    functions: list[Function | ast.Lambda] = [
        *code.of(ast.FunctionDef),
        *code.of(ast.AsyncFunctionDef),
        *code.of(ast.Lambda),
    ]
    spans = [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in functions]
    around = [span for span in spans if flake.place.line in span]
    return any(
        one.id == name and isinstance(one.ctx, ast.Del) and one.lineno not in span
        for one in code.of(ast.Name)
        for span in around
    )


def _undefined(flake: Flake, name: str) -> Claim:
    near = get_close_matches(name, _names(flake.module), n=1, cutoff=0.8)
    hint = f"write {near[0]}, if that is what you mean, or " if near else ""
    fix = f"{hint}define or import {name} before it is used."
    return flake.claim(
        f"Nothing defines {name}.",
        f"NameError: name '{name}' is not defined",
        fix[0].upper() + fix[1:],
    )


def _unbound(flake: Flake, name: str) -> Claim:
    return flake.claim(
        f"The function reads {name} before assigning it; the assignment below makes the name "
        "local.",
        "UnboundLocalError: cannot access local variable "
        f"'{name}' where it is not associated with a value",
        f"Write `global {name}` first, or give the local variable another name.",
    )


@lru_cache(maxsize=1)  # The messages about a module arrive in succession.
def _names(module: Module) -> frozenset[str]:
    """The names that a module binds anywhere, and the built-in ones."""
    return frozenset(name for name, _ in code_of(module).bindings) | _BUILTIN


def _is_evaluated(flake: Flake, name: str, lazy: bool) -> bool:
    """Whether the name is looked up when the code runs: not in a text, nor in a lazy annotation."""
    return (flake.place.line, flake.column, name) in _evaluated(flake.module, lazy)


@lru_cache(maxsize=1)
def _evaluated(module: Module, lazy: bool) -> frozenset[tuple[int, int, str]]:
    """Lines, columns and names that are looked up when the module's code runs.

    None for a module whose names may come from elsewhere.
    """
    if _IN_MODULE.search(module.text):
        return frozenset()
    code = code_of(module)
    lazy = lazy or any(
        taken.module == "__future__" and any(alias.name == "annotations" for alias in taken.names)
        for taken in code.of(ast.ImportFrom)
    )
    unread = {node for one in _annotations(code, lazy) for node in ast.walk(one)}
    return frozenset(
        (node.lineno, node.col_offset, node.id) for node in code.of(ast.Name) if node not in unread
    )


def _annotations(code: Code, lazy: bool) -> Iterator[ast.expr]:
    """The annotations that are not evaluated."""
    if lazy:
        yield from (one.annotation for one in code.of(ast.arg) if one.annotation)
        functions: list[Function] = [*code.of(ast.FunctionDef), *code.of(ast.AsyncFunctionDef)]
        yield from (one.returns for one in functions if one.returns)
    for given in code.of(ast.AnnAssign):
        # Annotations of a function's local variables never are (PEP 526).
        if lazy or code.function(given) is not None:
            yield given.annotation


_BRANCH = (
    "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--name')\n"
    "args = parser.parse_args()\nif args.name == 'sgd':\n    optimizer = 1\n"
    "elif args.name == 'adam':\n    optimizer = 2\n"
)

RULE = Rule(
    title="The job uses a name that nothing defines",
    category="undefined_variable",
    why="Python looks up a name when the line runs. A misspelt name or a missing import in code "
    "that runs after the first epoch fails only then.",
    fix="Define or import the name before using it.",
    source="Zhang et al., ICSE 2020, Table 1: Undefined Variable, 59 of 4,960 failures",
    check=_check,
    background=reading,
    catches=(
        Case({"train.py": "import os\n\nepochs = 3\nprint(epoch)\nos.getcwd()\n"}, line=4),
        Case(
            {
                "train.py": "import os\n\ndef save(path):\n    os.makedirs(path)\n"
                "    torch.save({}, path)\n\nif __name__ == '__main__':\n    save('out')\n"
            },
            line=5,
        ),
        Case(
            {
                "train.py": "import helper\n\nhelper.run()\n",
                "helper.py": "best = 0\n\ndef run():\n    print(best)\n    best = 1\n",
            },
            line=4,
            path="helper.py",
        ),
        Case({"train.py": f"{_BRANCH}print(optimizer)\n"}, ("--name", "rmsprop"), line=10),
        Case({"train.py": "def last(items):\n    for item in items:\n        found = item\n"
              "    return found\n\n\nlast([])\n"}, line=4),
        Case({"train.py": "main()\n\n\ndef main():\n    print(1)\n"}, line=1),
        Case({"train.py": "def load():\n    try:\n        int('x')\n    except ValueError as error:\n"
              "        pass\n    print(error)\n\n\nload()\n"}, line=6),
    ),
    leaves=(
        Case({"train.py": f"{_BRANCH}print(optimizer)\n"}, ("--name", "adam")),
        Case({"train.py": "for epoch in range(9):\n    if epoch > 0:\n        print(last)\n    last = epoch\n"}),
        Case({"train.py": "def last(items):\n    for item in items:\n        found = item\n"
              "    return found\n\n\nlast(open('d.txt'))\n", "d.txt": "a"}),
        Case({"train.py": "def main():\n    helper()\n\n\ndef helper():\n    print(rate)\n\n\n"
              "rate = 3\nmain()\n"}),
        Case({"train.py": "data = [1, 2]\nif any((best := one) > 1 for one in data):\n    print(best)\n"}),
        Case({"train.py": "def setup():\n    global model\n    model = 1\n\n\nsetup()\nprint(model)\n"}),
        Case(
            {
                "train.py": "from __future__ import annotations\n\n"
                "def f(x: Tensor) -> 'Other':\n    y: Late = x\n    return y\n\nf(1)\n"
            }
        ),
        Case({"train.py": "rate = 2\ntwice = lambda one: one * rate\nprint(twice(3))\ndel rate\n"}),
        Case({"train.py": "try:\n    unicode\nexcept NameError:\n    unicode = str\n"}),
        Case({"train.py": "def unused():\n    return missing\n\nprint('done')\n"}),
        Case({"train.py": "import builtins\n\nbuiltins.log = print\nlog('x')\n"}),
    ),
)  # fmt: skip
