"""A loss that expects scores receives probabilities."""

from collections.abc import Mapping

from epochzero.check.program.values import Instance, Value
from epochzero.check.rule import Claims, JobView, Program, Rule, argument, claim_at

_WRONG: Mapping[str, frozenset[str]] = {
    "cross_entropy": frozenset({"softmax"}),
    "binary_cross_entropy_with_logits": frozenset({"sigmoid", "softmax"}),
    "nll_loss": frozenset({"softmax", "sigmoid"}),
}
_MODULES = {
    "torch.nn.CrossEntropyLoss().__call__": "cross_entropy",
    "torch.nn.BCEWithLogitsLoss().__call__": "binary_cross_entropy_with_logits",
    "torch.nn.NLLLoss().__call__": "nll_loss",
}
_WANTS = {
    "cross_entropy": "scores, to which it applies log_softmax itself",
    "binary_cross_entropy_with_logits": "scores, to which it applies the sigmoid itself",
    "nll_loss": "logarithms of probabilities",
}
_FUNCTIONS = {
    "torch.softmax": "softmax",
    "torch.nn.functional.softmax": "softmax",
    "torch.nn.Softmax().__call__": "softmax",
    "torch.sigmoid": "sigmoid",
    "torch.nn.functional.sigmoid": "sigmoid",
    "torch.nn.Sigmoid().__call__": "sigmoid",
}
_KEEPING = frozenset(
    {"squeeze", "unsqueeze", "view", "reshape", "float", "flatten", "to", "contiguous"}
)


def _check(view: JobView) -> Claims:
    last_layers = _last_layers(view.program)
    for call in view.calls:
        loss = _loss(call.name)
        value = argument(call, 0, "input")
        applied = _applied(value, last_layers)
        if loss and applied in _WRONG[loss]:
            yield claim_at(
                call.at,
                severity="warning",
                message=f"{loss} expects {_WANTS[loss]}, but receives the output of {applied}.",
                consequence="The loss falls slowly and stays high, or has the wrong sign",
                fix=f"Remove {applied} before the loss, and apply it where predictions are made."
                if loss != "nll_loss"
                else "Use log_softmax before nll_loss, or cross_entropy on the scores.",
            )


def _loss(name: str) -> str:
    if name.startswith("torch.nn.functional."):
        last = name.rpartition(".")[2]
        return last if last in _WRONG else ""
    return _MODULES.get(name, "")


def _last_layers(program: Program) -> dict[object, str]:
    """The activation that the last layer of a Sequential applies, by where it was created."""
    found: dict[object, str] = {}
    for call in program.calls:
        if call.name == "torch.nn.Sequential" and call.complete and call.arguments:
            last = call.arguments[-1]
            made = last.made_by if isinstance(last, Instance) else ""
            applied = _FUNCTIONS.get(f"{made}().__call__", "")
            found[call.result.place if isinstance(call.result, Instance) else None] = applied
    for call in program.calls:
        if call.name == "torch.nn.Sequential().__call__" and isinstance(call.receiver, Instance):
            applied = found.get(call.receiver.place, "")
            if applied and isinstance(call.result, Instance):
                found[call.result.place] = applied
    return found


def _applied(value: Value | None, last_layers: Mapping[object, str]) -> str:
    """The function whose result a value certainly is."""
    if not isinstance(value, Instance) or value.place is None:
        return ""
    if value.made_by in _FUNCTIONS:
        return _FUNCTIONS[value.made_by]
    if value.made_by == "torch.nn.Sequential().__call__":
        return last_layers.get(value.place, "")
    maker, _, method = value.made_by.rpartition(".")
    applied = _FUNCTIONS.get(maker.removesuffix("()"), "")
    if method in _KEEPING and applied:
        return applied
    return method if method in ("softmax", "sigmoid") and maker.startswith("torch.") else ""


RULE = Rule(
    category="framework_api_misuse",
    why="CrossEntropyLoss applies log_softmax, and BCEWithLogitsLoss applies the sigmoid. If the "
    "program also applies softmax or the sigmoid, the gradients are small and the model learns "
    "little. PyTorch reports no error.",
    fix="Pass the raw scores (logits) to CrossEntropyLoss or BCEWithLogitsLoss. Pass the output of "
    "log_softmax to NLLLoss.",
    source="PyTorch documentation, torch.nn.CrossEntropyLoss, BCEWithLogitsLoss and NLLLoss, shape and "
    "meaning of input",
    check=_check,
    examples="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        p = F.softmax(layer(x), dim=1)
        print(F.cross_entropy(p, y))  # <-
        ---- caught if
        -p = F.softmax(layer(x), dim=1)
        -print(F.cross_entropy(p, y))  # <-
        +loss = nn.BCEWithLogitsLoss()
        +print(loss(torch.sigmoid(layer(x)), x))  # <-
        ---- caught if
        -p = F.softmax(layer(x), dim=1)
        -print(F.cross_entropy(p, y))  # <-
        +print(F.nll_loss(F.softmax(layer(x), -1), y))  # <-
        ---- ignored if
        -p = F.softmax(layer(x), dim=1)
        -print(F.cross_entropy(p, y))
        +scores = layer(x)
        +print(F.cross_entropy(scores, y))
        +print(scores.softmax(1))
        ----
        import torch
        from torch import nn
        import torch.nn.functional as F

        layer = nn.Linear(4, 3)
        x, y = torch.rand(8, 4), torch.randint(3, (8,))
        net = nn.Sequential(layer, nn.Softmax(dim=1))
        loss = nn.CrossEntropyLoss()
        print(loss(net(x), y))  # <-
        ---- caught if
        -net = nn.Sequential(layer, nn.Softmax(dim=1))
        -loss = nn.CrossEntropyLoss()
        +class Net(nn.Module):
        +    def __init__(self):
        +        super().__init__()
        +        self.fc = nn.Linear(4, 3)
        +
        +    def forward(self, x):
        +        return torch.softmax(self.fc(x), 1)
        +
        +
        +net, loss = Net(), nn.CrossEntropyLoss()
    """,
)
