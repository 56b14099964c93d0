"""A library rejects these arguments."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from epochzero.check.program.events import LibraryCall
from epochzero.check.program.values import Constant, Instance, Items, Own, Text, Value
from epochzero.check.rule import Claims, JobView, Rule, claim_at, guarded
from epochzero.check.rules.conditions import holds
from epochzero.check.tables import read_table
from epochzero.check.view.api import class_of

_EXCEPTIONS: Mapping[str, type[BaseException]] = {
    "AssertionError": AssertionError,
    "NotImplementedError": NotImplementedError,
    "RuntimeError": RuntimeError,
    "TypeError": TypeError,
    "ValueError": ValueError,
}


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A rejected combination: a condition over the parameters, and the error it causes."""

    when: str
    error: str
    fix: str
    category: str = "illegal_argument"


_FIELDS = frozenset(_Refusal.__slots__)
"""The table also has calls, which the tests run."""


@dataclass(frozen=True, slots=True)
class _Callable:
    """A function or class: its parameters in order, with the known defaults."""

    parameters: tuple[str, ...]
    defaults: Mapping[str, object]
    refusals: tuple[_Refusal, ...]


class _Thing:
    """A value known only to be an object other than None: it is equal to nothing."""

    def __bool__(self) -> bool:
        raise TypeError("its truth value is unknown")

    def __eq__(self, other: object) -> bool:
        raise TypeError("its value is unknown")

    __hash__ = None  # type: ignore[assignment]


_THING = _Thing()


@cache
def _table() -> Mapping[str, _Callable]:
    """The functions that the table knows, by each of their dotted names."""
    found = {}
    for entry in read_table(__package__, "arguments_refused.toml")["call"]:
        pairs = [word.partition("=") for word in entry["parameters"].split()]
        made = _Callable(
            tuple(name for name, _, _ in pairs),
            {name: ast.literal_eval(default) for name, _, default in pairs if default},
            tuple(
                _Refusal(**{name: each[name] for name in _FIELDS & each.keys()})
                for each in entry["refuses"]
            ),
        )
        found.update(dict.fromkeys(entry["names"], made))
    return MappingProxyType(found)


def _check(view: JobView) -> Claims:
    reach = view.reach
    for call in view.calls:
        known = _table().get(call.name) or _table().get(class_of(call.name))
        if known is None:
            continue
        values = _values(call, known)
        for refusal in known.refusals:
            kind = refusal.error.partition(":")[0]
            if holds(refusal.when, values) and not guarded(
                call.at, _EXCEPTIONS.get(kind, Exception)
            ):
                yield claim_at(
                    call.at,
                    category=refusal.category,
                    severity=reach.severity(call.at),
                    message=f"{call.name} rejects its arguments: {_described(refusal.when, values)}.",
                    consequence=refusal.error,
                    fix=refusal.fix,
                )
                break


def _values(call: LibraryCall, known: _Callable) -> dict[str, object]:
    """The known arguments by parameter; defaults for those that are not passed."""
    positional = [name for name in known.parameters if not name.startswith("*")]
    given = dict(zip(positional, call.arguments, strict=False)) | dict(call.keywords)
    values = dict(known.defaults) if call.complete else {}
    for name, value in given.items():
        values.pop(name, None)
        if (plain := _plain(value)) is not None:
            values[name] = plain[0]
    return values


def _plain(value: Value) -> tuple[object] | None:
    """The value itself, `_THING` for an object that is certainly not None; None if unknown."""
    match value:
        case Constant(inner):
            return (inner,)
        case Items(kind=("tuple" | "list"), complete=True):
            items = [plain[0] for item in value.values if (plain := _plain(item)) is not None]
            return (tuple(items),) if len(items) == len(value.values) else None
        case Instance(own=True) | Own():
            return (_THING,)
        case Instance() if value.made_by.rpartition(".")[2][:1].isupper():
            return (_THING,)
        case Text():
            return (_THING,)
    return None


def _described(condition: str, values: Mapping[str, object]) -> str:
    """The values that a condition refers to: ``embed_dim = 500 and num_heads = 8``."""
    names = {node.id for node in ast.walk(ast.parse(condition)) if isinstance(node, ast.Name)}
    shown = [
        f"{name} is set" if isinstance(value, _Thing) else f"{name} = {value!r}"
        for name, value in values.items()
        if name in names
    ]
    return " and ".join(shown)


RULE = Rule(
    category="illegal_argument",
    why="Libraries check some arguments only when a call runs. Values that are computed from "
    "options, or that depend on each other, are invalid only for some options. Examples are a "
    "batch size that is halved to zero, a number of heads that does not divide the width, and a "
    "worker count of zero on another machine.",
    fix="Pass compatible arguments. Change the option or the computation of the value.",
    source="Zhang et al., ICSE 2020, section 3.3: Illegal Argument; the libraries' own checks, named "
    "in arguments_refused.toml",
    check=_check,
    examples="""
        from torch.utils.data import DataLoader

        DataLoader([1, 2], num_workers=0, prefetch_factor=4)  # <-
        ---- caught if
        -DataLoader([1, 2], num_workers=0, prefetch_factor=4)  # <-
        +DataLoader([1, 2], 2, True, sampler=[0])  # <-
        ---- ignored if
        -DataLoader([1, 2], num_workers=0, prefetch_factor=4)
        +DataLoader([1, 2], **__import__('json').load(open('a')), prefetch_factor=4)
        ----
        import json, torch

        c = json.load(open('c.json'))
        torch.nn.MultiheadAttention(c['width'], c['heads'])  # <-
        ==> c.json <==
        {"width": 500, "heads": 8}
        ----
        size = 3
        from torch.utils.data import DataLoader

        DataLoader([1, 2], batch_size=size // 4)  # <-
        ----
        import sys
        from torch.utils.data import DataLoader

        DataLoader([1, 2], batch_size=len(sys.argv))
        ----
        from torch import nn

        layer = nn.Conv2d(8, 8, 3, groups=4)
        ----
        import os, torch

        torch.nn.MultiheadAttention(500, os.cpu_count())
        ----
        try:
            import torch
            torch.nn.MultiheadAttention(500, 8)
        except AssertionError:
            pass
    """,
)
