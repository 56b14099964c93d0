"""An evaluation in training mode, or training after an evaluation in evaluation mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from epochzero.check.code import Code, Function, code_of
from epochzero.check.findings import Finding, Unknown
from epochzero.check.program.model import Module, Program
from epochzero.check.reach import Reach
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.situation import finding_at
from epochzero.check.target.model import Target
from epochzero.check.torch_use import (
    does_anywhere,
    has_framework_loop,
    makes_layers_with_modes,
    optimizer_steps,
)

__all__ = ["RULE"]

_NAME = re.compile(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|test|predict|infer)(_|$)"
)


def _check(program: Program, target: Target) -> Iterable[Finding | Unknown]:
    trains = any(one.at.loop for one in optimizer_steps(program))
    if not trains or not makes_layers_with_modes(program) or has_framework_loop(program):
        return
    reach = Reach.of(program)
    if not does_anywhere(program, "eval", "train", "training", "requires_grad_"):
        for module, node in _evaluations(program):
            at = reach.at(module, node)
            if at is not None:
                yield finding_at(
                    at,
                    RULE.id,
                    RULE.category,
                    severity="warning",
                    message="The model is evaluated in training mode: nothing in the job calls eval().",
                    consequence="Dropout and batch normalization work as in training: the result is wrong "
                    "and changes from run to run",
                    fix="Call model.eval() before, and model.train() after.",
                )
                return


def _evaluations(program: Program) -> Iterator[tuple[Module, ast.AST]]:
    """Blocks without gradients in functions that are named after evaluation, or after the training."""
    for module in program.modules.values():
        code = code_of(module)
        for node in code.of(ast.With):
            names = [code.imported_name(_called(item.context_expr)) for item in node.items]
            without = {"torch.no_grad", "torch.inference_mode"}.intersection(names)
            if without and _has_model_call(node) and not _is_about_weights(node):
                yield module, node
        yield from ((module, function.body[0]) for function in _decorated(code))


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _decorated(code: Code) -> Iterator[Function]:
    for function in code.of(ast.FunctionDef):
        names = [code.imported_name(_called(one)) for one in function.decorator_list]
        if "torch.no_grad" in names and _NAME.search(function.name):
            yield function


def _has_model_call(block: ast.With) -> bool:
    """Whether something that is named like a model is called."""
    for node in ast.walk(block):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2].lower()
            if "model" in name or name in ("net", "network", "classifier"):
                return True
    return False


def _is_about_weights(block: ast.With) -> bool:
    """Whether the block changes parameters, which also wants no gradients."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr.endswith("_")
        and not node.attr.startswith("_")
        for node in ast.walk(block)
    )


_HEAD = (
    "import torch\nfrom torch import nn\n\nmodel = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor step in range(9):\n"
    "    loss = model(torch.rand(2, 4)).sum()\n    optimizer.zero_grad()\n    loss.backward()\n"
    "    optimizer.step()\n"
)
_TEST = "with torch.no_grad():\n    print(model(torch.rand(2, 4)))\n"
_FUNCTION = (
    "\n\ndef validate(model, data):\n    with torch.no_grad():\n        for x in data:\n"
    "            print(model(x))\n\n\nvalidate(model, [torch.rand(2, 4)])\n"
)

RULE = Rule(
    id="eval-mode-missing",
    title="The model is evaluated in training mode",
    category="framework_api_misuse",
    why="Dropout and batch normalization work differently in training. Without eval() the evaluation "
    "measures another model, in silence.",
    fix="Call model.eval() before the evaluation and model.train() after it.",
    source="PyTorch documentation, torch.nn.Module.eval; Autograd mechanics, evaluation mode",
    check=_check,
    catches=(
        Case({"train.py": _HEAD + _TEST}, line=11),
        Case({"train.py": _HEAD + _FUNCTION}, line=14),
        Case({"train.py": _HEAD.replace("Dropout(0.5)", "BatchNorm1d(4)") + _TEST}, line=11),
        Case({"train.py": f"{_HEAD}\n\n@torch.no_grad()\ndef evaluate(model):\n"
              "    print(model(torch.rand(2, 4)))\n\n\nevaluate(model)\n"}, line=15),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}model.eval()\n{_TEST}"}),
        Case({"train.py": f"{_HEAD}model.train(False)\n{_TEST}"}),
        Case({"train.py": _HEAD.replace("Dropout(0.5)", "ReLU()") + _TEST}),
        Case({"train.py": _HEAD}),
        Case({"train.py": f"{_HEAD}with torch.no_grad():\n    for p in model.parameters():\n"
              "        p.mul_(0.9)\n"}),
    ),
)  # fmt: skip
