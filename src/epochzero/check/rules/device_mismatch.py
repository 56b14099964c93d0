"""The job discards the result of moving a tensor to a device."""

from __future__ import annotations

import ast

from epochzero.check.builds import device_named
from epochzero.check.code import code_of
from epochzero.check.program.events import Called
from epochzero.check.program.values import Instance
from epochzero.check.rules.base import Claims, Program, Rule, Target, claim_at, examples

_MAKERS = frozenset(
    [
        "torch.rand",
        "torch.randn",
        "torch.zeros",
        "torch.ones",
        "torch.tensor",
        "torch.randint",
        "torch.arange",
        "torch.empty",
        "torch.full",
        "torch.from_numpy",
        "torch.stack",
        "torch.cat",
        "torch.as_tensor",
        "torch.eye",
        "torch.linspace",
    ]
)


def _check(program: Program, target: Target) -> Claims:
    statements = {
        (module.path, node.value.lineno, node.value.col_offset + 1)
        for module in program.modules.values()
        for node in code_of(module).of(ast.Expr)
        if isinstance(node.value, ast.Call)
    }
    reported = set()
    for call in program.calls:
        place = call.at.place
        is_alone = (place.path, place.line, place.column) in statements
        if is_alone and _moves_tensor(call) and place not in reported:
            reported.add(place)
            yield claim_at(
                call.at,
                severity="warning",
                message=".to() and .cuda() of a tensor return a new tensor. The result is discarded, "
                "and the original tensor stays on its device.",
                consequence="RuntimeError: Expected all tensors to be on the same device",
                fix="Assign the result: x = x.to(device).",
            )


def _moves_tensor(call: Called) -> bool:
    """Whether a call certainly moves a tensor: a module moves itself."""
    maker, _, method = call.name.rpartition(".")
    if not isinstance(call.receiver, Instance) or maker.removesuffix("()") not in _MAKERS:
        return False
    if method == "to":
        device = call.arguments[0] if call.arguments else call.keywords.get("device")
        made = device.made_by if isinstance(device, Instance) else ""
        return bool(device_named(device)) or made == "torch.device"
    return method in ("cuda", "cpu")


RULE = Rule(
    title="A tensor is moved to a device and the result is discarded",
    category="framework_api_misuse",
    why=".to() of a module moves the module itself; .to() of a tensor returns another tensor. "
    "Without an assignment the data stays on the CPU, which fails on the first machine with "
    "a GPU.",
    fix="Assign the result.",
    source="PyTorch documentation, torch.Tensor.to: returns a tensor; torch.nn.Module.to: modifies the "
    "module in-place",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        x.to('cuda')  # <-
        print(model(x))
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        x.cuda()  # <-
        print(model(x))
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        for i in range(2):
            x.to(torch.device('cuda'))  # <-
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        y = torch.tensor([1, 2])
        y.cuda()  # <-
    """),
    leaves=examples("""
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        x = x.to('cuda')
        print(model(x))
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        model.to('cuda')
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        print(model(x.to('cuda')))
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 2).to('cuda')
        x = torch.rand(4, 2)
        x.requires_grad_()
        ----
        def go(batch):
            batch.to('cuda')


        go(open('a'))
    """),
)
