"""A tensor cannot be converted to a number or an array."""

from __future__ import annotations

import ast

from epochzero.check.code import Code, code_of
from epochzero.check.origins import FLOATING, Origins
from epochzero.check.program.events import Called, Situation
from epochzero.check.program.values import Instance, Value
from epochzero.check.rules.base import (
    Claims,
    Program,
    Reach,
    Rule,
    SourceLocation,
    Target,
    claim_at,
    examples,
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


RULE = Rule(
    title="A tensor cannot be converted to a number or an array",
    category="tensor_mismatch",
    why="item() requires a tensor with one element, and numpy() a tensor on the CPU that does "
    "not require a gradient. Both are usually called where results are recorded, after the "
    "first epoch.",
    fix="Reduce the tensor before item(). Call detach() and cpu() before numpy().",
    source="PyTorch documentation, torch.Tensor.item and torch.Tensor.numpy",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(layer(x).item())  # <-
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(layer(x).softmax(1).numpy())  # <-
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 2)

            def forward(self, x):
                return self.fc(x)


        net = Net()
        for epoch in range(3):
            print(net(x).cpu().numpy().mean())  # <-
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(x.cuda().numpy())  # <-
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        net, criterion = nn.Sequential(layer, nn.ReLU()), nn.MSELoss()
        loss = criterion(net(x).squeeze(), torch.rand(4, 2))
        loss.backward()
        print(loss.numpy())  # <-
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        loss = nn.CrossEntropyLoss(reduction='none')
        def evaluate():
            print(x.sum(dim=1).item())  # <-


        evaluate()
    """),
    leaves=examples("""
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(layer(x).mean().item(), x.sum(1)[0].item())
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(layer(x).detach().numpy(), layer(x).softmax(1).detach().cpu().numpy())
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        with torch.no_grad():
            print(layer(x).numpy())
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 2)

            def forward(self, x):
                return self.fc(x)


        net = Net()
        @torch.no_grad()
        def evaluate():
            print(net(x).numpy())


        evaluate()
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(layer(x).to(torch.long).numpy(), layer(x).round().long().numpy())
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        print(layer(x).argmax(1).numpy(), x.numpy(), x.cuda().cpu().numpy())
        ----
        import lightning
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 2)

            def forward(self, x):
                return self.fc(x)


        net = Net()
        print(net(x).cpu().numpy())
        ----
        import torch
        from torch import nn

        x = torch.rand(4, 3)
        layer = nn.Linear(3, 2)
        torch.set_grad_enabled(False)
        print(layer(x).numpy())
    """),
)
