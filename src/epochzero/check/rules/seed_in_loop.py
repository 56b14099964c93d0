"""The training sets the same seed in every iteration."""

from __future__ import annotations

from epochzero.check.rule import Claims, JobView, Program, Rule, claim_at, examples
from epochzero.check.rules.world import number
from epochzero.check.view.loops import Loop, loops_around
from epochzero.check.view.torch_usage import argument, optimizer_steps

_SEEDS = frozenset(
    [
        "lightning.pytorch.seed_everything",
        "lightning.seed_everything",
        "pytorch_lightning.seed_everything",
        "torch.cuda.manual_seed_all",
        "torch.manual_seed",
        "torch.random.manual_seed",
        "transformers.set_seed",
    ]
)


def _check(view: JobView) -> Claims:
    loops = {
        loop
        for step in optimizer_steps(view.program)
        for loop in loops_around(view.program, step.at)
    }
    whole = {loop for loop in loops if _makes_optimizer(view.program, loop)}
    reported = set()
    for call in view.calls:
        around = (
            []
            if call.name not in _SEEDS
            else [one for one in loops - whole if one.step_to(call.at)]
        )
        seed = number(argument(call, 0, "seed"))
        if around and seed is not None and call.at.place not in reported:
            reported.add(call.at.place)
            yield claim_at(
                call.at,
                severity="warning",
                message=f"Each iteration of the training loop sets the seed to {seed} again.",
                consequence="Dropout, augmentation and the order of the data are the same in every "
                "iteration",
                fix="Set the seed once, before the loop, or derive it from the epoch.",
            )


def _makes_optimizer(program: Program, loop: Loop) -> bool:
    """Whether a loop iterates over whole trainings, such as those of several folds."""
    return any(
        call.name.startswith("torch.optim.") and "()" not in call.name and loop.step_to(call.at)
        for call in program.calls
    )


RULE = Rule(
    title="The training sets the same seed in every iteration",
    category="framework_api_misuse",
    why="A seed that is set once makes a run reproducible. If it is set in each epoch or step, "
    "the same random numbers repeat: the same dropout masks, the same augmentation, the same "
    "order of batches.",
    fix="Set the seed once, before the training.",
    source="PyTorch documentation, Reproducibility; torch.manual_seed",
    check=_check,
    cases=examples("""
        import torch

        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(10):
            torch.manual_seed(0)  # <-
            optimizer.zero_grad()
            model(torch.rand(4, 2)).sum().backward()
            optimizer.step()
        ---- ignored if
         optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        +torch.manual_seed(0)
        @@
        -    torch.manual_seed(0)
        ----
        import torch

        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def seed(number=42):
            torch.manual_seed(number)  # <-
            torch.cuda.manual_seed_all(number)


        for epoch in range(10):
            seed()
            optimizer.zero_grad()
            model(torch.rand(4, 2)).sum().backward()
            optimizer.step()
        ---- ignored if
        -    seed()
        +    seed(epoch)
        ----
        import torch

        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for _ in range(100):
                torch.manual_seed(seed=1)  # <-
                optimizer.zero_grad()
                model(torch.rand(4, 2)).sum().backward()
                optimizer.step()
        ----
        import torch

        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for fold in range(3):
            torch.manual_seed(0)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(9):
                optimizer.zero_grad()
                model(torch.rand(4, 2)).sum().backward()
                optimizer.ste
        ----
        import torch

        for seed in range(3):
            torch.manual_seed(0)
            print(torch.rand(1))
    """),
)
