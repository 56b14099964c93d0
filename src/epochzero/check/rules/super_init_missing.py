"""The constructor of a module does not call that of nn.Module."""

import ast

from epochzero.check.program.syntax import Code, Function, code_of, resolve
from epochzero.check.rule import Claims, JobView, Module, Program, Rule, claim_at

_MODULE = frozenset({"torch.nn.Module", "torch.nn.modules.Module"})
_DEEPEST = 8


def _check(view: JobView) -> Claims:
    reach = view.reach
    for module in view.modules:
        code = code_of(module)
        for cls in code.of(ast.ClassDef):
            if not _is_module(view.program, module, cls):
                continue
            init = next((method for method in code.methods(cls) if method.name == "__init__"), None)
            set_first = _first_layer(code, init) if init else None
            at = reach.at(module, set_first) if set_first is not None else None
            if at is not None:
                yield claim_at(
                    at,
                    severity=reach.severity(at),
                    message=f"{cls.name}.__init__ assigns a layer before, or without, calling "
                    "super().__init__().",
                    consequence="AttributeError: cannot assign module before Module.__init__() call",
                )


def _is_module(program: Program, module: Module, cls: ast.ClassDef) -> bool:
    """Whether a class derives from nn.Module and from no unknown class."""
    bases = _library_bases(program, module, cls)
    return bool(bases) and bases <= _MODULE


def _library_bases(program: Program, module: Module, cls: ast.ClassDef, depth: int = 0) -> set[str]:
    """The library classes that a class derives from; an empty name for an unknown one."""
    if depth > _DEEPEST or cls.keywords or cls.decorator_list:
        return {""}
    names: set[str] = set()
    for base in cls.bases:
        resolved = resolve(program, module, base)
        if resolved is not None and isinstance(resolved[1], ast.ClassDef):
            names |= _library_bases(program, resolved[0], resolved[1], depth + 1)
        else:
            names.add(code_of(module).imported_name(base))
    return names


def _first_layer(code: Code, init: Function) -> ast.AST | None:
    """Where ``self.x = nn.Something(...)`` precedes every call that may be the base constructor."""
    for statement in init.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node.attr == "__init__":
                return None
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "super"
            ):
                return None
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            made = code.imported_name(statement.value.func)
            to_self = any(
                isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                for target in statement.targets
            )
            if to_self and made.startswith("torch.nn.") and made.rpartition(".")[2][:1].isupper():
                return statement
    return None


RULE = Rule(
    category="framework_api_misuse",
    why="The constructor of nn.Module prepares the registration of layers. Assigning a layer "
    "raises an error if this constructor has not run yet.",
    fix="Start __init__ with super().__init__().",
    source="PyTorch documentation, torch.nn.Module: super().__init__() must be called before assignment "
    "on the child",
    check=_check,
    examples="""
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                self.fc = nn.Linear(2, 2)  # <-

            def forward(self, x):
                return self.fc(x)


        print(Net())
        ---- caught if
        -        self.fc = nn.Linear(2, 2)  # <-
        +        self.width = 2
        +        self.fc = nn.Linear(2, self.width)  # <-
        ---- caught if
                 self.fc = nn.Linear(2, 2)  # <-
        +        super().__init__()
        ---- ignored if
             def __init__(self):
        +        super(Net, self).__init__()
        ---- ignored if
             def __init__(self):
        +        nn.Module.__init__(self)
        ---- ignored if
        -class Net(nn.Module):
        +class Net(object):
    """,
)
