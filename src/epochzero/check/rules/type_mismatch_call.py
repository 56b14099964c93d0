"""A function receives a value of the wrong type."""

from collections.abc import Iterator

from epochzero.check.launch.model import Job
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Rule, SourceLocation, claim_at, guarded

_INTEGERS = {
    "builtins.range": ((0, ""), (1, ""), (2, "")),
    "torch.utils.data.DataLoader": ((1, "batch_size"), (5, "num_workers")),
    "torch.manual_seed": ((0, "seed"),),
    "torch.nn.Linear": ((0, "in_features"), (1, "out_features")),
    "torch.nn.Embedding": ((0, "num_embeddings"), (1, "embedding_dim")),
    "torch.nn.Conv2d": ((0, "in_channels"), (1, "out_channels")),
    "torch.set_num_threads": ((0, ""),),
    "numpy.random.seed": ((0, "seed"),),
    "random.sample": ((1, "k"),),
}
_NUMBERS = {
    "time.sleep": ((0, ""),),
    "torch.optim.SGD": ((1, "lr"), (2, "momentum")),
    "torch.optim.Adam": ((1, "lr"),),
    "torch.optim.AdamW": ((1, "lr"),),
    "torch.optim.RMSprop": ((1, "lr"),),
    "torch.nn.Dropout": ((0, "p"),),
    "math.sqrt": ((0, ""),),
    "math.log": ((0, ""),),
    "math.ceil": ((0, ""),),
    "math.floor": ((0, ""),),
    "builtins.abs": ((0, ""),),
    "builtins.round": ((0, ""),),
}


def _check(view: JobView) -> Claims:
    reach = view.reach
    for call in view.calls:
        for value, wanted in _wrong(call):
            if guarded(call.at, TypeError):
                continue
            kind = type(value.value).__name__
            origin = _source(view.job, value.origin)
            yield claim_at(
                call.at,
                severity=reach.severity(call.at),
                message=f"{_short(call.name)}() receives {value.value!r:.60}, a {kind}{origin}, but "
                f"expects {wanted}.",
                consequence=f"TypeError: {_short(call.name)}() was given a {kind}",
                fix="Set type=int or type=float for the option."
                if origin and kind == "str"
                else f"Pass {wanted}.",
            )
            break


def _wrong(call: LibraryCall) -> Iterator[tuple[Constant, str]]:
    """The arguments that certainly have the wrong type, and the expected type."""
    for position, name in _INTEGERS.get(call.name, ()):
        value = argument(call, position, name)
        if isinstance(value, Constant) and isinstance(value.value, str | float | bytes):
            yield value, "an integer"
    for position, name in _NUMBERS.get(call.name, ()):
        value = argument(call, position, name)
        if isinstance(value, Constant) and isinstance(value.value, str | bytes):
            yield value, "a number"


def _source(job: Job, origin: SourceLocation | None) -> str:
    """The source of a value, if it is not in the call."""
    if origin is None:
        return ""
    if job.says(origin):
        return " from the command line"
    return " from the default of an option" if "add_argument" in origin.code else ""


def _short(name: str) -> str:
    return name.removeprefix("builtins.")


RULE = Rule(
    category="type_mismatch",
    why="A command-line option without type= is parsed as a string. The operator / returns a "
    "float, even for two integers. Python checks the type only when the program uses the value.",
    fix="Set the type of the option, or convert the value.",
    source="Zhang et al., ICSE 2020, Table 1, Type Mismatch; Python documentation, argparse, type",
    check=_check,
    examples="""
        $ python train.py --epochs 5
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument('--epochs', default=3)
        args = parser.parse_args()
        for epoch in range(args.epochs):  # <-
            print(epoch)
        ---- ignored if
        -parser.add_argument('--epochs', default=3)
        +parser.add_argument('--epochs', type=int, default=3)
        ----
        import argparse

        parser = argparse.ArgumentParser()
        import torch
        parser.add_argument('--lr', default='0.1')
        args = parser.parse_args()
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)  # <-
        ----
        from torch import nn
        hidden = 256
        layer = nn.Linear(hidden / 2, 10)  # <-
        ----
        $ python train.py 3
        import sys
        for step in range(int(sys.argv[1])):
            print(step)
        ----
        try:
            range(1.5)
        except TypeError:
            print('no')
    """,
)
