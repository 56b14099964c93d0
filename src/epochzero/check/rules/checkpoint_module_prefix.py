"""The weights of a wrapped model are loaded into an unwrapped one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from epochzero.check.paths.text import path_text
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Instance, Value, entries_of
from epochzero.check.rule import Claim, Claims, JobView, Program, Reach, Rule, claim_at, guarded
from epochzero.check.view.torch_usage import PARALLEL_WRAPPERS

_LOADED = re.compile(r"torch\.load\(\)(?:\['([^']*)'\])?")
_HAS_MODULE = re.compile(r"self\.module\s*=")


@dataclass(frozen=True, slots=True)
class _Weights:
    """Saved weights: their path, their key in a dictionary, and whether the model was wrapped."""

    path: str
    key: str
    wrapped: bool


def _check(view: JobView) -> Claims:
    if any(_HAS_MODULE.search(module.text) for module in view.modules):
        return
    saved: list[_Weights] = []
    read: list[str] = []
    for call in view.calls:
        if call.name == "torch.save":
            saved += _saved(call)
        elif call.name == "torch.load":
            read.append(_path(argument(call, 0, "f")))
        elif call.name.endswith(".load_state_dict") and not guarded(call.at, RuntimeError):
            wrapped = _is_wrapped(call.receiver)
            found = {weights.wrapped for weights in _loaded(call, saved, read)}
            if wrapped is not None and found == {not wrapped}:
                yield _claim(view.program, call, wrapped)


def _saved(call: LibraryCall) -> Iterator[_Weights]:
    path = _path(argument(call, 1, "f"))
    value = argument(call, 0, "obj")
    named = [("", value), *((str(key.value), item) for key, item in entries_of(value))]
    for key, item in named:
        if path and isinstance(item, Instance) and item.made_by.endswith(".state_dict"):
            owner = item.made_by.removesuffix(".state_dict")
            if owner.startswith("torch.nn."):
                yield _Weights(path, key, owner.removesuffix("()") in PARALLEL_WRAPPERS)


def _loaded(call: LibraryCall, saved: list[_Weights], read: list[str]) -> list[_Weights]:
    """The weights that a model loads, if they were saved earlier to the path that is read."""
    state = argument(call, 0, "state_dict")
    strict = argument(call, 1, "strict")
    named = isinstance(state, Instance) and _LOADED.fullmatch(_whole(state))
    if not named or strict is not None or len(set(read)) != 1:
        return []
    return [w for w in saved if w.path == read[0] and w.key == (named[1] or "")]


def _whole(state: Instance) -> str:
    return f"{state.made_by}()" if state.made_by == "torch.load" else state.made_by


def _path(value: Value | None) -> str:
    """A path that is fully known; empty otherwise."""
    text = path_text(value)
    return text.known or "" if text is not None else ""


def _is_wrapped(model: Value | None) -> bool | None:
    """Whether a model is wrapped by PyTorch; None if unknown."""
    if not isinstance(model, Instance) or "()" in model.made_by:
        return None
    if model.own or model.made_by.startswith("torch.nn."):
        return model.made_by in PARALLEL_WRAPPERS
    return None


def _claim(program: Program, call: LibraryCall, wrapped: bool) -> Claim:
    return claim_at(
        call.at,
        severity=Reach.of(program).severity(call.at),
        message="The weights were saved "
        + ("from the bare model, and the wrapped one wants" if wrapped else "from the wrapped model: their")
        + " names begin with 'module.'"
        + (" from it." if wrapped else ", which the unwrapped model does not have."),
        consequence="RuntimeError: Error(s) in loading state_dict: Missing key(s) in state_dict",
    )  # fmt: skip


RULE = Rule(
    category="tensor_mismatch",
    why="DataParallel and DistributedDataParallel add the prefix 'module.' to the name of each "
    "weight. Evaluation code often builds the model without a wrapper and cannot load the weights "
    "that the training saved.",
    fix="Save model.module.state_dict(). Load the saved weights into the model before you wrap "
    "the model.",
    source="PyTorch tutorial, Saving and Loading Models, Saving torch.nn.DataParallel Models",
    check=_check,
    examples="""
        import torch
        from torch import nn


        def build():
            return nn.Linear(4, 2)


        model = nn.DataParallel(build())
        torch.save(model.state_dict(), 'm.pt')
        best = build()
        best.load_state_dict(torch.load('m.pt'))  # <-
        ---- caught if
        -torch.save(model.state_dict(), 'm.pt')
        +torch.save({'model': model.state_dict(), 'epoch': 1}, 'm.pt')
        @@
        -best.load_state_dict(torch.load('m.pt'))  # <-
        +saved = torch.load('m.pt', map_location='cpu')
        +best.load_state_dict(saved['model'])  # <-
        ---- ignored if
        -torch.save(model.state_dict(), 'm.pt')
        +torch.save(model.module.state_dict(), 'm.pt')
        ---- ignored if
        -best.load_state_dict(torch.load('m.pt'))
        +best.load_state_dict(torch.load('m.pt'), strict=False)
        ---- ignored if
        -best.load_state_dict(torch.load('m.pt'))
        +state = {k.removeprefix('module.'): v for k, v in torch.load('m.pt').items()}
        +best.load_state_dict(state)
    """,
)
