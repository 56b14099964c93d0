"""The training data have the same order in every epoch."""

import ast
from collections.abc import Iterator

from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant, Instance
from epochzero.check.rule import Claims, JobView, Program, Rule, SourceLocation, claim_at
from epochzero.check.view.loops import loops_around, unwrapped
from epochzero.check.view.torch_usage import optimizer_steps

_SORTED = ("torchvision.datasets.ImageFolder", "torchvision.datasets.DatasetFolder")
"""Data sets that are sorted by class."""


def _check(view: JobView) -> Claims:
    if not view.training_steps:
        return
    named = {**_trained_on(view.program), **dict(_training_loaders(view.program))}
    for call in view.calls:
        name = named.get(call.at.place)
        if call.name == "torch.utils.data.DataLoader" and name and _keeps_order(call):
            yield claim_at(
                call.at,
                severity="warning",
                message=f"{name} returns the training data in their original order: it has no shuffle "
                "and no sampler.",
                consequence="Each batch holds samples of one class, and the model learns the last class "
                "best",
            )


def _trained_on(program: Program) -> dict[SourceLocation, str]:
    """Loaders over whose batches a loop steps an optimizer, with the data they iterate over."""
    loops = {
        (loop.via, loop.module.place(loop.node.iter)): ast.unparse(loop.node.iter)
        for step in optimizer_steps(program)
        for loop in loops_around(program, step.at)
        if not isinstance(loop.node, ast.While)
    }
    return {
        loader.place: loops[call.at.via, call.at.place]
        for call in program.calls
        if call.name.endswith(".__iter__") and (call.at.via, call.at.place) in loops
        if isinstance(loader := unwrapped(call.receiver), Instance) and loader.place is not None
    }


def _training_loaders(program: Program) -> Iterator[tuple[SourceLocation, str]]:
    """Where something whose name indicates training is assigned, with the name."""
    for module in program.modules.values():
        for node in code_of(module).of(ast.Assign):
            for target in node.targets if isinstance(node.value, ast.Call) else ():
                last = getattr(target, "id", getattr(target, "attr", ""))
                if "train" in last.lower():
                    yield module.place(node.value), ast.unparse(target)


def _keeps_order(call: LibraryCall) -> bool:
    """Whether a loader of indexable data certainly does not change their order."""
    data, shuffle = argument(call, 0, "dataset"), argument(call, 2, "shuffle")
    known = isinstance(data, Instance) and not data.own and "ataset" in data.made_by
    ordered = len(call.arguments) > 3 or {"sampler", "batch_sampler"} & set(call.keywords)
    if not known or ordered or not call.complete or not isinstance(data, Instance):
        return False
    if shuffle is None:
        return True
    return isinstance(shuffle, Constant) and shuffle.value is False and data.made_by in _SORTED


RULE = Rule(
    category="framework_api_misuse",
    why="A DataLoader does not shuffle by default. If the data are sorted by class or by time, "
    "each batch contains similar samples. The loss decreases, but the model is worse than it would "
    "be with shuffled data.",
    fix="Pass shuffle=True to the DataLoader.",
    source="PyTorch documentation, torch.utils.data.DataLoader: shuffle, default False",
    check=_check,
    examples="""
        import torch
        from torch.utils.data import DataLoader, TensorDataset, RandomSampler
        from torchvision.datasets import ImageFolder

        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        data = TensorDataset(torch.rand(8, 2))
        train_loader = DataLoader(data, batch_size=4)  # <-
        for epoch in range(3):
            for x in train_loader:
                optimizer.zero_grad()
                model(x[0]).sum().backward()
                optimizer.step()
        ---- caught if
        -train_loader = DataLoader(data, batch_size=4)  # <-
        +train_loader = DataLoader(ImageFolder('.'), 4, shuffle=False)  # <-
        ---- caught if
        -train_loader = DataLoader(data, batch_size=4)  # <-
        +class Data:
        +    pass
        +
        +
        +Data.train = train_loader = DataLoader(data)  # <-
        ---- ignored if
        -train_loader = DataLoader(data, batch_size=4)
        +train_loader = DataLoader(data, sampler=RandomSampler(data))
        ---- ignored if
        -train_loader = DataLoader(data, batch_size=4)
        +train_loader = DataLoader(data, 4, shuffle=False)
        ---- ignored if
        -train_loader = DataLoader(data, batch_size=4)
        +train_loader, test_loader = [], DataLoader(data)
        ---- ignored if
        -train_loader = DataLoader(data, batch_size=4)
        +train_loader, tests = DataLoader(data, 4, True), DataLoader(data)
        @@
                 optimizer.step()
        +    for x in tests:
        +        print(model(x[0]))
        ---- caught if
        -train_loader = DataLoader(data, batch_size=4)  # <-
        -for epoch in range(3):
        -    for x in train_loader:
        -        optimizer.zero_grad()
        +
        +
        +def run(loader):
        +    for x in loader:
        @@
                 optimizer.step()

        +
        +for epoch in range(3):
        +    run(DataLoader(data, 4))  # <-
        +
        ---- caught if
        -train_loader = DataLoader(data, batch_size=4)  # <-
        +batches = DataLoader(data, batch_size=4)  # <-
        @@
        -    for x in train_loader:
        +    for x in enumerate(batches):
        @@
        -        model(x[0]).sum().backward()
        +        model(x[1][0]).sum().backward()
    """,
)
