"""None is used as an object: the result of a function that returns nothing, or an unset value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero.check.calls import called_function, gives_nothing
from epochzero.check.code import Code, code_of, only_value
from epochzero.check.rules.base import (
    Case,
    Claims,
    Module,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    claim_failure,
    failures,
    guarded,
)


def _check(program: Program, target: Target) -> Claims:
    reach = Reach.of(program)
    reported: set[tuple[str, int]] = set()
    for module in program.modules.values():
        for node, call, error in _uses(module, code_of(module)):
            function = called_function(program, module, call)
            if function is None or not gives_nothing(function):
                continue
            at = reach.at(module, node)
            if at is not None and not guarded(at, TypeError, AttributeError):
                reported.add((at.place.path, at.place.line))
                yield claim_at(
                    at,
                    severity=reach.severity(at),
                    message=f"{function.name}() returns nothing, but its result is used.",
                    consequence=error,
                    fix=f"Return a value from {function.name}, or do not use its result.",
                )
    for failed in failures(program, "none", reported=reported):
        yield claim_failure(
            failed,
            message=f"A value is None when the job reaches this line: {failed.at.place.code}",
            fix="Set the value first, or check whether it is None.",
        )


def _uses(module: Module, code: Code) -> Iterator[tuple[ast.AST, ast.Call, str]]:
    """Where a value is used in a way that None does not allow, and the call that returned it."""
    for node, value, error in _wanted(code):
        if isinstance(value, ast.Name):
            given = only_value(module, value)
            if not isinstance(given, ast.Call) or value.id in code.asked:
                continue
            if code.scope(given) is code.scope(value):
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
_SCHEDULER = (
    "class T:\n    def __init__(self):\n        self.s = None\n\n    def step(self):\n"
    "        self.s.step()\n\n\n"
)

RULE = Rule(
    title="None is used as an object",
    category="null_reference",
    why="A function without a return statement returns None. Unpacking its result or reading an "
    "attribute of it ends the job, most often in evaluation code that was never run.",
    fix="Add the return statement, or do not use the result.",
    source="Zhang et al., ICSE 2020, Table 1, Null Reference",
    check=_check,
    catches=(
        Case({"train.py": f"{_TEST}loss, accuracy = test('m')\n"}, line=6),
        Case({"train.py": f"{_RUNNER}loss, accuracy = runner.test()\n"}, line=8),
        Case({"train.py": f"{_TEST}print(test('m')['loss'])\n"}, line=6),
        Case({"train.py": f"{_TEST}result = test('m')\nprint(result.loss)\n"}, line=7),
        Case({"train.py": f"{_TEST}for row in test('m'):\n    print(row)\n"}, line=6),
        Case({"train.py": "names = ['b', 'a']\nnames = names.sort()\nprint(len(names))\n"}, line=3),
        Case({"train.py": _SCHEDULER + "T().step()\n"}, line=6),
        Case({"train.py": "options = {'a': 1}\nprint(options.get('b') + 1)\n"}, line=2),
        Case({"train.py": "best = None\nprint(f'{best:.2f}')\n"}, line=2),
    ),
    leaves=(
        Case({"train.py": _SCHEDULER.replace("self.s.step()", "self.s and self.s.step()") + "T().step()\n"}),
        Case({"train.py": _SCHEDULER + "t = T()\nt.s = T()\nif t.s is None:\n    t.step()\n"}),
        Case({"train.py": "best = None\nfor loss in open('l.txt'):\n    if best is not None:\n"
              "        print(best.strip())\n    best = loss\n", "l.txt": "1\n2\n"}),
        Case({"train.py": "class Best:\n    value = None\n\n    def update(self, value):\n"
              "        if self.value is None or value > self.value:\n            self.value = value\n"
              "        return self.value + 1\n\n\nbest = Best()\nfor i in range(100):\n    best.update(i)\n"}),
        Case({"train.py": f"{_TEST}test('m')\n"}),
        Case({"train.py": f"{_TEST}result = test('m')\nprint(result)\n"}),
        Case({"train.py": f"{_TEST}result = test('m')\nif result:\n    print(result.loss)\n"}),
        Case({"train.py": "def find(x):\n    if x:\n        return [x]\n\n\nprint(find(1)[0])\n"}),
        Case({"train.py": "def rows():\n    yield 1\n\n\nfor row in rows():\n    print(row)\n"}),
        Case({"train.py": "class Base:\n    def load(self):\n        raise NotImplementedError\n\n\n"
              "class A(Base):\n    def load(self):\n        return [1]\n\n\nprint(A().load()[0])\n"}),
    ),
)  # fmt: skip
