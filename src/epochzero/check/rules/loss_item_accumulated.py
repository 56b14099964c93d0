"""Losses are summed together with their graphs."""

import ast

from epochzero.check.program.syntax import code_of
from epochzero.check.rule import Claims, JobView, Module, Rule, claim_at
from epochzero.check.view.torch_usage import backward_calls


def _check(view: JobView) -> Claims:
    reach = view.reach
    modules = view.program.by_path
    for path in sorted({call.at.place.path for call in backward_calls(view.program)}):
        for node in _sums(modules[path]) if path in modules else ():
            at = reach.at(modules[path], node)
            if at is not None and isinstance(node.value, ast.Name):
                name = node.value.id
                yield claim_at(
                    at,
                    severity="warning",
                    message=f"{ast.unparse(node.target)} sums {name} together with its graph: memory "
                    "use grows with every step.",
                    consequence="torch.OutOfMemoryError: CUDA out of memory, after some time",
                    fix=f"Add {name}.item(), or {name}.detach().",
                )


def _sums(module: Module) -> list[ast.AugAssign]:
    """``total += loss`` in a loop that calls ``loss.backward()`` but not ``total.backward()``."""
    code = code_of(module)
    trained = [
        (node.func.value.id, node)
        for node in code.of(ast.Call)
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and isinstance(node.func.value, ast.Name)
    ]
    totals = {name for name, _ in trained}
    found = []
    for node in code.of(ast.AugAssign):
        is_sum = isinstance(node.op, ast.Add) and isinstance(node.value, ast.Name)
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        if not is_sum or target in totals or not isinstance(node.value, ast.Name):
            continue
        loops = [outer for outer in code.around(node) if isinstance(outer, ast.For | ast.While)]
        calls = [call for name, call in trained if name == node.value.id]
        same_loop = any(loop in code.around(call) for loop in loops[:1] for call in calls)
        if same_loop and not _is_plain_again(code.module, node):
            found.append(node)
    return found


def _is_plain_again(module: Module, node: ast.AugAssign) -> bool:
    """Whether the name is set to a number before it is added: ``loss = loss.item()``."""
    assert isinstance(node.value, ast.Name)
    for assign in code_of(module).assigned.get(node.value.id, ()):
        text = ast.unparse(assign.value)
        if any(
            word in text
            for word in (".item(", "float(", ".detach(", ".tolist(", ".numpy(", ".data")
        ):
            return True
    return False


RULE = Rule(
    category="gpu_out_of_memory",
    why="A loss tensor holds references to its computation graph. A running sum of loss tensors "
    "holds the graphs of all steps in memory.",
    fix="Add loss.item() to the sum instead of the loss tensor.",
    source="PyTorch documentation, frequently asked questions: don't accumulate history across your "
    "training loop",
    check=_check,
    examples="""
        import torch
        from torch import nn

        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0
        for step in range(9):
            loss = model(torch.rand(4, 2)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss  # <-
        ---- caught if
             total += loss  # <-
        +print(total / 9)
        ---- caught if
         total = 0
        +sums = {'a': 0}
        @@
        -    total += loss  # <-
        +    sums['a'] += loss  # <-
        ---- ignored if
        -    total += loss
        +    total += loss.item()
        ---- ignored if
             optimizer.step()
        +    loss = loss.item()
        ---- ignored if
        -    total += loss
        +    total += step
        ---- ignored if
        -    optimizer.zero_grad()
        -    loss.backward()
        -    optimizer.step()
        @@
             total += loss
        +total.backward()
        ----
        import torch
        from torch import nn

        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0


        def train():
            total = 0
            for step in range(9):
                loss = model(torch.rand(4, 2)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss  # <-
            return total


        train()
    """,
)
