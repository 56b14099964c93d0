"""An evaluation stores the graphs of all its outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from epochzero.check.program.syntax import Code, Function, code_of
from epochzero.check.rule import Claims, JobView, Rule, claim_at
from epochzero.check.view.torch_usage import does_anywhere, has_framework_loop, optimizer_steps

_NAME = re.compile(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|test|predict|infer|inference)(_|$)"
)
_PLAIN = ("item", "detach", "numpy", "tolist", "argmax", "max", "data", "eq", "long", "int")
"""Operations whose results have no graph."""


def _check(view: JobView) -> Claims:
    trains = any(step.at.loop for step in optimizer_steps(view.program))
    without = ("no_grad", "inference_mode", "set_grad_enabled", "requires_grad_", "requires_grad")
    if not trains or has_framework_loop(view.program) or does_anywhere(view.program, *without):
        return
    reach = view.reach
    for module in view.modules:
        if any(word in module.text for word in without):
            continue
        for node, stored in _kept(code_of(module)):
            at = reach.at(module, node)
            if at is not None:
                yield claim_at(
                    at,
                    severity="warning",
                    message=f"The evaluation stores {stored} of every batch with its graph, and nothing "
                    "in the job disables gradients.",
                    consequence="torch.OutOfMemoryError: CUDA out of memory, after some batches",
                    fix="Run the evaluation under `with torch.no_grad():`, and store .item() or "
                    ".detach().",
                )
                break


def _kept(code: Code) -> Iterator[tuple[ast.AST, str]]:
    """Outputs of a model that an evaluation loop collects or sums."""
    for loop in code.of(ast.For):
        function = code.function(loop)
        if not _evaluates(function) or _calls(loop, "backward"):
            continue
        outputs = {
            name.id
            for node in ast.walk(loop)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            and _is_of_model(node.value)
            for name in node.targets
            if isinstance(name, ast.Name)
        }  # fmt: skip
        for node in ast.walk(loop):
            stored = _collected(node)
            if stored is not None and _names(stored) & outputs and not _is_plain(stored):
                yield node, ast.unparse(stored)


def _evaluates(function: Function | None) -> bool:
    return function is not None and _NAME.search(function.name) is not None


def _calls(loop: ast.For, method: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == method for node in ast.walk(loop))


def _is_of_model(call: ast.Call) -> bool:
    """Whether a call is one of a model or of a loss, by its name."""
    name = ast.unparse(call.func).rpartition(".")[2].lower()
    return "model" in name or "criterion" in name or "loss" in name or name in ("net", "network")


def _collected(node: ast.AST) -> ast.expr | None:
    """Values that are added to a sum or appended to a list."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return node.args[0] if node.func.attr == "append" else None
    return None


def _names(node: ast.expr) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _is_plain(node: ast.expr) -> bool:
    """Whether the stored value has no graph: a number, an index, an array."""
    attributes = {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}
    compared = any(isinstance(child, ast.Compare) for child in ast.walk(node))
    called = {ast.unparse(child.func) for child in ast.walk(node) if isinstance(child, ast.Call)}
    return compared or not attributes.isdisjoint(_PLAIN) or not called.isdisjoint(("float", "int"))


RULE = Rule(
    title="The evaluation stores the graphs of all its batches",
    category="gpu_out_of_memory",
    why="The output of a model holds references to everything it was computed from, unless "
    "gradients are disabled. An evaluation that sums losses or collects outputs holds the "
    "activations of the whole test set, and runs out of memory after the training.",
    fix="Evaluate under torch.no_grad(), and store numbers.",
    source="PyTorch documentation, frequently asked questions: My model reports CUDA out of memory; "
    "torch.no_grad",
    check=_check,
    examples="""
        import torch

        model, loss_of = torch.nn.Linear(2, 2), torch.nn.MSELoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        for step in range(9):
            optimizer.zero_grad()
            model(torch.rand(4, 2)).sum().backward()
            optimizer.step()


        def evaluate(data):
            total, outputs = 0, []
            for x in data:
                output = model(x)
                loss = loss_of(output, x)
                total += loss  # <-
            return total, outputs


        evaluate([torch.rand(4, 2)] * 100)
        ---- caught if
        -        total += loss  # <-
        +        outputs.append(output)  # <-
        ---- caught if
        -        total += loss  # <-
        +        outputs.append(output.cpu())  # <-
        ---- ignored if
        -        total += loss
        +        total += loss.item()
        ---- ignored if
        -        total += loss
        +        outputs.append(output.argmax(1))
        ---- ignored if
        -        total += loss
        +        outputs.append(output.detach())
        ---- ignored if
        +@torch.no_grad()
         def evaluate(data):
        ---- ignored if
        -        total += loss
        +        loss.backward(); total += loss
        ---- ignored if
        -        total += loss
        +        total += (output > 0).sum()
    """,
)
