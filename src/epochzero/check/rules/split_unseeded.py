"""A data set is split differently in every run, and a run resumes from an earlier one."""

from __future__ import annotations

from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Program, Rule, claim_at
from epochzero.check.view.torch_usage import argument, does_anywhere

_SKLEARN = "sklearn.model_selection.train_test_split"
_SPLITS = ("torch.utils.data.random_split", "torch.utils.data.dataset.random_split", _SKLEARN)
_SEEDING = ("manual_seed", "seed_everything", "set_seed", "seed_all", "set_random_seed")


def _check(view: JobView) -> Claims:
    own = view.job.allocation.processes_per_node or 1
    again = _resumes(view.program)
    if not again and own < 2:
        return
    for call in view.calls:
        if call.name in _SPLITS and call.complete and not _is_fixed(view.program, call):
            yield claim_at(
                call.at,
                severity="warning",
                message="The data are split at random, but nothing sets the seed: "
                + ("a run that resumes from a checkpoint" if again else "each process")
                + " gets a different split.",
                consequence="Validation samples were used for training; the result is better than it "
                "should be",
                fix="Pass random_state=0."
                if call.name == _SKLEARN
                else "Pass generator=torch.Generator().manual_seed(0).",
            )


def _resumes(program: Program) -> bool:
    """Whether the job loads the state of an optimizer, as it does to resume training."""
    return any(
        call.name.startswith("torch.optim.") and call.name.endswith(".load_state_dict")
        for call in program.calls
    )


def _is_fixed(program: Program, call: Called) -> bool:
    """Whether a split is certainly or possibly the same in every run."""
    if call.name != _SKLEARN:
        return argument(call, 2, "generator") is not None or does_anywhere(program, *_SEEDING)
    shuffle, state = call.keywords.get("shuffle"), call.keywords.get("random_state")
    unshuffled = isinstance(shuffle, Constant) and shuffle.value is False
    seeded = state is not None and not (isinstance(state, Constant) and state.value is None)
    return unshuffled or seeded or does_anywhere(program, "seed", *_SEEDING)


RULE = Rule(
    title="The data are split differently in every run or process",
    category="framework_api_misuse",
    why="A run that resumes from a checkpoint splits the data again. Without a seed, samples "
    "that it has trained on enter the validation set, by which the best checkpoint is "
    "chosen. The same happens if each process of a distributed job splits the data itself.",
    fix="Pass a generator or a random_state with a fixed seed.",
    source="PyTorch documentation, torch.utils.data.random_split: fix the generator for reproducible "
    "results; scikit-learn, train_test_split: random_state",
    check=_check,
    examples="""
        import torch
        from torch.utils.data import TensorDataset, random_split

        data = TensorDataset(torch.rand(10, 2))
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train, val = random_split(data, [8, 2])  # <-
        state = torch.load('last.pt')
        model.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])
        ---- caught if
        -train, val = random_split(data, [8, 2])  # <-
        +from sklearn.model_selection import train_test_split
        +
        +a, b = train_test_split(range(10))  # <-
        ---- ignored if
         optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        +torch.manual_seed(1)
        ---- ignored if
        -train, val = random_split(data, [8, 2])
        +fixed = torch.Generator().manual_seed(1)
        +train, val = random_split(data, [8, 2], generator=fixed)
        ---- ignored if
        -train, val = random_split(data, [8, 2])
        +from sklearn.model_selection import train_test_split
        +
        +a, b = train_test_split(range(10), random_state=3)
        ---- ignored if
        -train, val = random_split(data, [8, 2])
        +from sklearn.model_selection import train_test_split
        +
        +a, b = train_test_split(range(10), shuffle=False)
        ----
        $ torchrun --nproc_per_node 4 train.py
        import torch
        from torch.utils.data import TensorDataset, random_split

        data = TensorDataset(torch.rand(10, 2))
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train, val = random_split(data, [8, 2])  # <-
        ---- ignored if
        -$ torchrun --nproc_per_node 4 train.py
    """,
)
