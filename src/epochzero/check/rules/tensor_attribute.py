"""The job calls methods that tensors do not have."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from epochzero.check.api import class_of
from epochzero.check.code import stored_attributes
from epochzero.check.rules.base import (
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.target.history import api_of, history_of

_TENSOR = "torch.Tensor."
_UNLISTED = frozenset(
    ["cdouble", "cfloat", "const_data_ptr", "ipu", "is_xla", "mtia", "name", "volatile"]
)
"""Attributes of tensors that PyTorch's type stubs lack."""
_ELSEWHERE: Mapping[str, str] = {
    "append": "torch.cat",
    "astype": "to",
    "copy": "clone",
    "extend": "torch.cat",
    "get": "an index",
    "keys": "the dictionary that holds the tensor",
    "len": "len(x)",
    "length": "len(x)",
    "values": "the dictionary that holds the tensor",
}
"""Names that arrays, lists and dictionaries use and tensors do not."""


def _check(program: Program, target: Target) -> Claims:
    reach, added = Reach.of(program), stored_attributes(program)
    for call in program.calls:
        method = class_of(call.name).removeprefix(_TENSOR)
        is_tensor = class_of(call.name).startswith(_TENSOR) and call.name.count("()") > 0
        if not is_tensor or "." in method or method[:1] == "_" or method in _names() | added:
            continue
        near = get_close_matches(method, _names(), n=1, cutoff=0.75)
        # An extension of PyTorch may add methods, such as those that move to its devices.
        instead = _ELSEWHERE.get(method) or next(iter(near), "")
        if instead and not guarded(call.at, AttributeError):
            yield claim_at(
                call.at,
                severity=reach.severity(call.at),
                message=f"A tensor has no {method}.",
                consequence=f"AttributeError: 'Tensor' object has no attribute '{method}'",
                fix=f"Did you mean {instead}?",
            )


@cache
def _names() -> frozenset[str]:
    """The names that tensors have in any known version of PyTorch."""
    history = history_of("torch")
    versions = history.versions if history is not None else ()
    known = (api_of("torch", one) or {} for one in {versions[0], versions[-1]})
    listed = (name for api in known for name in api.get("torch", {}))
    return _UNLISTED | {
        name.removeprefix("Tensor.") for name in listed if name.startswith("Tensor.")
    }


RULE = Rule(
    title="The job calls a method that tensors do not have",
    category="attribute_not_found",
    why="NumPy, lists and dictionaries use other names. A wrong name fails when its line runs, "
    "often in the evaluation after the training.",
    fix="Use the tensor's own method.",
    source="PyTorch documentation, torch.Tensor; compared 1.13 to 2.15",
    check=_check,
    catches=examples("""
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        print(x.permutes(1, 0))  # <-
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        loss = F.cross_entropy(layer(x), torch.randint(2, (4,)))
        print(loss.items())  # <-
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        print(layer(x).astype(torch.float16))  # <-
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        criterion = torch.nn.MSELoss()
        loss = criterion(layer(x), torch.rand(4, 2))
        loss.backwards()  # <-
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        print(x.to('cpu').detach().unsqeeze(0))  # <-
    """),
    leaves=examples("""
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        print(x.permute(1, 0), x.numpy().astype('float32').copy())
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        loss = F.cross_entropy(layer(x), torch.randint(2, (4,)))
        print(loss.item(), {'a': x}.items())
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        print(x.npu(), x.retain_grad(), x.untyped_storage(), x.tolist())
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        torch.Tensor.permutes = lambda x: x
        print(x.permutes())
        ----
        import torch
        import torch.nn.functional as F

        x = torch.rand(4, 3)
        layer = torch.nn.Linear(3, 2)
        try:
            x.astype(1)
        except AttributeError:
            pass
    """),
)
