"""The job passes arguments that the target's version of a library does not accept."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial

from epochzero.check.rule import Claims, JobView, Rule, at_keyword, claim_at, guarded
from epochzero.check.target.model import CallSignature
from epochzero.check.target.signature import misfit
from epochzero.check.view.api import class_of, elsewhere, is_gone, member, uses


def _check(view: JobView) -> Claims:
    reach = view.reach
    gone = [use.at.place for use in uses(view.program) if is_gone(use.change, view.target)]
    reported = {(place.path, place.line) for place in gone}
    for call in view.calls:
        name = class_of(call.name) if "()" in call.name else call.name
        line = (call.at.place.path, call.at.place.line)
        if not name or name.endswith("__call__") or line in reported:
            continue
        # `super().__init__` of the job's class is called under the library's name, with its own object.
        _, signature, _ = member(view.target, name)
        if signature is None or name.endswith("__init__"):
            continue
        keywords = _as_torch(signature, call.keywords) if _is_compiled(name) else call.keywords
        given = (len(call.arguments), tuple(keywords), call.complete)
        wrong = misfit(signature, *given)
        if wrong and not guarded(call.at, TypeError) and not reach.is_versioned(call.at):
            reported.add(line)
            unknown = _unknown(wrong)
            yield claim_at(
                at_keyword(view.program, call.at, unknown) if unknown else call.at,
                severity=reach.severity(call.at),
                message=f"On the target {name}() {wrong}.",
                consequence=f"TypeError: {name.rpartition('.')[2]}() {wrong}",
                fix=_near(signature, wrong)
                or elsewhere(view.target, name, partial(_takes, given))
                or _takes_instead(signature),
            )


def _unknown(wrong: str) -> str:
    """The unexpected keyword; empty if the error is another one."""
    return wrong.partition("unexpected keyword argument '")[2].rstrip("'")


_COMPILED = ("torch", "torch.Tensor", "torch.fft", "torch.linalg", "torch.special")
_OF_NUMPY = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x1": "input",
    "x2": "other",
}
"""NumPy's parameter names, which PyTorch's compiled functions also accept (python_arg_parser.cpp)."""


def _is_compiled(name: str) -> bool:
    return name.rpartition(".")[0] in _COMPILED


def _as_torch(signature: CallSignature, keywords: Iterable[str]) -> list[str]:
    known = signature.keywords
    return [
        keyword if keyword in known else _OF_NUMPY.get(keyword, keyword) for keyword in keywords
    ]


def _near(signature: CallSignature, wrong: str) -> str:
    unknown = _unknown(wrong)
    names = [*signature.positional, *signature.keywords]
    near = get_close_matches(unknown, names, n=1) if unknown else []
    return f"Did you mean {near[0]}=?" if near else ""


def _takes(given: tuple[int, tuple[str, ...], bool], signature: CallSignature) -> bool:
    return not misfit(signature, *given)


def _takes_instead(signature: CallSignature) -> str:
    names = list(dict.fromkeys([*signature.positional, *signature.keywords]))
    return f"It accepts: {', '.join(names)}." if names else "It accepts no arguments."


RULE = Rule(
    category="illegal_argument",
    why="Libraries rename and remove parameters between versions. The call fails only when it "
    "runs.",
    fix="Pass arguments that the target's version of the library accepts.",
    source="Zhang et al., ICSE 2020, section 3.2, Framework API Misuse: softmax() got an unexpected keyword "
    "argument 'axis'",
    check=_check,
    examples="""
        import mylib

        mylib.load('a', True)  # <-
        ==> target.toml <==
        [api.mylib]
        load = "(path, *, strict=...)"
        make = "(**options)"
        Trainer = "(model, epochs=...)"
        "Trainer.fit" = "(data, *, ckpt_path=...)"
        VERSION = false
        ---- caught if
        -mylib.load('a', True)  # <-
        +mylib.load()  # <-
        ---- caught if
        -mylib.load('a', True)  # <-
        +mylib.Trainer('m').fit([1], resume=True)  # <-
        ---- ignored if
        -mylib.load('a', True)
        +mylib.load(*open('a').read().split())
        ---- ignored if
        -mylib.load('a', True)
        +
        +class Mine(mylib.Trainer):
        +    def __init__(self):
        +        super().__init__('m', epochs=2)
        +
        +
        +Mine().fit([1], ckpt_path='a')
        ----
        import torch
        import torch.nn.functional as F

        F.softmax(torch.ones(2), axis=0)  # <-
        ==> target.toml <==
        [distributions]
        torch = "1.13.1"
        ---- caught if
        -import torch.nn.functional as F
        @@
        -F.softmax(torch.ones(2), axis=0)  # <-
        +model = torch.nn.Linear(2, 2)
        +optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # <-
        ---- ignored if
        -import torch.nn.functional as F
        @@
        -F.softmax(torch.ones(2), axis=0)
        +x = torch.ones(2)
        +torch.cat([x, x], axis=0)
        +torch.sum(x, axis=0, keepdims=True)
        ----
        import inspect
        import mylib

        GIVEN = {'epochs': 2, 'note': 'x'}
        known = inspect.signature(mylib.Trainer).parameters
        chosen = {key: value for key, value in GIVEN.items() if key in known}
        mylib.Trainer('m', **chosen)
        ==> target.toml <==
        [api.mylib]
        load = "(path, *, strict=...)"
        make = "(**options)"
        Trainer = "(model, epochs=...)"
        "Trainer.fit" = "(data, *, ckpt_path=...)"
        VERSION = false
        ---- ignored if
        -chosen = {key: value for key, value in GIVEN.items() if key in known}
        +chosen = {}
        +for key, value in GIVEN.items():
        +    if key not in known:
        +        continue
        +    chosen[key] = value
        ---- ignored if
        -chosen = {key: value for key, value in GIVEN.items() if key in known}
        +chosen = dict(GIVEN)
        +for key in GIVEN:
        +    if key not in known:
        +        del chosen[key]
        ---- ignored if
        -chosen = {key: value for key, value in GIVEN.items() if key in known}
        +chosen = {}
        +for key in GIVEN:
        +    if key in known:
        +        chosen.update({key: GIVEN[key]})
    """,
)
