"""A data set is split differently in every run, and a run resumes from an earlier one."""

from __future__ import annotations

from epochzero.check.program.events import Called
from epochzero.check.program.values import Constant
from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.torch_usage import argument, does_anywhere

_SKLEARN = "sklearn.model_selection.train_test_split"
_SPLITS = ("torch.utils.data.random_split", "torch.utils.data.dataset.random_split", _SKLEARN)
_SEEDING = ("manual_seed", "seed_everything", "set_seed", "seed_all", "set_random_seed")


def _check(program: Program, target: Target) -> Claims:
    own = program.job.processes_per_node or 1
    again = _resumes(program)
    if not again and own < 2:
        return
    for call in program.calls:
        if call.name in _SPLITS and call.complete and not _is_fixed(program, call):
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


_HEAD = (
    "import torch\nfrom torch.utils.data import TensorDataset, random_split\n\n"
    "data = TensorDataset(torch.rand(10, 2))\nmodel = torch.nn.Linear(2, 1)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
)
_RESUME = (
    "state = torch.load('last.pt')\nmodel.load_state_dict(state['model'])\n"
    "optimizer.load_state_dict(state['optimizer'])\n"
)
_SKLEARN_SPLIT = (
    "from sklearn.model_selection import train_test_split\n\na, b = train_test_split(range(10){})\n"
)

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
    catches=(
        Case({"train.py": f"{_HEAD}train, val = random_split(data, [8, 2])\n{_RESUME}"}, line=7),
        Case({"train.py": f"{_HEAD}{_SKLEARN_SPLIT.format('')}{_RESUME}"}, line=9),
        Case({"train.py": f"{_HEAD}train, val = random_split(data, [8, 2])\n"}, line=7,
             command=("torchrun", "--nproc_per_node", "4", "train.py")),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}train, val = random_split(data, [8, 2])\n"}),
        Case({"train.py": f"{_HEAD}torch.manual_seed(1)\ntrain, val = random_split(data, [8, 2])\n{_RESUME}"}),
        Case({"train.py": f"{_HEAD}fixed = torch.Generator().manual_seed(1)\n"
              f"train, val = random_split(data, [8, 2], generator=fixed)\n{_RESUME}"}),
        Case({"train.py": f"{_HEAD}{_SKLEARN_SPLIT.format(', random_state=3')}{_RESUME}"}),
        Case({"train.py": f"{_HEAD}{_SKLEARN_SPLIT.format(', shuffle=False')}{_RESUME}"}),
    ),
)  # fmt: skip
