"""The model is evaluated in training mode."""

import ast
import re
from collections.abc import Iterator

from epochzero.check.program.events import LibraryCall
from epochzero.check.program.syntax import Code, Function, code_of
from epochzero.check.rule import Claims, JobView, Module, Program, Rule, claim_at
from epochzero.check.view.loops import loops_around
from epochzero.check.view.models import ProgramModels
from epochzero.check.view.torch_usage import makes_layers_with_modes, optimizer_steps

_NAME = re.compile(
    r"(^|_)(eval|evaluate|evaluation|val|valid|validate|validation|test|predict|infer)(_|$)"
)

_DATA = re.compile(r"\b(val|test|eval|dev)")


def _check(view: JobView) -> Claims:
    if (
        not view.training_steps
        or not makes_layers_with_modes(view.program)
        or view.has_framework_loop
    ):
        return
    reach = view.reach
    nowhere = not view.does_anywhere("eval", "train", "training", "requires_grad_")
    for module, node in _evaluations(view.program):
        at = reach.at(module, node)
        if at is not None and (nowhere or _in_training_mode(view.program, module, node)):
            yield claim_at(
                at,
                severity="warning",
                message="The model is evaluated in training mode: eval() is never "
                f"called{'' if nowhere else ' before'}.",
                consequence="Dropout and batch normalization work as in training: the result is wrong "
                "and differs between runs",
            )
            return


def _in_training_mode(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether a trained model is in training mode when an evaluation calls it."""
    models = ProgramModels.of(program)
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
            modes = (models.mode(call, model) for call in reversed(program.calls[:at]))
            return next(filter(None, modes), "train") == "train"
    return False


def _comes_by(call: LibraryCall, module: Module, node: ast.AST) -> bool:
    """Whether a call happens within a block of a module, or in what the block calls."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    places = (*call.at.via, call.at.place)
    return any(place.path == module.path and first <= place.line <= last for place in places)


def _is_apart(program: Program, call: LibraryCall, module: Module, node: ast.AST) -> bool:
    """Whether the names indicate an evaluation, or it is outside the loop over the training batches."""
    code = code_of(module)
    function = node if isinstance(node, ast.FunctionDef) else code.function(node)
    loops = [n for n in (*code.around(node), *ast.walk(node)) if isinstance(n, ast.For)]
    if any(_DATA.search(ast.unparse(loop.iter)) for loop in loops):
        return True
    if function is not None and _NAME.search(function.name):
        return True
    steps = [loops_around(program, step.at)[-1:] for step in optimizer_steps(program)]
    return not any(step and step[0].step_to(call.at) is not None for step in steps)


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
        names = [code.imported_name(_called(decorator)) for decorator in function.decorator_list]
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


RULE = Rule(
    category="framework_api_misuse",
    why="Dropout and batch normalization behave differently in training mode. Without "
    "model.eval(), the program silently evaluates the model in training mode.",
    fix="Call model.eval() before the evaluation and model.train() after the evaluation.",
    source="PyTorch documentation, torch.nn.Module.eval; Autograd mechanics, evaluation mode",
    check=_check,
    examples="""
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(9):
            loss = model(torch.rand(2, 4)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():  # <-
            print(model(torch.rand(2, 4)))
        ---- caught if
        -model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        +model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        ---- ignored if
             optimizer.step()
        +model.eval()
        ---- ignored if
        -model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        +model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        ---- ignored if
        -    print(model(torch.rand(2, 4)))
        +    for p in model.parameters():
        +        p.mul_(0.9)
        ----
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(9):
            loss = model(torch.rand(2, 4)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


        @torch.no_grad()
        def evaluate(model):
            print(model(torch.rand(2, 4)))  # <-


        evaluate(model)
        ---- caught if
        -@torch.no_grad()
        -def evaluate(model):
        -    print(model(torch.rand(2, 4)))  # <-
        +def validate(model, data):
        +    with torch.no_grad():  # <-
        +        for x in data:
        +            print(model(x))
        @@
        -evaluate(model)
        +validate(model, [torch.rand(2, 4)])
        ----
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        teacher = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(9):
            model.train()
            for step in range(100):
                optimizer.zero_grad()
                model(torch.rand(2, 4)).sum().backward()
                optimizer.step()
                with torch.no_grad():
                    print(model(torch.rand(2, 4)))
        ---- caught if
        -        with torch.no_grad():
        -            print(model(torch.rand(2, 4)))
        +    with torch.no_grad():  # <-
        +        print(model(torch.rand(2, 4)))
        ---- caught if
         from torch import nn
        +
        +@torch.no_grad()
        +def validate(net):
        +    print(net(torch.rand(2, 4)))  # <-
        +
        @@
        -        with torch.no_grad():
        -            print(model(torch.rand(2, 4)))
        +    validate(model)
    """,
)
