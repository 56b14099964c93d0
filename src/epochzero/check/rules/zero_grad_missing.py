"""Gradients are not reset between training steps."""

from __future__ import annotations

from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.torch_usage import (
    backward_calls,
    does_anywhere,
    has_framework_loop,
    optimizer_steps,
)


def _check(program: Program, target: Target) -> Claims:
    steps = [one for one in optimizer_steps(program) if one.at.loop]
    clears = does_anywhere(program, "zero_grad", "grad", "apply_gradients")
    if not steps or clears or has_framework_loop(program):
        return
    for call in backward_calls(program):
        if call.at.loop:
            yield claim_at(
                call.at,
                severity="warning",
                message="Each step adds its gradients to those of all earlier steps: zero_grad is "
                "never called.",
                consequence="The loss does not decrease, or becomes NaN",
                fix="Call optimizer.zero_grad() before backward().",
            )
            return


_HEAD = (
    "import torch\nfrom torch import nn\n\nmodel = nn.Linear(4, 1)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
)
_LOOP = "for step in range(100):\n    loss = model(torch.rand(8, 4)).mean()\n"
_BAD = {"train.py": f"{_HEAD}{_LOOP}    loss.backward()\n    optimizer.step()\n"}
_FUNCTION = {
    "train.py": f"{_HEAD}\n\ndef train(model, optimizer):\n    for step in range(10):\n"
    "        loss = model(torch.rand(8, 4)).sum()\n        loss.backward()\n        optimizer.step()\n\n\n"
    "train(model, optimizer)\n"
}
_MODULE = {
    "train.py": f"from engine import epoch\n{_HEAD}epoch(model, optimizer)\n",
    "engine.py": "import torch\n\n\ndef epoch(model, optimizer):\n    for step in range(5):\n"
    "        loss = model(torch.rand(2, 4)).sum()\n        loss.backward()\n        optimizer.step()\n",
}

RULE = Rule(
    title="Gradients are not reset between training steps",
    category="framework_api_misuse",
    why="backward() adds to the existing gradients. Without zero_grad each step uses the "
    "gradients of all earlier steps. No error occurs, and the GPU time is lost.",
    fix="Call optimizer.zero_grad() once per step.",
    source="PyTorch documentation, torch.optim, taking an optimization step; Zhang et al., ICSE 2020, "
    "section 5.3",
    check=_check,
    catches=(
        Case(_BAD, line=8),
        Case(_FUNCTION, line=11),
        Case(_MODULE, line=7, path="engine.py"),
        Case(
            {"train.py": f"{_HEAD}while True:\n    loss = model(torch.rand(8, 4)).mean()\n"
             "    loss.backward()\n    optimizer.step()\n"}, line=8,
        ),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}{_LOOP}    optimizer.zero_grad()\n    loss.backward()\n"
              "    optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}{_LOOP}    model.zero_grad()\n    loss.backward()\n"
              "    optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}{_LOOP}    for p in model.parameters():\n        p.grad = None\n"
              "    loss.backward()\n    optimizer.step()\n"}),
        Case({"train.py": f"{_HEAD}loss = model(torch.rand(8, 4)).mean()\nloss.backward()\n"
              "optimizer.step()\n"}),
        Case({"train.py": f"from accelerate import Accelerator\n{_HEAD}{_LOOP}    loss.backward()\n"
              "    optimizer.step()\n"}),
    ),
)  # fmt: skip
