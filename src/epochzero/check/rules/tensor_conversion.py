"""A tensor cannot be converted to a number or an array."""

from __future__ import annotations

import ast

from epochzero.check.code import Code, code_of
from epochzero.check.origins import FLOATING, Origins
from epochzero.check.program.events import Called, Situation
from epochzero.check.program.values import Instance, Value
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    SourceLocation,
    Target,
    claim_at,
    guarded,
)
from epochzero.check.torch_usage import does_anywhere, has_framework_loop

_WEIGHTED = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "Embedding",
        "LayerNorm",
        "BatchNorm1d",
        "BatchNorm2d",
    )
)
"""Layers with parameters, whose results require a gradient."""
_LOSSES = ("loss", "cross_entropy", "cross_entropy_with_logits")
_DIFFERENTIABLE = frozenset(["abs", "clamp", "contiguous", "cpu", "exp", "flatten", "float", "log", "log_softmax",
                             "mean", "permute", "relu", "reshape", "sigmoid", "softmax", "sqrt", "squeeze",
                             "sum", "tanh", "to", "transpose", "unsqueeze", "view"])  # fmt: skip
"""Methods that propagate gradients."""
_FREEZING = ("set_grad_enabled", "requires_grad", "requires_grad_")
_Fault = tuple[str, str, str]
"""What is wrong, PyTorch's message, and the fix."""


def _check(program: Program, target: Target) -> Claims:
    reach = Reach.of(program)
    for call in program.calls:
        method = call.name.rpartition(".")[2]
        is_method = isinstance(call.receiver, Instance) and call.name.startswith("torch.")
        fault = None
        if is_method and method == "item" and not call.arguments:
            fault = _of_many(call)
        elif is_method and method == "numpy":
            fault = _with_gradient(program, call) or _on_gpu(program, call)
        if fault is not None and not guarded(call.at, RuntimeError, TypeError):
            message, consequence, fix = fault
            yield claim_at(
                call.at,
                severity=reach.severity(call.at),
                message=message,
                consequence=consequence,
                fix=fix,
            )


def _of_many(call: Called) -> _Fault | None:
    shape = call.receiver.shape if isinstance(call.receiver, Instance) else None
    if shape is None or not any(one is not None and one > 1 for one in shape):
        return None
    shown = ", ".join("?" if one is None else str(one) for one in shape)
    return (
        f"A tensor of shape [{shown}] is not a single number.",
        "RuntimeError: a Tensor with more than one element cannot be converted to Scalar",
        "Reduce it first, with mean() or sum(), or use tolist().",
    )


def _with_gradient(program: Program, call: Called) -> _Fault | None:
    """Values computed from parameters while gradients are enabled."""
    origins = Origins.of(program)
    is_whole = origins.number_type(call.receiver) not in ("", FLOATING)
    computed = not is_whole and _is_computed(origins, call.receiver)
    if not computed or _may_be_without(program, call.at):
        return None
    return (
        "The tensor requires a gradient, which an array cannot store.",
        "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        "Call detach() first, or compute it under torch.no_grad().",
    )


def _is_computed(origins: Origins, value: Value | None) -> bool:
    """Whether a tensor is computed from parameters through operations that propagate gradients."""
    for _ in range(16):
        maker = origins.maker(value)
        if maker is None:
            return False
        last = maker.name.rpartition(".")[2]
        if maker.name.endswith((*_LOSSES, "Loss().__call__")) and maker.arguments:
            value = maker.arguments[0]
        elif last == "__call__":
            return _has_weights(maker.receiver)
        elif last in _DIFFERENTIABLE:
            value = maker.receiver
        else:
            return False
    return False


def _has_weights(layer: Value | None) -> bool:
    if not isinstance(layer, Instance):
        return False
    within = layer.arguments if layer.made_by == "torch.nn.Sequential" else ()
    return layer.made_by in _WEIGHTED or any(map(_has_weights, within))


