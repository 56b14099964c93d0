"""A torch module is called but has no forward method."""

from __future__ import annotations

import ast

from epochzero.check.program.syntax import code_of, made_class
from epochzero.check.rule import (
    Claims,
    JobView,
    Module,
    Program,
    Rule,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.view.called_functions import method_of, own_bases

_MODULE = frozenset({"torch.nn.Module", "torch.nn.modules.Module"})


def _check(view: JobView) -> Claims:
    reach = view.reach
    for module in view.modules:
        for call in code_of(module).of(ast.Call):
            made = made_class(view.program, module, call.func)
            if made is None or not _lacks_forward(view.program, *made):
                continue
            at = reach.at(module, call)
            if at is not None and not guarded(at, NotImplementedError):
                name = made[1].name
                yield claim_at(
                    at,
                    severity=reach.severity(at),
                    message=f"The model is called, but its class {name} has no forward method.",
                    consequence=f"NotImplementedError: Module [{name}] is missing the required "
                    '"forward" function',
                    fix=f"Define forward in {name}. Check whether its indentation puts it outside "
                    "the class.",
                )


def _lacks_forward(program: Program, module: Module, cls: ast.ClassDef) -> bool:
    line = own_bases(program, module, cls)
    names = [name for where, one in line or () for name in code_of(where).library_bases(one)]
    if line is None or not names or not all(name in _MODULE for name in names):
        return False
    stored = any(
        node.attr in ("forward", "__call__") and isinstance(node.ctx, ast.Store)
        for where in program.modules.values()
        for node in code_of(where).of(ast.Attribute)
    )
    written = any("forward" in ast.dump(statement) for _, one in line for statement in one.body
                  if not isinstance(statement, ast.FunctionDef))  # fmt: skip
    return not (stored or written or method_of(line, "forward") or method_of(line, "__call__"))


RULE = Rule(
    title="A model is called, but its class has no forward method",
    category="not_implemented",
    why="Calling a module runs its forward method. A method outside the class, by its "
    "indentation or under another name, does not count.",
    fix="Define forward in the class.",
    source="PyTorch documentation, torch.nn.Module.forward: should be overridden by all subclasses",
    check=_check,
    cases=examples("""
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)


        def forward(self, x):
            return self.fc(x)


        model = Net()
        print(model(torch.rand(2, 2)))  # <-
        ----
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)


        print(Net()(torch.rand(2, 2)))  # <-
        ---- caught if
                 self.fc = nn.Linear(2, 2)

        +    def foward(self, x):
        +        return self.fc(x)
        +
        ---- caught if
        -print(Net()(torch.rand(2, 2)))  # <-
        +net = Net()
        +for step in range(3):
        +    print(net(torch.rand(2, 2)))  # <-
        ---- ignored if
                 self.fc = nn.Linear(2, 2)

        +    def forward(self, x):
        +        return self.fc(x)
        +
        ---- ignored if
        -print(Net()(torch.rand(2, 2)))
        +print(Net())
        ---- ignored if
        -class Net(nn.Module):
        +class Net(nn.Sequential):
        ---- ignored if
                 self.fc = nn.Linear(2, 2)

        +    forward = lambda self, x: self.fc(x)
        +
        ---- ignored if
                 self.fc = nn.Linear(2, 2)

        +    def __call__(self, x):
        +        return self.fc(x)
        +
    """),
)
