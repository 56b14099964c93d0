"""The training sets the same seed in every iteration."""

from __future__ import annotations

from epochzero.check.loops import Loop, loops_around
from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.rules.world import number
from epochzero.check.torch_usage import argument, optimizer_steps

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


def _check(program: Program, target: Target) -> Claims:
    loops = {loop for step in optimizer_steps(program) for loop in loops_around(program, step.at)}
    whole = {loop for loop in loops if _makes_optimizer(program, loop)}
    reported = set()
    for call in program.calls:
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


_HEAD = "import torch\n\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
_STEP = "    optimizer.zero_grad()\n    model(torch.rand(4, 2)).sum().backward()\n    optimizer.step()\n"
_LOOP = "for epoch in range(10):\n{}" + _STEP
_FUNCTION = "def seed(number=42):\n    torch.manual_seed(number)\n    torch.cuda.manual_seed_all(number)\n\n\n"

RULE = Rule(
    title="The training sets the same seed in every iteration",
    category="framework_api_misuse",
    why="A seed that is set once makes a run reproducible. If it is set in each epoch or step, "
    "the same random numbers repeat: the same dropout masks, the same augmentation, the same "
    "order of batches.",
    fix="Set the seed once, before the training.",
    source="PyTorch documentation, Reproducibility; torch.manual_seed",
    check=_check,
    catches=(
        Case({"train.py": _HEAD + _LOOP.format("    torch.manual_seed(0)\n")}, line=6),
        Case({"train.py": _HEAD + _FUNCTION + _LOOP.format("    seed()\n")}, line=6),
        Case({"train.py": f"{_HEAD}for epoch in range(3):\n    for _ in range(100):\n        torch.manual_seed(seed=1)\n"
              + _STEP.replace("    ", "        ")}, line=7),
    ),
    leaves=(
        Case({"train.py": _HEAD + "torch.manual_seed(0)\n" + _LOOP.format("")}),
        Case({"train.py": _HEAD + _FUNCTION + _LOOP.format("    seed(epoch)\n")}),
        Case({"train.py": f"{_HEAD}for fold in range(3):\n    torch.manual_seed(0)\n"
              "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
              "    for epoch in range(9):\n    " + _STEP.replace("\n    ", "\n        ")[:-4]}),
        Case({"train.py": "import torch\n\nfor seed in range(3):\n    torch.manual_seed(0)\n    print(torch.rand(1))\n"}),
    ),
)  # fmt: skip
