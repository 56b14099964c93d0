"""A data loader shuffles or samples a data set that only streams."""

from __future__ import annotations

from epochzero.check.program.events import Called
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Constant, Instance
from epochzero.check.rule import (
    Claims,
    JobView,
    Program,
    Rule,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.view.own_classes import own_bases
from epochzero.check.view.torch_usage import argument

_ITERABLE = ("torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset")


def _check(view: JobView) -> Claims:
    for call in view.calls:
        refused = _refused(call) if call.name == "torch.utils.data.DataLoader" else ""
        data = argument(call, 0, "dataset")
        if not refused or not isinstance(data, Instance) or guarded(call.at, ValueError):
            continue
        if data.own and _streams(view.program, data.made_by):
            option = refused.partition("=")[0]
            yield claim_at(
                call.at,
                severity=view.reach.severity(call.at),
                message=f"{data.made_by.rpartition('.')[2]} is an IterableDataset, which defines its "
                f"own order, but {refused} is passed.",
                consequence=f"ValueError: DataLoader with IterableDataset: expected unspecified {option} "
                f"option, but got {refused}",
                fix=f"Remove {option}, and shuffle in __iter__ of the data set.",
            )


def _refused(call: Called) -> str:
    """The argument that an iterable data set does not allow; empty if there is none."""
    shuffle = argument(call, 2, "shuffle")
    if isinstance(shuffle, Constant) and shuffle.value is True:
        return "shuffle=True"
    for position, name in ((3, "sampler"), (4, "batch_sampler")):
        if isinstance(given := argument(call, position, name), Instance):
            return f"{name}={given.made_by.rpartition('.')[2]}"
    return ""


def _streams(program: Program, name: str) -> bool:
    """Whether a class of the job is certainly an iterable data set."""
    within, _, last = name.rpartition(".")
    module = program.modules.get(within)
    cls = code_of(module).classes.get(last) if module is not None else None
    if module is None or cls is None:
        return False
    line = own_bases(program, module, cls) or [(module, cls)]
    bases = {base for where, one in line for base in code_of(where).library_bases(one)}
    return not bases.isdisjoint(_ITERABLE)


RULE = Rule(
    title="A data loader shuffles a data set that only streams",
    category="illegal_argument",
    why="A loader can shuffle or sample only data that it can index. A data set that was turned "
    "into a stream because it grew too large often keeps the loader arguments of the old one.",
    fix="Remove shuffle and sampler, and shuffle within the data set.",
    source="PyTorch documentation, torch.utils.data, Iterable-style datasets: sampler and shuffle do not "
    "apply; DataLoader.__init__",
    check=_check,
    cases=examples("""
        import torch
        from torch.utils.data import DataLoader, IterableDataset


        class Lines(IterableDataset):
            def __iter__(self):
                return iter(range(9))

            def __getitem__(self, at):
                return at

            def __len__(self):
                return 9


        loader = DataLoader(Lines(), 4, shuffle=True)  # <-
        ---- caught if
        -loader = DataLoader(Lines(), 4, shuffle=True)  # <-
        +order = torch.utils.data.SequentialSampler([1])
        +loader = DataLoader(Lines(), 4, sampler=order)  # <-
        ---- caught if
        -loader = DataLoader(Lines(), 4, shuffle=True)  # <-
        +class Words(Lines):
        +    pass
        +
        +
        +loader = DataLoader(Words(), 4, True)  # <-
        ---- ignored if
        -loader = DataLoader(Lines(), 4, shuffle=True)
        +loader = DataLoader(Lines(), 4)
        ---- ignored if
        -loader = DataLoader(Lines(), 4, shuffle=True)
        +loader = DataLoader(Lines(), 4, shuffle=False, sampler=None)
        ---- ignored if
        -from torch.utils.data import DataLoader, IterableDataset
        +from torch.utils.data import DataLoader, Dataset
        @@
        -class Lines(IterableDataset):
        +class Lines(Dataset):
    """),
)
