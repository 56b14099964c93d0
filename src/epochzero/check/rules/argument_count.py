"""A call passes arguments that the job's own function or class does not accept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero.check.program.syntax import Code, code_of, method_counts, resolve, stored_attributes
from epochzero.check.rule import (
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    claim_at,
    claim_failure,
    examples,
    failures,
    guarded,
)
from epochzero.check.target.model import Signature
from epochzero.check.target.signature import misfit
from epochzero.check.view.called_functions import (
    called_method,
    constructor,
    given,
    method_of,
    own_bases,
    parameters,
)


def _check(view: JobView) -> Claims:
    reach = view.reach
    reported: set[tuple[str, int]] = set()
    for module in view.modules:
        code = code_of(module)
        for call, name, signature in _calls(view.program, module, code):
            wrong = misfit(signature, *given(call))
            at = reach.at(module, call) if wrong else None
            if at is not None and not guarded(at, TypeError):
                reported.add((at.place.path, at.place.line))
                yield claim_at(
                    at,
                    severity=reach.severity(at),
                    message=f"{name}() {wrong}.",
                    consequence=f"TypeError: {name}() {wrong}",
                    fix=_fix(name, signature),
                )
    for failed in failures(view.program, "arguments", reported=reported):
        yield claim_failure(
            failed,
            message=f"{failed.message}.",
            fix="Pass the arguments that the function accepts.",
        )


def _fix(name: str, signature: Signature) -> str:
    names = ", ".join(dict.fromkeys([*signature.positional, *signature.keywords]))
    return (
        f"Pass the parameters of {name}: {names}." if names else f"Call {name} without arguments."
    )


def _calls(
    program: Program, module: Module, code: Code
) -> Iterator[tuple[ast.Call, str, Signature]]:
    """The calls whose target is known."""
    for call in code.of(ast.Call):
        own = resolve(program, module, call.func)
        if own is not None:
            signature = constructor(program, *own)
            name = own[1].name
        else:
            method = called_method(program, module, call)
            signature = (
                parameters(method, bound=True)
                if method is not None
                else _of_self(program, module, code, call)
            )
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if signature is not None:
            yield call, name, signature


def _of_self(program: Program, module: Module, code: Code, call: ast.Call) -> Signature | None:
    """The parameters of a method that is called on ``self``."""
    func = call.func
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
        return None
    # Several classes may define it, or another object may be stored under its name.
    if method_counts(program)[func.attr] != 1 or func.attr in stored_attributes(program):
        return None
    cls, function = code.class_around(call), code.function(call)
    if cls is None or function is None or code.parent.get(function) is not cls:
        return None
    arguments = [*function.args.posonlyargs, *function.args.args]
    if function.decorator_list or not arguments or arguments[0].arg != func.value.id:
        return None
    line = own_bases(program, module, cls)
    found = method_of(line, func.attr) if line is not None else None
    return parameters(found[1], bound=True) if found is not None else None


RULE = Rule(
    title="A call passes arguments that the job's own function or class does not accept",
    category="illegal_argument",
    why="Python checks arguments when the call runs: a wrong call in the evaluation fails after "
    "the training.",
    fix="Pass the arguments that the function accepts.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument; section 5.5, common programming errors",
    check=_check,
    cases=examples("""
        def train(model, loader, epochs=3):
            print(model, loader, epochs)


        train('m')  # <-
        ---- caught if
        -train('m')  # <-
        +train('m', 'l', epoch=4)  # <-
        ---- caught if
        -train('m')  # <-
        +train('m', 'l', 3, 4)  # <-
        ---- ignored if
        -train('m')
        +train('m', loader='l')
        ---- ignored if
        -train('m')
        +args = ['m', 'l']
        +train(*args)
        ----
        class Trainer:
            def fit(self, data):
                print(len(data))
                for batch in data:
                    self.step(batch, 1)  # <-

            def step(self, batch):
                print(batch)


        Trainer().fit([1])
        ----
        from models import build

        build(depth=2)  # <-
        ==> models.py <==
        def build(width, depth):
            return width, depth
        ----
        from multiprocessing import Pool


        def by(model, name):
            return name


        with Pool(2) as pool:
            pool.map(by, [1, 2])  # <-
        ----
        from torch.utils.data import DataLoader


        def collate():
            return 1


        for batch in DataLoader([1, 2], collate_fn=collate):  # <-
            print(batch)
        ----
        from torch import nn

        layer = nn.Linear(2, 2)
        layer.register_forward_hook(lambda module, output: print(output))  # <-
        ----
        def train(model, loader, epochs=3):
            print(model, loader, epochs)


        options = {'loader': 1, 'rate': 2}
        step = train
        step('m', **options)  # <-
        ----
        from functools import partial


        def scale(x, by):
            return x * by


        double = partial(scale, 2)
        print(double(3, 4))  # <-
        ----
        MODELS = {}


        def register(f):
            MODELS[f.__name__] = f
            return f


        @register
        def net(width, depth):
            return width * depth
        print(MODELS['net'](3, depth=2))
        ---- caught if
        -print(MODELS['net'](3, depth=2))
        +print(MODELS['net'](width=3))  # <-
        ----
        def by(model, name):
            return name


        print(list(map(by, [1, 2], 'ab')), sorted([1], key=lambda one: one))
        ---- caught if
        -print(list(map(by, [1, 2], 'ab')), sorted([1], key=lambda one: one))
        +print(list(map(by, [1, 2])))  # <-
        ---- caught if
        -print(list(map(by, [1, 2], 'ab')), sorted([1], key=lambda one: one))
        +print(sorted([1, 2], key=by))  # <-
        ----
        from functools import partial


        def by(model, name):
            return name


        print(sorted([1, 2], key=partial(by, 1)))
        ----
        from concurrent.futures import ThreadPoolExecutor


        def by(model, name):
            return name


        with ThreadPoolExecutor() as pool:
            pool.submit(by, 1)
        ----
        from torch import nn

        layer = nn.Linear(2, 2)
        layer.register_forward_hook(lambda *given: print(given))
        layer.register_forward_hook(lambda m, a, k, o: print(o), with_kwargs=True)
        ----
        from dataclasses import dataclass


        @dataclass
        class Settings:
            rate: float
            epochs: int = 3


        print(Settings(0.1, epochs=2), Settings(rate=1))
        ---- caught if
        -print(Settings(0.1, epochs=2), Settings(rate=1))
        +print(Settings(epochs=2))  # <-
        ---- caught if
        -print(Settings(0.1, epochs=2), Settings(rate=1))
        +print(Settings(rate=1, epoch=2))  # <-
        ----
        from functools import wraps


        def with_seed(f):
            @wraps(f)
            def inner(*a):
                return f(*a, seed=1)

            return inner


        @with_seed
        def test(model, seed):
            print(model, seed)


        run = test
        run('m')
        ----
        class Net:
            def __new__(cls, *a):
                return object.__new__(cls)


        print(Net(1))
        ----
        from torch import nn


        class Net(nn.Module):
            def __init__(self, width, classes):
                super().__init__()
                self.fc = nn.Linear(width, classes)

            def forward(self, x):
                return self.fc(x)


        model = Net(10, classes=2)
        ---- caught if
        -model = Net(10, classes=2)
        +model = Net(10)  # <-
        ---- caught if
        -    def forward(self, x):
        +    def forward(self, x, mask):
        @@
        -model = Net(10, classes=2)
        +model = Net(10, 2)
        +print(model(1))  # <-
        ----
        import click


        @click.command()
        @click.option('--n')
        def main(n):
            print(n)


        main()
        ----
        def make(kind):
            return kind


        if True:
            make = lambda: 1
        make()
        ----
        from dataclasses import dataclass


        @dataclass
        class Settings:
            rate: float = 0.1


        print(Settings(rate=0.2))
        ----
        import argparse


        class Parser(argparse.ArgumentParser):
            pass


        print(Parser(description='x'))
        ----
        def unused(a, b):
            return a


        def never():
            return unused(1)
    """),
)
