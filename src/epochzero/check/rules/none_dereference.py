"""The result of a function that returns nothing is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from epochzero.check.calls import called_function, gives_nothing
from epochzero.check.code import Code, code_of, only_value
from epochzero.check.findings import Finding, Unknown
from epochzero.check.program.model import Module, Program
from epochzero.check.reach import Reach
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.situation import finding_at, guarded
from epochzero.check.target.model import Target

__all__ = ["RULE"]


def _check(program: Program, target: Target) -> Iterable[Finding | Unknown]:
    reach = Reach.of(program)
    for module in program.modules.values():
        for node, call, error in _uses(module, code_of(module)):
            function = called_function(program, module, call)
            if function is None or not gives_nothing(function):
                continue
            at = reach.at(module, node)
            if at is not None and not guarded(at, TypeError, AttributeError):
                yield finding_at(
                    at,
                    RULE.id,
                    RULE.category,
                    severity=reach.severity(at),
                    message=f"{function.name}() returns nothing, and its result is used.",
                    consequence=error,
                    fix=f"Let {function.name} return what is wanted, or do not use its result.",
                )


def _uses(module: Module, code: Code) -> Iterator[tuple[ast.AST, ast.Call, str]]:
    """Where a value is used in a way that None does not allow, and the call that gave the value."""
    for node, value, error in _wanted(code):
        if isinstance(value, ast.Name):
            given = only_value(module, value)
            same_function = given is not None and code.scope(given) is code.scope(value)
            if isinstance(given, ast.Call) and same_function and value.id not in code.asked:
                yield node, given, error
        elif isinstance(value, ast.Call):
            yield node, value, error


def _wanted(code: Code) -> Iterator[tuple[ast.AST, ast.expr, str]]:
    for assign in code.of(ast.Assign):
        if any(isinstance(one, ast.Tuple | ast.List) for one in assign.targets):
            error = "TypeError: cannot unpack non-iterable NoneType object"
            yield assign, assign.value, error
    for item in code.of(ast.Subscript):
        yield item, item.value, "TypeError: 'NoneType' object is not subscriptable"
    for attribute in code.of(ast.Attribute):
        error = f"AttributeError: 'NoneType' object has no attribute '{attribute.attr}'"
        yield attribute, attribute.value, error
    for loop in code.of(ast.For):
        yield loop, loop.iter, "TypeError: 'NoneType' object is not iterable"
    for operation in code.of(ast.BinOp):
        for side in (operation.left, operation.right):
            yield operation, side, "TypeError: unsupported operand type for None"


_TEST = "def test(model):\n    accuracy = len(model)\n    print(accuracy)\n\n\n"
_RUNNER = "class Runner:\n    def test(self):\n        loss = 1.0\n        print(loss)\n\n\nrunner = Runner()\n"

RULE = Rule(
    id="none-dereference",
    title="The result of a function that returns nothing is used",
    category="null_reference",
    why="A function without return gives None. Where its result is unpacked or asked for something, the "
    "job ends, most often in the evaluation that was never tried.",
    fix="Add the return, or leave the result alone.",
    source="Zhang et al., ICSE 2020, Table 1, Null Reference",
    check=_check,
    catches=(
        Case({"train.py": f"{_TEST}loss, accuracy = test('m')\n"}, line=6),
        Case({"train.py": f"{_RUNNER}loss, accuracy = runner.test()\n"}, line=8),
        Case({"train.py": f"{_TEST}print(test('m')['loss'])\n"}, line=6),
        Case({"train.py": f"{_TEST}result = test('m')\nprint(result.loss)\n"}, line=7),
        Case({"train.py": f"{_TEST}for row in test('m'):\n    print(row)\n"}, line=6),
    ),
    leaves=(
        Case({"train.py": f"{_TEST}test('m')\n"}),
        Case({"train.py": f"{_TEST}result = test('m')\nprint(result)\n"}),
        Case({"train.py": f"{_TEST}result = test('m')\nif result:\n    print(result.loss)\n"}),
        Case({"train.py": "def find(x):\n    if x:\n        return [x]\n\n\nprint(find(1)[0])\n"}),
        Case({"train.py": "def rows():\n    yield 1\n\n\nfor row in rows():\n    print(row)\n"}),
        Case({"train.py": "class Base:\n    def load(self):\n        raise NotImplementedError\n\n\n"
              "class A(Base):\n    def load(self):\n        return [1]\n\n\nprint(A().load()[0])\n"}),
    ),
)  # fmt: skip
