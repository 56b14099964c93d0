"""None is used as an object: the result of a function that returns nothing, or an unset value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero.check.program.syntax import Code, code_of, only_value
from epochzero.check.rule import (
    Claims,
    JobView,
    Module,
    Rule,
    claim_at,
    claim_failure,
    examples,
    failures,
    guarded,
)
from epochzero.check.view.called_functions import called_function, gives_nothing


def _check(view: JobView) -> Claims:
    reach = view.reach
    reported: set[tuple[str, int]] = set()
    for module in view.modules:
        for node, call, error in _uses(module, code_of(module)):
            function = called_function(view.program, module, call)
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
    for failed in failures(view.program, "none", reported=reported):
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


RULE = Rule(
    title="None is used as an object",
    category="null_reference",
    why="A function without a return statement returns None. Unpacking its result or reading an "
    "attribute of it ends the job, most often in evaluation code that was never run.",
    fix="Add the return statement, or do not use the result.",
    source="Zhang et al., ICSE 2020, Table 1, Null Reference",
    check=_check,
    cases=examples("""
        def test(model):
            accuracy = len(model)
            print(accuracy)


        loss, accuracy = test('m')  # <-
        ---- caught if
        -loss, accuracy = test('m')  # <-
        +print(test('m')['loss'])  # <-
        ---- caught if
        -loss, accuracy = test('m')  # <-
        +result = test('m')
        +print(result.loss)  # <-
        ---- caught if
        -loss, accuracy = test('m')  # <-
        +for row in test('m'):  # <-
        +    print(row)
        ---- ignored if
        -loss, accuracy = test('m')
        +test('m')
        ---- ignored if
        -loss, accuracy = test('m')
        +result = test('m')
        +print(result)
        ---- ignored if
        -loss, accuracy = test('m')
        +result = test('m')
        +if result:
        +    print(result.loss)
        ----
        class Runner:
            def test(self):
                loss = 1.0
                print(loss)


        runner = Runner()
        loss, accuracy = runner.test()  # <-
        ----
        names = ['b', 'a']
        names = names.sort()
        print(len(names))  # <-
        ----
        options = {'a': 1}
        print(options.get('b') + 1)  # <-
        ----
        best = None
        print(f'{best:.2f}')  # <-
        ----
        class T:
            def __init__(self):
                self.s = None

            def step(self):
                self.s and self.s.step()


        T().step()
        ---- caught if
        -        self.s and self.s.step()
        +        self.s.step()  # <-
        ----
        class T:
            def __init__(self):
                self.s = None

            def step(self):
                self.s.step()


        t = T()
        t.s = T()
        if t.s is None:
            t.step()
        ----
        best = None
        for loss in open('l.txt'):
            if best is not None:
                print(best.strip())
            best = loss
        ==> l.txt <==
        1
        2
        ----
        class Best:
            value = None

            def update(self, value):
                if self.value is None or value > self.value:
                    self.value = value
                return self.value + 1


        best = Best()
        for i in range(100):
            best.update(i)
        ----
        def find(x):
            if x:
                return [x]


        print(find(1)[0])
        ----
        def rows():
            yield 1


        for row in rows():
            print(row)
        ----
        class Base:
            def load(self):
                raise NotImplementedError


        class A(Base):
            def load(self):
                return [1]


        print(A().load()[0])
    """),
)
