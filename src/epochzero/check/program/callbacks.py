"""The number of arguments with which libraries call the functions passed to them."""

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
"""Number of arguments by callee, for each function passed to it by position or keyword."""
_METHODS: Mapping[str, int] = {
    "register_forward_hook": 3,
    "register_forward_pre_hook": 2,
    "register_full_backward_hook": 3,
    "register_hook": 1,
}
"""Methods of modules and tensors whose first argument is a callback."""
_POOLS = ("Pool().map", "ThreadPool().map")
"""Callees whose callback raises in the job itself; an executor stores the exception until the result is read."""

INSPECTS = frozenset(
    """
    builtins.callable builtins.getattr builtins.hasattr builtins.id builtins.isinstance builtins.print
    builtins.repr builtins.setattr builtins.str builtins.type copy.copy copy.deepcopy dataclasses.field functools.update_wrapper
    functools.wraps inspect.getdoc inspect.getfile inspect.getsource inspect.isclass inspect.isfunction
    inspect.signature inspect.unwrap
    """.split()
)
"""Functions that take a function and do not call it."""


def counts(name: str, positional: Sequence[V], keywords: Mapping[str, V]) -> _Counts:
    """Return the number of arguments that a library passes to each function given to it.

    Args:
        name: dotted name of the callee.
        positional: positional arguments of the call.
        keywords: keyword arguments of the call.

    Returns:
        counts by position or keyword of the function; empty if unknown.
    """
    owner, _, method = name.rpartition(".")
    if name == "builtins.map":
        return {0: len(positional) - 1}
    if name.endswith(_POOLS):
        return {0: 1}
    if method in _METHODS and "with_kwargs" not in keywords and "()" in owner:
        return {0: _METHODS[method]}
    return _GIVEN.get(name, {})
