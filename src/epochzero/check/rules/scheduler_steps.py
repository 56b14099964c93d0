"""A learning-rate scheduler steps too often, or too early."""

import ast
from collections.abc import Iterator

from epochzero.check.paths.sizes import enclosing_loops, rounds
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Instance, integer_of
from epochzero.check.rule import Claim, Claims, JobView, Program, Reach, Rule, claim_at, guarded

_SCHEDULERS = "torch.optim.lr_scheduler."


def _check(view: JobView) -> Claims:
    if view.has_framework_loop:
        return
    steps = [call for call in view.calls if _is_step(call)]
    reported = set()
    for call in steps:
        if call.at.place in reported or not isinstance(call.receiver, Instance):
            continue
        found = next(_too_often(view.program, call, call.receiver), None)
        if found is not None:
            reported.add(call.at.place)
            yield found
    if not reported:
        yield from _too_early(view, steps)


def _is_step(call: LibraryCall) -> bool:
    return call.name.startswith(_SCHEDULERS) and call.name.endswith("().step") and call.at.loop


def _too_often(program: Program, call: LibraryCall, made: Instance) -> Iterator[Claim]:
    """OneCycleLR rejects more steps than it was created for; a cosine schedule rises again."""
    counts = _loops(program, call, made)
    name = made.made_by.removeprefix(_SCHEDULERS)
    if name == "OneCycleLR":
        total = _total(made)
        steps = 1
        for count in counts:
            steps *= count or 2  # A loader has more than one batch.
        if total and steps > total and not guarded(call.at, ValueError):
            yield claim_at(
                call.at,
                severity=Reach.of(program).severity(call.at),
                message=f"The scheduler is created for {total} steps, but steps more often.",
                consequence=f"ValueError: Tried to step {total + 1} times. "
                f"The specified number of total steps is {total}",
                fix="Create it for epochs * len(loader) steps, or step it once per epoch.",
            )  # fmt: skip
    elif name == "CosineAnnealingLR" and len(counts) > 1 and counts[-1] is None:
        period = integer_of(argument(made, 1, "T_max"))
        if period is not None and period == counts[0]:
            yield claim_at(
                call.at, severity="warning",
                message=f"The period of the scheduler is {period}, the number of epochs, but it steps "
                "in every batch.",
                consequence="The learning rate falls and rises again within each epoch",
                fix="Step it once per epoch, or set T_max to epochs x len(loader).",
            )  # fmt: skip


def _total(made: Instance) -> int | None:
    total = integer_of(argument(made, 2, "total_steps"))
    epochs, each = (integer_of(made.keywords.get(name)) for name in ("epochs", "steps_per_epoch"))
    return total if total is not None else epochs * each if epochs and each else None


def _loops(program: Program, call: LibraryCall, made: Instance) -> list[int | None]:
    """The loops in which a scheduler steps but is not created, the outermost first.

    Each with its number of iterations; None for loops over data. Empty if a step depends on a condition,
    or a loop may end early.
    """
    maker = next((c.at for c in program.calls if c.result == made), None)
    outer = (
        set()
        if maker is None
        else {
            loop
            for place in (*maker.via, maker.place)
            for loop, _ in enclosing_loops(program, place)
        }
    )
    found: list[int | None] = []
    for place in (*call.at.via, call.at.place):
        for loop, conditions in enclosing_loops(program, place):
            if loop in outer:
                continue
            if conditions or any(isinstance(node, ast.Break) for node in ast.walk(loop)):
                return []
            counted = isinstance(loop.iter, ast.Call) and "range" in ast.unparse(loop.iter.func)
            count = rounds(program, loop)
            if counted and count is None:
                return []
            found.append(count)
    return found


def _too_early(view: JobView, steps: list[LibraryCall]) -> Iterator[Claim]:
    """A step of a scheduler in training before the first step of an optimizer."""
    # A scaler steps the optimizer; what else steps it is not known.
    if not steps or view.does_anywhere("scaler", "GradScaler", "closure"):
        return
    first = next(iter(view.training_steps), None)
    if first is None or steps[0].at.phase != "training":
        return
    calls = list(view.calls)
    if calls.index(steps[0]) < calls.index(first):
        yield claim_at(
            steps[0].at,
            severity="warning",
            message="The scheduler steps before the optimizer.",
            consequence="UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`: the "
            "first learning rate is skipped",
            fix="Call scheduler.step() after optimizer.step().",
        )


RULE = Rule(
    category="framework_api_misuse",
    why="A scheduler counts the calls of its step() method. The program may call this method after "
    "each epoch or after each batch. If a scheduler is created for the number of epochs but steps "
    "after each batch, the scheduler raises an error or moves the learning rate up and down.",
    fix="Create the scheduler for the number of steps that it will take, and call scheduler.step() "
    "after optimizer.step().",
    source="PyTorch documentation, torch.optim, How to adjust learning rate; torch.optim.lr_scheduler.OneCycleLR",
    check=_check,
    examples="""
        import torch
        from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(64, 2)), 4)
        scheduler = OneCycleLR(optimizer, 0.1, total_steps=10)
        for epoch in range(10):
            for (x,) in loader:
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step(); scheduler.step()  # <-
            pass
        ---- caught if
        -scheduler = OneCycleLR(optimizer, 0.1, total_steps=10)
        +scheduler = CosineAnnealingLR(optimizer, T_max=10)
        ---- caught if
        -scheduler = OneCycleLR(optimizer, 0.1, total_steps=10)
        +scheduler = StepLR(optimizer, 3)
        @@
        -        optimizer.step(); scheduler.step()  # <-
        +        scheduler.step(); optimizer.step()  # <-
        ---- ignored if
        -scheduler = OneCycleLR(optimizer, 0.1, total_steps=10)
        +scheduler = OneCycleLR(optimizer, 0.1, epochs=10, steps_per_epoch=len(loader))
        ---- ignored if
        -scheduler = OneCycleLR(optimizer, 0.1, total_steps=10)
        +scheduler = CosineAnnealingLR(optimizer, T_max=10 * len(loader))
        ---- ignored if
        -        optimizer.step(); scheduler.step()
        -    pass
        +        optimizer.step()
        +    if epoch < 5: scheduler.step()
        ---- ignored if
        -scheduler = OneCycleLR(optimizer, 0.1, total_steps=10)
        +scheduler = CosineAnnealingLR(optimizer, T_max=10)
        @@
        -        optimizer.step(); scheduler.step()
        -    pass
        +        optimizer.step()
        +    scheduler.step()
        ----
        import torch
        from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(64, 2)), 4)
        scheduler = None
        def train():
            scheduler = OneCycleLR(optimizer, 0.1, total_steps=4)
            for epoch in range(4):
                optimizer.step()
                scheduler.step()


        for fold in range(5):
            train()
    """,
)
