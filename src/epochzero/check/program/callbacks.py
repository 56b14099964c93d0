"""With how many arguments libraries call the functions that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from epochzero.check.program.heap import V

_Counts: TypeAlias = Mapping[int | str, int]

_ONE_KEY: _Counts = {"key": 1}
_SCHEDULE: _Counts = {1: 1, "lr_lambda": 1}
_GIVEN: Mapping[str, _Counts] = {
    "builtins.sorted": _ONE_KEY,
    "builtins.min": _ONE_KEY,
    "builtins.max": _ONE_KEY,
    "builtins.list().sort": _ONE_KEY,
    "builtins.filter": {0: 1},
    "functools.reduce": {0: 2},
    "signal.signal": {1: 2},
    "torch.optim.lr_scheduler.LambdaLR": _SCHEDULE,
    "torch.optim.lr_scheduler.MultiplicativeLR": _SCHEDULE,
    "torchvision.transforms.Lambda": {0: 1, "lambd": 1},
    "torchvision.transforms.v2.Lambda": {0: 1},
    "transformers.Trainer": {"compute_metrics": 1, "data_collator": 1},
    "transformers.Seq2SeqTrainer": {"compute_metrics": 1, "data_collator": 1},
}
"""By the name of what is called: each function given to it, by position or keyword."""
_METHODS: Mapping[str, int] = {
    "register_forward_hook": 3,
    "register_forward_pre_hook": 2,
    "register_full_backward_hook": 3,
    "register_hook": 1,
}
"""Methods of modules and tensors: their first argument."""
_POOLS = ("Pool().map", "ThreadPool().map")
"""What raises in the job itself; an executor keeps the exception until it is asked for the result."""


def counts(name: str, positional: Sequence[V], keywords: Mapping[str, V]) -> _Counts:
    """How many arguments each of the functions gets that a call gives to a library.

    Args:
        name: dotted, of what is called.
        positional: arguments of the call.
        keywords: likewise.

    Returns:
        by the position or keyword of the function; empty where it is not known.
    """
    owner, _, method = name.rpartition(".")
    if name == "builtins.map":
        return {0: len(positional) - 1}
    if name.endswith(_POOLS):
        return {0: 1}
    if method in _METHODS and "with_kwargs" not in keywords and "()" in owner:
        return {0: _METHODS[method]}
    return _GIVEN.get(name, {})
