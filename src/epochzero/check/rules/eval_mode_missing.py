"""The job evaluates in training mode, or continues training in evaluation mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from epochzero.check.code import Code, Function, code_of
from epochzero.check.loops import loops_around
from epochzero.check.models import Models
from epochzero.check.program.events import Called
from epochzero.check.rules.base import (
    Case,
    Claims,
    Module,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
)
from epochzero.check.torch_usage import (
    does_anywhere,
    has_framework_loop,
    makes_layers_with_modes,
    optimizer_steps,
)

_NAME = re.compile(
    r"(^|_)(eval|evaluate|evaluation|val|valid|validate|validation|test|predict|infer)(_|$)"
)

_DATA = re.compile(r"\b(val|test|eval|dev)")


def _check(program: Program, target: Target) -> Claims:
    trains = any(one.at.loop for one in optimizer_steps(program))
    if not trains or not makes_layers_with_modes(program) or has_framework_loop(program):
        return
    reach = Reach.of(program)
    nowhere = not does_anywhere(program, "eval", "train", "training", "requires_grad_")
    for module, node in _evaluations(program):
        at = reach.at(module, node)
        if at is not None and (nowhere or _in_training_mode(program, module, node)):
            yield claim_at(
                at,
                severity="warning",
                message="The model is evaluated in training mode: eval() is never "
                f"called{'' if nowhere else ' before'}.",
                consequence="Dropout and batch normalization work as in training: the result is wrong "
                "and differs between runs",
                fix="Call model.eval() before the evaluation, and model.train() after it.",
            )
            return


def _in_training_mode(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether a trained model is in training mode when an evaluation calls it."""
    models = Models.of(program)
    block = node if isinstance(node, ast.With) else code_of(module).function(node) or node
    steps = {id(step) for step in optimizer_steps(program)}
    trained = False
    for at, call in enumerate(program.calls):
        trained = trained or id(call) in steps
        if not trained or not call.name.endswith(".__call__") or not _comes_by(call, module, block):
            continue
        model = models.owner(call.receiver)
        if (
            model is not None
            and models.is_trained(model)
            and _is_apart(program, call, module, node)
        ):
            modes = (models.mode(one, model) for one in reversed(program.calls[:at]))
            return next(filter(None, modes), "train") == "train"
    return False


def _comes_by(call: Called, module: Module, node: ast.AST) -> bool:
    """Whether a call happens within a block of a module, or in what the block calls."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    places = (*call.at.via, call.at.place)
    return any(one.path == module.path and first <= one.line <= last for one in places)


def _is_apart(program: Program, call: Called, module: Module, node: ast.AST) -> bool:
    """Whether the names indicate an evaluation, or it is outside the loop over the training batches."""
    code = code_of(module)
    function = node if isinstance(node, ast.FunctionDef) else code.function(node)
    loops = [one for one in (*code.around(node), *ast.walk(node)) if isinstance(one, ast.For)]
    if any(_DATA.search(ast.unparse(one.iter)) for one in loops):
        return True
    if function is not None and _NAME.search(function.name):
        return True
    steps = [loops_around(program, step.at)[-1:] for step in optimizer_steps(program)]
    return not any(one and one[0].step_to(call.at) is not None for one in steps)


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
    """Whether the callee is named like a model."""
    for node in ast.walk(block):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2].lower()
            if "model" in name or name in ("net", "network", "classifier"):
                return True
    return False


def _is_about_weights(block: ast.With) -> bool:
    """Whether the block changes parameters, which also needs no gradients."""
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
_BY_MODEL = (
    "import torch\nfrom torch import nn\n\nmodel = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))\n"
    "teacher = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor epoch in range(9):\n"
)
_STEP = (
    "    for step in range(100):\n        optimizer.zero_grad()\n"
    "        model(torch.rand(2, 4)).sum().backward()\n        optimizer.step()\n"
)
_DECORATED = "@torch.no_grad()\ndef validate(net):\n    print(net(torch.rand(2, 4)))\n\n\n"
_VALIDATED = "    with torch.no_grad():\n        print(model(torch.rand(2, 4)))\n"

RULE = Rule(
    title="The model is evaluated in training mode",
    category="framework_api_misuse",
    why="Dropout and batch normalization work differently in training. Without eval() the "
    "evaluation silently measures a different model.",
    fix="Call model.eval() before the evaluation and model.train() after it.",
    source="PyTorch documentation, torch.nn.Module.eval; Autograd mechanics, evaluation mode",
    check=_check,
    catches=(
        Case({"train.py": _HEAD + _TEST}, line=11),
        Case({"train.py": _HEAD + _FUNCTION}, line=14),
        Case({"train.py": _HEAD.replace("Dropout(0.5)", "BatchNorm1d(4)") + _TEST}, line=11),
        Case({"train.py": f"{_HEAD}\n\n@torch.no_grad()\ndef evaluate(model):\n"
              "    print(model(torch.rand(2, 4)))\n\n\nevaluate(model)\n"}, line=15),
        Case({"train.py": f"{_BY_MODEL}    model.train()\n{_STEP}{_VALIDATED}"}, line=13),
        Case({"train.py": f"{_BY_MODEL}    teacher.eval()\n{_STEP}{_VALIDATED}"}, line=13),
        Case({"train.py": f"{_BY_MODEL}{_STEP}    model.eval()\n    model.train()\n{_VALIDATED}"}, line=14),
        Case({"train.py": _BY_MODEL.replace("model =", _DECORATED + "model =")
              + f"    model.train()\n{_STEP}    validate(model)\n"}, line=6),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}model.eval()\n{_TEST}"}),
        Case({"train.py": f"{_HEAD}model.train(False)\n{_TEST}"}),
        Case({"train.py": _HEAD.replace("Dropout(0.5)", "ReLU()") + _TEST}),
        Case({"train.py": _HEAD}),
        Case({"train.py": f"{_BY_MODEL}    model.train()\n{_STEP}    model.eval()\n{_VALIDATED}"}),
        Case({"train.py": f"{_BY_MODEL}    model.train()\n{_STEP}    teacher.eval()\n"
              "    with torch.no_grad():\n        print(teacher(torch.rand(2, 4)))\n"}),
        Case({"train.py": f"{_BY_MODEL}    model.train()\n{_STEP}"
              + _VALIDATED.replace("    with", "        with").replace("    print", "        print")}),
        Case({"train.py": f"{_HEAD}with torch.no_grad():\n    for p in model.parameters():\n"
              "        p.mul_(0.9)\n"}),
    ),
)  # fmt: skip
