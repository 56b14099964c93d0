"""Layers are stored in a plain list, where their module does not find them."""

import ast
from collections.abc import Iterator

from epochzero.check.program.syntax import Code, Function, code_of
from epochzero.check.rule import Claims, JobView, Rule, claim_at

_MODULE = frozenset({"torch.nn.Module", "torch.nn.modules.Module"})
_WITHOUT_PARAMETERS = frozenset(
    """
    ReLU GELU Tanh Sigmoid Softmax LogSoftmax ELU SELU LeakyReLU SiLU Hardtanh Identity Flatten
    Dropout Dropout1d Dropout2d MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d
    AdaptiveAvgPool2d Upsample MSELoss CrossEntropyLoss L1Loss BCELoss BCEWithLogitsLoss NLLLoss
    SmoothL1Loss KLDivLoss
    """.split()
)


def _check(view: JobView) -> Claims:
    reach = view.reach
    for module in view.modules:
        code = code_of(module)
        for cls in code.of(ast.ClassDef):
            if not _MODULE.intersection(code.library_bases(cls)):
                continue
            init = next((method for method in code.methods(cls) if method.name == "__init__"), None)
            for name, node in _plain(code, init) if init is not None else ():
                at = reach.at(module, node)
                if at is not None and not _is_registered(cls, name):
                    yield claim_at(
                        at,
                        severity="warning",
                        message=f"The layers in self.{name} are in a plain "
                        f"{'dictionary' if isinstance(node, ast.Dict | ast.DictComp) else 'list'}: "
                        "the module does not register them.",
                        consequence="They are not trained, not saved, and not moved to the GPU: Expected "
                        "all tensors to be on the same device",
                    )


def _plain(code: Code, init: Function) -> Iterator[tuple[str, ast.expr]]:
    """Attributes that are set to a list or dictionary of layers with parameters."""
    for statement in ast.walk(init):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Attribute) and _layers(code, value):
            yield target.attr, value


def _layers(code: Code, value: ast.expr) -> bool:
    match value:
        case ast.List():
            items = value.elts
        case ast.ListComp():
            items = [value.elt]
        case ast.Dict():
            items = value.values
        case ast.DictComp():
            items = [value.value]
        case _:
            return False
    return any(_has_parameters(code, item) for item in items)


def _has_parameters(code: Code, item: ast.expr) -> bool:
    if not isinstance(item, ast.Call):
        return False
    name = code.imported_name(item.func)
    last = name.rpartition(".")[2]
    inside = name.startswith("torch.nn.") and name.count(".") == 2
    return inside and last[:1].isupper() and last not in _WITHOUT_PARAMETERS and last != "Parameter"


def _is_registered(cls: ast.ClassDef, name: str) -> bool:
    """Whether the class passes the list to something that may register the layers."""
    for node in ast.walk(cls):
        if isinstance(node, ast.Attribute) and node.attr in ("add_module", "register_module"):
            return True
        if isinstance(node, ast.Call):
            inside = [*node.args, *(keyword.value for keyword in node.keywords)]
            for argument in inside:
                value = argument.value if isinstance(argument, ast.Starred) else argument
                if isinstance(value, ast.Attribute) and value.attr == name:
                    called = node.func.id if isinstance(node.func, ast.Name) else ""
                    if called not in ("enumerate", "zip", "len", "range", "reversed", "print"):
                        return True
    return False


RULE = Rule(
    category="framework_api_misuse",
    why="nn.Module registers modules that are attributes, but not modules in plain lists. The "
    "optimizer and the checkpoints do not include the parameters of unregistered modules, and "
    ".cuda() does not move these parameters.",
    fix="Store the layers in nn.ModuleList, nn.ModuleDict or nn.Sequential.",
    source="PyTorch documentation, torch.nn.ModuleList: modules it contains are properly registered",
    check=_check,
    examples="""
        from torch import nn


        class Net(nn.Module):
            def __init__(self, n=3):
                super().__init__()
                self.layers = [nn.Linear(4, 4) for _ in range(n)]  # <-

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x


        print(Net())
        ---- caught if
        -        self.layers = [nn.Linear(4, 4) for _ in range(n)]  # <-
        +        self.layers = {'a': nn.Conv2d(3, 3, 1)}  # <-
        ---- ignored if
        -        self.layers = [nn.Linear(4, 4) for _ in range(n)]
        +        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])
        ---- ignored if
        -        self.layers = [nn.Linear(4, 4) for _ in range(n)]
        +        self.layers = [nn.ReLU(), nn.Dropout(0.1)]
        ---- ignored if
        -        self.layers = [nn.Linear(4, 4) for _ in range(n)]
        +        self.layers = [nn.Linear(4, 4)]
        +        self.net = nn.Sequential(*self.layers)
        ---- ignored if
        -        self.layers = [nn.Linear(4, 4) for _ in range(n)]
        +        layers = [nn.Linear(4, 4)]
        +        self.layers = nn.Sequential(*layers)
        ---- ignored if
        -        self.layers = [nn.Linear(4, 4) for _ in range(n)]
        +        self.layers = [1, 2]
    """,
)