def _may_be_without(program: Program, at: Situation) -> bool:
    """Whether gradients may be disabled for an event, or its parameters may not require them."""
    # The trainers of frameworks call validation steps without gradients.
    if has_framework_loop(program) or does_anywhere(program, *_FREEZING):
        return True
    modules = {module.path: code_of(module) for module in program.modules.values()}
    return any(
        _is_without(modules[place.path], place)
        for place in (*at.via, at.place)
        if place.path in modules
    )


def _is_without(code: Code, place: SourceLocation) -> bool:
    """Whether a context manager or a decorator around a line may disable gradients."""
    blocks: list[ast.With | ast.FunctionDef] = [*code.of(ast.With), *code.of(ast.FunctionDef)]
    around = [one for one in blocks if one.lineno <= place.line <= (one.end_lineno or 0)]
    return any(isinstance(one, ast.With) or one.decorator_list for one in around)


def _on_gpu(program: Program, call: Called) -> _Fault | None:
    """Values that are moved to the GPU in the same expression."""
    value = Origins.of(program).maker(call.receiver)
    moved = value is not None and value.name.endswith(".cuda")
    if not moved:
        return None
    return (
        "The tensor is on the GPU, but NumPy arrays are on the CPU.",
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
        "host memory first.",
        "Call cpu() first.",
    )


_HEAD = "import torch\nfrom torch import nn\n\nx = torch.rand(4, 3)\nlayer = nn.Linear(3, 2)\n"
_NET = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.fc = nn.Linear(3, 2)\n\n    def forward(self, x):\n        return self.fc(x)\n\n\n"
    "net = Net()\n"
)

RULE = Rule(
    title="A tensor cannot be converted to a number or an array",
    category="tensor_mismatch",
    why="item() requires a tensor with one element, and numpy() a tensor on the CPU that does "
    "not require a gradient. Both are usually called where results are recorded, after the "
    "first epoch.",
    fix="Reduce the tensor before item(). Call detach() and cpu() before numpy().",
    source="PyTorch documentation, torch.Tensor.item and torch.Tensor.numpy",
    check=_check,
    catches=(
        Case({"train.py": f"{_HEAD}print(layer(x).item())\n"}, line=6),
        Case({"train.py": f"{_HEAD}print(layer(x).softmax(1).numpy())\n"}, line=6),
        Case({"train.py": f"{_HEAD}{_NET}for epoch in range(3):\n    print(net(x).cpu().numpy().mean())\n"}, line=17),
        Case({"train.py": f"{_HEAD}print(x.cuda().numpy())\n"}, line=6),
        Case({"train.py": f"{_HEAD}net, criterion = nn.Sequential(layer, nn.ReLU()), nn.MSELoss()\n"
              "loss = criterion(net(x).squeeze(), torch.rand(4, 2))\nloss.backward()\nprint(loss.numpy())\n"}, line=9),
        Case({"train.py": f"{_HEAD}loss = nn.CrossEntropyLoss(reduction='none')\n"
              "def evaluate():\n    print(x.sum(dim=1).item())\n\n\nevaluate()\n"}, line=8),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}print(layer(x).mean().item(), x.sum(1)[0].item())\n"}),
        Case({"train.py": f"{_HEAD}print(layer(x).detach().numpy(), layer(x).softmax(1).detach().cpu().numpy())\n"}),
        Case({"train.py": f"{_HEAD}with torch.no_grad():\n    print(layer(x).numpy())\n"}),
        Case({"train.py": f"{_HEAD}{_NET}@torch.no_grad()\ndef evaluate():\n    print(net(x).numpy())\n\n\nevaluate()\n"}),
        Case({"train.py": f"{_HEAD}print(layer(x).to(torch.long).numpy(), layer(x).round().long().numpy())\n"}),
        Case({"train.py": f"{_HEAD}print(layer(x).argmax(1).numpy(), x.numpy(), x.cuda().cpu().numpy())\n"}),
        Case({"train.py": f"import lightning\n{_HEAD}{_NET}print(net(x).cpu().numpy())\n"}),
        Case({"train.py": f"{_HEAD}torch.set_grad_enabled(False)\nprint(layer(x).numpy())\n"}),
    ),
)  # fmt: skip
