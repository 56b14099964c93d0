"""The model continues to train in evaluation mode."""

import ast
from collections.abc import Iterator, Sequence

from epochzero.check.program.events import LibraryCall
from epochzero.check.program.syntax import code_of
from epochzero.check.rule import Claims, JobView, Program, Rule, SourceLocation, claim_at
from epochzero.check.view.loops import ProgramLoop, loops_around
from epochzero.check.view.models import Model, ProgramModels
from epochzero.check.view.torch_usage import makes_layers_with_modes, optimizer_steps

_WITHOUT_GRADIENTS = {"torch.no_grad", "torch.inference_mode"}


def _check(view: JobView) -> Claims:
    if not makes_layers_with_modes(view.program):
        return
    models = view.models
    reported: set[SourceLocation] = set()
    for step in optimizer_steps(view.program):
        model = models.stepped(step)
        if model is None:
            continue
        for loop in loops_around(view.program, step.at):
            call = _left_in_evaluation(view.program, models, model, loop)
            if call is not None and call.at.place not in reported:
                reported.add(call.at.place)
                yield claim_at(
                    call.at,
                    severity="warning",
                    message="The training loop switches the model to evaluation mode, and the next "
                    "iterations train in that mode: nothing calls train() before "
                    f"{step.at.place.path}:{step.at.place.line}.",
                    consequence="From the second iteration dropout is off and batch normalization does "
                    "not update its statistics: the result is worse than it could be",
                )


def _left_in_evaluation(
    program: Program, models: ProgramModels, model: Model, loop: ProgramLoop
) -> LibraryCall | None:
    """The ``eval()`` of an iteration that no ``train()`` follows before the next step.

    If it precedes the first step of an iteration, the model may be trained so on purpose, unless an
    evaluation is between them.
    """
    calls = [call for call in program.calls if loop.step_to(call.at) is not None]
    steps = {id(step) for step in optimizer_steps(program) if models.stepped(step) == model}
    first = next((at for at, call in enumerate(calls) if id(call) in steps), 0)
    modes = [(at, mode) for at, call in enumerate(calls) if (mode := models.mode(call, model))]
    before = [mode for mode in modes if mode[0] < first]
    at, mode = (before or modes or [(0, "")])[-1]
    if mode != "eval" or _ends(loop, calls[at]):
        return None
    is_meant = before and _WITHOUT_GRADIENTS.isdisjoint(call.name for call in calls[at:first])
    return None if is_meant else calls[at]


def _ends(loop: ProgramLoop, call: LibraryCall) -> bool:
    """Whether the loop ends after the call, or the call runs in only one iteration."""
    place = loop.step_to(call.at)
    blocks = list(_blocks(loop.node.body, place)) if place is not None else []
    leaves = any(
        isinstance(node, ast.Break | ast.Return | ast.Raise) for block in blocks for node in block
    )
    code = code_of(loop.module)
    conditions = (code.parent.get(block[0]) for block in blocks[1:])
    return leaves or any(
        isinstance(condition, ast.If) and _is_once(condition.test) for condition in conditions
    )


def _blocks(body: Sequence[ast.stmt], place: SourceLocation) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of statements around a line, the outermost first."""
    for statement in body:
        if statement.lineno <= place.line <= (statement.end_lineno or statement.lineno):
            yield body
            for name in ("body", "orelse", "finalbody"):
                yield from _blocks(getattr(statement, name, []), place)


def _is_once(test: ast.expr) -> bool:
    """Whether a condition selects one iteration: ``epoch == args.epochs - 1``."""
    compares = any(isinstance(node, ast.Eq) for node in ast.walk(test))
    return compares and not any(isinstance(node, ast.Mod) for node in ast.walk(test))


RULE = Rule(
    category="framework_api_misuse",
    why="eval() remains in effect until the program calls train(). If an epoch ends with eval() "
    "and later epochs do not call train(), these later epochs train without dropout and with fixed "
    "batch normalization statistics.",
    fix="Call model.train() at the start of each training epoch.",
    source="PyTorch documentation, torch.nn.Module.train and eval",
    check=_check,
    examples="""
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

            def forward(self, x):
                return self.body(x)


        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = [torch.rand(2, 4)]
        model.train()
        for epoch in range(9):
            for x in data:
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            model.eval()  # <-
        ---- caught if
        +def evaluate(model, data):
        +    model.eval()  # <-
        +    with torch.no_grad():
        +        return sum(model(x).sum().item() for x in data)
        +
        +
         model = Net()
        @@
        -model.train()
        @@
        -    model.eval()  # <-
        +    if epoch % 3 == 0:
        +        print(evaluate(model, data))
        ---- caught if
        -model.train()
        +net = model.to('cpu')
        @@
         for epoch in range(9):
        +    print(epoch)
        @@
        -    model.eval()  # <-
        +    net.train(mode=False)  # <-
        ---- ignored if
        -model.train()
        @@
         for epoch in range(9):
        +    model.train()
        ---- ignored if
        -model.train()
        @@
        -    model.eval()
        +model.eval()
        +print(model(data[0]))
        ---- ignored if
        -model.train()
        @@
        -    model.eval()
        +    if epoch == 8:
        +        model.eval()
        ---- ignored if
        -model.train()
        @@
        -    model.eval()
        +    if epoch > 5:
        +        model.eval()
        +        break
        ---- ignored if
        -model.train()
        @@
         for epoch in range(9):
        +    model.eval()  # frozen statistics
        @@
        -    model.eval()
        ---- ignored if
        +teacher = Net()
         model = Net()
        @@
        -model.train()
        @@
        -    model.eval()
        +    teacher.eval()
        ----
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

            def forward(self, x):
                return self.body(x)


        class Trainer:
            def __init__(self, device):
                self.model = Net().to(device)
                self.optimizer = torch.optim.Adam(self.model.parameters())

            def step(self, x):
                self.model(x).sum().backward()
                self.optimizer.step()

            def validate(self):
                self.model.eval()  # <-
                with torch.no_grad():
                    print(self.model(torch.rand(2, 4)))

            def fit(self, epochs):
                self.model.train()
                for epoch in range(epochs):
                    for _ in range(100):
                        self.step(torch.rand(2, 4))
                    self.validate()


        Trainer('cpu').fit(5)
    """,
)
