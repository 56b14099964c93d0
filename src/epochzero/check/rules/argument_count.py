"""A call passes arguments that the job's own function or class does not accept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from epochzero.check.call_signatures import misfit
from epochzero.check.calls import (
    called_method,
    constructor,
    given,
    method_of,
    own_bases,
    parameters,
)
from epochzero.check.code import Code, code_of, method_counts, resolve, stored_attributes
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
from epochzero.check.target.model import Signature


def _check(program: Program, target: Target) -> Claims:
    reach = Reach.of(program)
    reported: set[tuple[str, int]] = set()
    for module in program.modules.values():
        code = code_of(module)
        for call, name, signature in _calls(program, module, code):
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
    for failed in failures(program, "arguments", reported=reported):
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


_TRAIN = "def train(model, loader, epochs=3):\n    print(model, loader, epochs)\n\n\n"
_NET = (
    "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, width, classes):\n"
    "        super().__init__()\n        self.fc = nn.Linear(width, classes)\n\n"
    "    def forward(self, x):\n        return self.fc(x)\n\n\n"
)
_METHOD = (
    "class Trainer:\n    def fit(self, data):\n        print(len(data))\n        for batch in data:\n"
    "            self.step(batch, 1)\n\n    def step(self, batch):\n        print(batch)\n\n\n"
)
_REGISTRY = (
    "MODELS = {}\n\n\ndef register(f):\n    MODELS[f.__name__] = f\n    return f\n\n\n@register\n"
    "def net(width, depth):\n    return width * depth\n"
)
_BY = "def by(model, name):\n    return name\n\n\n"
_DATA = (
    "from dataclasses import dataclass\n\n\n@dataclass\nclass Settings:\n    rate: float\n"
    "    epochs: int = 3\n\n\n"
)

RULE = Rule(
    title="A call passes arguments that the job's own function or class does not accept",
    category="illegal_argument",
    why="Python checks arguments when the call runs: a wrong call in the evaluation fails after "
    "the training.",
    fix="Pass the arguments that the function accepts.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument; section 5.5, common programming errors",
    check=_check,
    catches=(
        Case({"train.py": f"{_TRAIN}train('m')\n"}, line=5),
        Case({"train.py": f"{_TRAIN}train('m', 'l', epoch=4)\n"}, line=5),
        Case({"train.py": f"{_TRAIN}train('m', 'l', 3, 4)\n"}, line=5),
        Case({"train.py": f"{_NET}model = Net(10)\n"}, line=13),
        Case({"train.py": f"{_METHOD}Trainer().fit([1])\n"}, line=5),
        Case(
            {"train.py": "from models import build\n\nbuild(depth=2)\n",
             "models.py": "def build(width, depth):\n    return width, depth\n"},
            line=3,
        ),
        Case({"train.py": f"{_REGISTRY}print(MODELS['net'](width=3))\n"}, line=12),
        Case({"train.py": f"{_BY}print(list(map(by, [1, 2])))\n"}, line=5),
        Case({"train.py": f"{_BY}print(sorted([1, 2], key=by))\n"}, line=5),
        Case({"train.py": f"from multiprocessing import Pool\n\n\n{_BY}with Pool(2) as pool:\n"
              "    pool.map(by, [1, 2])\n"}, line=9),
        Case({"train.py": "from torch.utils.data import DataLoader\n\n\ndef collate():\n    return 1\n\n\n"
              "for batch in DataLoader([1, 2], collate_fn=collate):\n    print(batch)\n"}, line=8),
        Case({"train.py": "from torch import nn\n\nlayer = nn.Linear(2, 2)\n"
              "layer.register_forward_hook(lambda module, output: print(output))\n"}, line=4),
        Case({"train.py": f"{_DATA}print(Settings(epochs=2))\n"}, line=10),
        Case({"train.py": f"{_DATA}print(Settings(rate=1, epoch=2))\n"}, line=10),
        Case({"train.py": f"{_TRAIN}options = {{'loader': 1, 'rate': 2}}\nstep = train\nstep('m', **options)\n"},
             line=7),
        Case({"train.py": "from functools import partial\n\n\ndef scale(x, by):\n    return x * by\n\n\n"
              "double = partial(scale, 2)\nprint(double(3, 4))\n"}, line=9),
        Case({"train.py": _NET.replace("x):", "x, mask):") + "model = Net(10, 2)\nprint(model(1))\n"},
             line=14),
    ),
    leaves=(
        Case({"train.py": f"{_REGISTRY}print(MODELS['net'](3, depth=2))\n"}),
        Case({"train.py": f"{_BY}print(list(map(by, [1, 2], 'ab')), sorted([1], key=lambda one: one))\n"}),
        Case({"train.py": f"from functools import partial\n\n\n{_BY}print(sorted([1, 2], key=partial(by, 1)))\n"}),
        Case({"train.py": f"from concurrent.futures import ThreadPoolExecutor\n\n\n{_BY}"
              "with ThreadPoolExecutor() as pool:\n    pool.submit(by, 1)\n"}),
        Case({"train.py": "from torch import nn\n\nlayer = nn.Linear(2, 2)\n"
              "layer.register_forward_hook(lambda *given: print(given))\n"
              "layer.register_forward_hook(lambda m, a, k, o: print(o), with_kwargs=True)\n"}),
        Case({"train.py": f"{_DATA}print(Settings(0.1, epochs=2), Settings(rate=1))\n"}),
        Case({"train.py": "from functools import wraps\n\n\ndef with_seed(f):\n    @wraps(f)\n"
              "    def inner(*a):\n        return f(*a, seed=1)\n\n    return inner\n\n\n@with_seed\n"
              "def test(model, seed):\n    print(model, seed)\n\n\nrun = test\nrun('m')\n"}),
        Case({"train.py": "class Net:\n    def __new__(cls, *a):\n        return object.__new__(cls)\n\n\n"
              "print(Net(1))\n"}),
        Case({"train.py": f"{_TRAIN}train('m', loader='l')\n"}),
        Case({"train.py": f"{_TRAIN}args = ['m', 'l']\ntrain(*args)\n"}),
        Case({"train.py": f"{_NET}model = Net(10, classes=2)\n"}),
        Case({"train.py": "import click\n\n\n@click.command()\n@click.option('--n')\ndef main(n):\n"
              "    print(n)\n\n\nmain()\n"}),
        Case({"train.py": "def make(kind):\n    return kind\n\n\nif True:\n    make = lambda: 1\nmake()\n"}),
        Case({"train.py": "from dataclasses import dataclass\n\n\n@dataclass\nclass Settings:\n"
              "    rate: float = 0.1\n\n\nprint(Settings(rate=0.2))\n"}),
        Case({"train.py": "import argparse\n\n\nclass Parser(argparse.ArgumentParser):\n    pass\n\n\n"
              "print(Parser(description='x'))\n"}),
        Case({"train.py": "def unused(a, b):\n    return a\n\n\ndef never():\n    return unused(1)\n"}),
    ),
)  # fmt: skip
