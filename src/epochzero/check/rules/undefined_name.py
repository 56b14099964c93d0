"""The job uses a name that nothing defines."""

import ast
import builtins
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from epochzero.check.program.syntax import Code, Function, code_of
from epochzero.check.rule import Claim, Claims, JobView, Module, Rule, claim_failure, failures
from epochzero.check.rules.flakes import Flake, flakes, reading

# Modules that define names without an assignment.
_EVERYWHERE = ("builtins", "__builtin__")
_IN_MODULE = re.compile(r"\bglobals\(\)|\bsys\.modules\[__name__\]|\bexec\s*\(|\bvars\(\)|\binject")
_BUILTIN = frozenset(dir(builtins))
_OF_LAUNCHER = {"kernprof": {"profile"}, "ipython": {"get_ipython", "display"}}
ANNOTATIONS_ARE_LAZY = (3, 14)
"""Since this version annotations are evaluated lazily (PEP 649)."""


def _check(view: JobView) -> Claims:
    if any(word in module.text for module in view.modules for word in _EVERYWHERE):
        return
    given = {name for launcher in view.job.launchers for name in _OF_LAUNCHER.get(launcher, ())}
    reported: set[tuple[str, int]] = set()
    lazy = view.target.python is not None and view.target.python[:2] >= ANNOTATIONS_ARE_LAZY
    for flake in flakes(view, ("F821", "F823")):
        name = flake.values[0]
        if flake.code == "F821":
            if name in given or _is_bound_in_loop(flake, name) or _is_deleted_later(flake, name):
                continue
            if _is_evaluated(flake, name, lazy):
                yield _undefined(flake, name)
        else:
            yield _unbound(flake, name)
        reported.add((flake.at.place.path, flake.at.place.line))
    for failed in failures(view.program, "name", reported=reported):
        name = failed.message.split("'")[1]
        yield claim_failure(
            failed,
            message=f"{name} has no value when the job reaches this line.",
            fix=f"Assign {name} on every path that leads to this line.",
        )


def _is_bound_in_loop(flake: Flake, name: str) -> bool:
    """Whether an earlier iteration of a surrounding loop may have bound the name."""
    code = code_of(flake.module)
    around = code.around_line(flake.at.place.line, ast.For, ast.While)
    return bool(around) and any(
        node.id == name
        and isinstance(node.ctx, ast.Store)
        and loop.lineno <= node.lineno <= (loop.end_lineno or 0)
        for node in code.of(ast.Name)
        for loop in around
    )


def _is_deleted_later(flake: Flake, name: str) -> bool:
    """Whether a surrounding function deletes the name, perhaps after the call."""
    code = code_of(flake.module)
    around = code.around_line(
        flake.at.place.line, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
    )
    return any(
        node.id == name
        and isinstance(node.ctx, ast.Del)
        and not function.lineno <= node.lineno <= (function.end_lineno or 0)
        for node in code.of(ast.Name)
        for function in around
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
    return (flake.at.place.line, flake.column, name) in _evaluated(flake.module, lazy)


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
    unlikely = (*_annotations(code, lazy), *_second_operands(code))
    unread = {node for expression in unlikely for node in ast.walk(expression)}
    return frozenset(
        (node.lineno, node.col_offset, node.id) for node in code.of(ast.Name) if node not in unread
    )


def _second_operands(code: Code) -> Iterator[ast.expr]:
    """Operands that an earlier one may skip: ``sys.version_info[0] == 2 and isinstance(x, unicode)``."""
    for operation in code.of(ast.BoolOp):
        yield from operation.values[1:]
    for choice in code.of(ast.IfExp):
        yield from (choice.body, choice.orelse)


def _annotations(code: Code, lazy: bool) -> Iterator[ast.expr]:
    """The annotations that are not evaluated."""
    if lazy:
        yield from (parameter.annotation for parameter in code.of(ast.arg) if parameter.annotation)
        functions: list[Function] = [*code.of(ast.FunctionDef), *code.of(ast.AsyncFunctionDef)]
        yield from (function.returns for function in functions if function.returns)
    for given in code.of(ast.AnnAssign):
        # Annotations of a function's local variables never are (PEP 526).
        if lazy or code.function(given) is not None:
            yield given.annotation


RULE = Rule(
    category="undefined_variable",
    why="Python looks up a name only when the line with the name runs. A misspelled name or a "
    "missing import may therefore raise an error only after the first epoch.",
    fix="Define or import the name before using it.",
    source="Zhang et al., ICSE 2020, Table 1: Undefined Variable, 59 of 4,960 failures",
    check=_check,
    background=reading,
    examples="""
        import os

        epochs = 3
        print(epoch)  # <-
        os.getcwd()
        ----
        import os

        def save(path):
            os.makedirs(path)
            torch.save({}, path)  # <-

        if __name__ == '__main__':
            save('out')
        ----
        import sys

        def text(value):
            return isinstance(value, str) or (sys.version_info[0] == 2 and isinstance(value, unicode))

        print(text(3))
        ----
        import helper

        helper.run()
        ==> helper.py <==
        best = 0

        def run():
            print(best)  # <-
            best = 1
        ----
        $ python train.py --name rmsprop
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument('--name')
        args = parser.parse_args()
        if args.name == 'sgd':
            optimizer = 1
        elif args.name == 'adam':
            optimizer = 2
        print(optimizer)  # <-
        ----
        def last(items):
            for item in items:
                found = item
            return found  # <-


        last([])
        ---- ignored if
        -last([])
        +last(open('d.txt'))
        +==> d.txt <==
        +a
        ----
        def load():
            try:
                int('x')
            except ValueError as error:
                pass
            print(error)  # <-


        load()
        ----
        for epoch in range(9):
            if epoch > 0:
                print(last)
            last = epoch
        ----
        data = [1, 2]
        if any((best := one) > 1 for one in data):
            print(best)
        ----
        def setup():
            global model
            model = 1


        setup()
        print(model)
        ----
        from __future__ import annotations

        def f(x: Tensor) -> 'Other':
            y: Late = x
            return y

        f(1)
        ----
        rate = 2
        twice = lambda one: one * rate
        print(twice(3))
        del rate
        ----
        try:
            unicode
        except NameError:
            unicode = str
        ----
        def unused():
            return missing

        print('done')
        ----
        import builtins

        builtins.log = print
        log('x')
    """,
)
