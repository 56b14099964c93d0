"""A data set lacks a method that a data loader calls."""

from __future__ import annotations

import ast

from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Instance
from epochzero.check.rule import (
    Claims,
    JobView,
    Program,
    Rule,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.view.own_classes import method_of, own_bases
from epochzero.check.view.torch_usage import argument

_DATASET = frozenset({"torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset", "object"})


def _check(view: JobView) -> Claims:
    reach = view.reach
    for call in view.calls:
        value = argument(call, 0, "dataset")
        if call.name != "torch.utils.data.DataLoader" or not isinstance(value, Instance):
            continue
        missing = _missing(view.program, value.made_by) if value.own else ""
        has_sampler = {"sampler", "batch_sampler"} & set(call.keywords) or len(call.arguments) > 3
        if (
            missing
            and not guarded(call.at, TypeError)
            and not (missing == "__len__" and has_sampler)
        ):
            name = value.made_by.rpartition(".")[2]
            yield claim_at(
                call.at,
                severity=reach.severity(call.at),
                message=f"The data set {name} has no {missing}.",
                consequence=f"TypeError: object of type '{name}' has no len()"
                if missing == "__len__"
                else "NotImplementedError, or TypeError: object is not subscriptable",
                fix=f"Define {missing} in {name}.",
            )


def _missing(program: Program, name: str) -> str:
    """The method that a class of the job lacks; empty if it has both, or this is unknown."""
    within, _, last = name.rpartition(".")
    module = program.modules.get(within)
    cls = code_of(module).classes.get(last) if module is not None else None
    if module is None or cls is None:
        return ""
    line = own_bases(program, module, cls)
    names = [base for where, one in line or () for base in code_of(where).library_bases(one)]
    if line is None or any(base not in _DATASET for base in names):
        return ""
    methods = {method.name for where, one in line for method in code_of(where).methods(one)}
    others = {
        node.id for _, one in line for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip
    if methods & {"__iter__", "__getattr__", "__getitems__"}:
        return ""
    if method_of(line, "__getitem__") is None and "__getitem__" not in others:
        return "__getitem__"
    return "" if method_of(line, "__len__") is not None or "__len__" in others else "__len__"


RULE = Rule(
    title="A data set lacks a method that the data loader calls",
    category="type_mismatch",
    why="The sampler needs the length of a map-style data set, and the batches need its items.",
    fix="Define __len__ and __getitem__.",
    source="PyTorch documentation, torch.utils.data.Dataset: subclasses should overwrite __getitem__ and "
    "__len__",
    check=_check,
    cases=examples("""
        from torch.utils.data import DataLoader, Dataset, IterableDataset


        class Images(Dataset):
            def __getitem__(self, i):
                return 1


        loader = DataLoader(Images(), batch_size=4, shuffle=True)  # <-
        ---- caught if
        -    def __getitem__(self, i):
        +    def __len__(self):
        ---- caught if
        -class Images(Dataset):
        +class Images:
        ---- caught if
                 return 1

        +    def length(self):
        +        return 1
        +
        ---- ignored if
                 return 1

        +    def __len__(self):
        +        return 1
        +
        ---- ignored if
        -class Images(Dataset):
        -    def __getitem__(self, i):
        +class Images(IterableDataset):
        +    def __iter__(self):
        ---- ignored if
                 return 1

        +    def __getattr__(self, name):
        +        return 1
        +
        ---- ignored if
        -loader = DataLoader(Images(), batch_size=4, shuffle=True)
        +loader = DataLoader(Images(), batch_size=4, sampler=[1, 2])
        ----
        from torch.utils.data import DataLoader
        print(DataLoader([1, 2]))
    """),
)
