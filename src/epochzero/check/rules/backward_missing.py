"""An optimizer steps without gradients."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.torch_usage import does_anywhere, has_framework_loop, optimizer_steps


def _check(program: Program, target: Target) -> Claims:
    gives = does_anywhere(program, "backward", "grad", "autograd", "manual_backward", "func")
    if gives or has_framework_loop(program):
        return
    for call in optimizer_steps(program):
        if call.at.loop and not call.arguments and not call.keywords:
            yield claim_at(
                call.at,
                severity="warning",
                message="The optimizer steps, but the job never calls backward().",
                consequence="The model never changes: the loss is the same in all epochs",
                fix="Call loss.backward() before optimizer.step().",
            )
            return


_HEAD = (
    "import torch\nfrom torch import nn\n\nmodel = nn.Linear(4, 1)\n"
    "optimizer = torch.optim.Adam(model.parameters())\n"
)
_LOOP = "for step in range(100):\n    loss = model(torch.rand(8, 4)).mean()\n    optimizer.zero_grad()\n"
_FUNCTION = {
    "train.py": f"{_HEAD}\n\ndef train(model, optimizer):\n    for step in range(10):\n"
    "        optimizer.zero_grad()\n        loss = model(torch.rand(8, 4)).sum()\n"
    "        optimizer.step()\n\n\ntrain(model, optimizer)\n"
}

RULE = Rule(
    title="The optimizer steps without gradients",
    category="framework_api_misuse",
    why="step() silently skips parameters without gradients: the training runs to its end "
    "without learning anything.",
    fix="Call loss.backward() before optimizer.step().",
    source="PyTorch documentation, torch.optim.Optimizer.step and autograd",
    check=_check,
    catches=(
        Case({"train.py": f"{_HEAD}{_LOOP}    optimizer.step()\n"}, line=9),
        Case(_FUNCTION, line=12),
        Case({"train.py": f"{_HEAD}{_LOOP}    optimizer.step()\n    print(loss.item())\n"}, line=9),
        Case({"train.py": _HEAD + "while True:\n    loss = model(torch.rand(8, 4)).mean()\n"
              "    optimizer.step()\n"}, line=8),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}{_LOOP}    loss.backward()\n    optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}{_LOOP}    torch.autograd.backward(loss)\n    optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}{_LOOP}    for p in model.parameters():\n        p.grad = p\n"
              "    optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}{_LOOP}    optimizer.step(lambda: loss)\n"}),
    ),
)  # fmt: skip
