"""A loss receives a type that it rejects: one-hot labels, float labels, or predicted classes."""

from __future__ import annotations

from collections.abc import Mapping

from epochzero.check.program.events import Called
from epochzero.check.program.values import Instance, Value
from epochzero.check.rule import (
    Claims,
    JobView,
    Rule,
    claim_at,
    examples,
    guarded,
)
from epochzero.check.view.tensor_origins import FLOATING, LONG, Origins
from epochzero.check.view.torch_usage import argument

_CLASSES, _LOGARITHMS, _BINARY = "cross_entropy", "nll_loss", "binary_cross_entropy"
_LOSSES: Mapping[str, str] = {
    "torch.nn.CrossEntropyLoss().__call__": _CLASSES,
    "torch.nn.functional.cross_entropy": _CLASSES,
    "torch.nn.NLLLoss().__call__": _LOGARITHMS,
    "torch.nn.functional.nll_loss": _LOGARITHMS,
    "torch.nn.BCELoss().__call__": _BINARY,
    "torch.nn.functional.binary_cross_entropy": _BINARY,
    "torch.nn.BCEWithLogitsLoss().__call__": _BINARY,
    "torch.nn.functional.binary_cross_entropy_with_logits": _BINARY,
}
_Fault = tuple[str, str, str]
"""What is wrong, PyTorch's message, and the fix."""


def _check(view: JobView) -> Claims:
    origins = view.origins
    for call in view.calls:
        fault = _fault(origins, call) if call.name in _LOSSES else None
        if fault is not None and not guarded(call.at, RuntimeError):
            message, consequence, fix = fault
            yield claim_at(
                call.at,
                severity=view.reach.severity(call.at),
                message=message,
                consequence=consequence,
                fix=fix,
            )


def _fault(origins: Origins, call: Called) -> _Fault | None:
    loss = _LOSSES[call.name]
    scores, wanted = argument(call, 0, "input"), argument(call, 1, "target")
    given, labels = origins.number_type(scores), origins.number_type(wanted)
    if given == LONG and loss != _LOGARITHMS:
        return _of_predictions(origins, scores, labels)
    if loss == _BINARY:
        return _of_whole_labels(labels)
    if labels == LONG and loss == _CLASSES and _same_rank(scores, wanted):
        return (
            "The loss receives one-hot labels of integers.",
            "RuntimeError: Expected floating point type for target with class probabilities, got Long",
            "Pass the class numbers, or .float() of the one-hot labels.",
        )
    are_classes = loss == _LOGARITHMS or _is_one_less(scores, wanted)
    if labels in (FLOATING, "Int") and are_classes:
        dtype = "Float" if labels == FLOATING else labels
        return (
            f"The loss expects class numbers as Long, but receives {dtype}.",
            f"RuntimeError: expected scalar type Long but found {dtype}",
            "Convert the labels with .long().",
        )
    return None


def _of_predictions(origins: Origins, scores: Value | None, labels: str) -> _Fault:
    source = origins.before(scores)
    chosen = isinstance(source, Instance) and source.made_by.rpartition(".")[2] == "argmax"
    if labels == FLOATING and not chosen:
        what, fix = (
            "labels in the position of the scores",
            "Pass the scores first, then the labels.",
        )
    else:
        what = "integers, such as the predicted classes, in the position of the scores"
        fix = "Pass the model's scores: argmax has no gradient."
    return f"The loss receives {what}.", "RuntimeError: not implemented for 'Long'", fix


def _of_whole_labels(labels: str) -> _Fault | None:
    if labels not in (LONG, "Int", "Bool"):
        return None
    return (
        f"The loss compares floats, but its target is {labels}.",
        f"RuntimeError: Found dtype {labels} but expected Float",
        "Convert the target with .float().",
    )


def _shapes(*values: Value | None) -> list[tuple[int | None, ...] | None]:
    return [one.shape if isinstance(one, Instance) else None for one in values]


def _same_rank(scores: Value | None, wanted: Value | None) -> bool:
    """Whether the labels are certainly probabilities: they have as many axes and entries as the scores."""
    one, other = _shapes(scores, wanted)
    if isinstance(wanted, Instance) and wanted.made_by.endswith(".one_hot"):
        return one is None or other is None or len(one) == len(other)
    return one is not None and other is not None and len(one) == len(other) and one[1:] == other[1:]


def _is_one_less(scores: Value | None, wanted: Value | None) -> bool:
    """Whether the labels are certainly class numbers: they have one axis less than the scores."""
    one, other = _shapes(scores, wanted)
    return one is not None and other is not None and len(one) == len(other) + 1


RULE = Rule(
    title="A loss receives numbers of a type that it rejects",
    category="type_mismatch",
    why="Losses over class numbers require Long, losses over probabilities require floats, and "
    "no loss can learn from the output of argmax. PyTorch reports it at the first batch, or "
    "at the first batch of the validation.",
    fix="Pass the scores first and the labels second, class numbers as .long(), probabilities as "
    ".float().",
    source="PyTorch documentation, torch.nn.CrossEntropyLoss, NLLLoss and BCEWithLogitsLoss: shape and "
    "type of input and target",
    check=_check,
    cases=examples("""
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        print(F.cross_entropy(layer(x), F.one_hot(y, 3)))  # <-
        ---- caught if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))  # <-
        +print(F.cross_entropy(layer(x).argmax(dim=1), y))  # <-
        ---- caught if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))  # <-
        +print(nn.CrossEntropyLoss()(y, layer(x)))  # <-
        ---- caught if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))  # <-
        +print(F.nll_loss(F.log_softmax(layer(x), 1), y.int()))  # <-
        ---- caught if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))  # <-
        +one = nn.Linear(4, 1)
        +print(F.binary_cross_entropy_with_logits(one(x).squeeze(1), y.clamp(0, 1).long()))  # <-
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +print(F.cross_entropy(layer(x), y))
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +print(F.cross_entropy(layer(x), F.one_hot(y, 3).float()))
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +print(F.cross_entropy(layer(x), torch.rand(8, 3)))
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +from torch.utils.data import DataLoader, TensorDataset
        +
        +data = TensorDataset(x, y)
        +loss = nn.CrossEntropyLoss()
        +for x, y in DataLoader(data, batch_size=4):
        +    print(loss(layer(x), y))
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +from torch.utils.data import DataLoader, TensorDataset
        +
        +data = TensorDataset(x, y.float())
        +loss = nn.CrossEntropyLoss()
        +for x, y in DataLoader(data, batch_size=4):
        +    print(loss(layer(x), y.long()))
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +one = nn.Linear(4, 1)
        +print(F.binary_cross_entropy_with_logits(one(x).squeeze(1), y.clamp(0, 1).float()))
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +print((layer(x).argmax(dim=1) == y).float().mean())
        ---- ignored if
        -print(F.cross_entropy(layer(x), F.one_hot(y, 3)))
        +y = y.float()
        +print(F.cross_entropy(layer(x), y.to('cpu', torch.long)))
    """),
)
