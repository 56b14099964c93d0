"""Values that PyTorch refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from epochzero.check.findings import Finding, Unknown
from epochzero.check.program.events import Called
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant
from epochzero.check.reach import Reach
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.situation import finding_at, guarded
from epochzero.check.target.model import Target
from epochzero.check.torch_use import argument

__all__ = ["RULE"]

_Wrong = tuple[str, str]
_OPTIMIZERS = frozenset(
    f"torch.optim.{name}" for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
)


def _check(program: Program, target: Target) -> Iterable[Finding | Unknown]:
    reach = Reach.of(program)
    for call in program.calls:
        for message, consequence in _wrong(call):
            if not guarded(call.at, ValueError, AssertionError):
                yield finding_at(
                    call.at,
                    RULE.id,
                    RULE.category,
                    severity=reach.severity(call.at),
                    message=message,
                    consequence=consequence,
                    fix="Change the value where it comes from.",
                )
            break


def _number(call: Called, position: int, name: str) -> int | float | None:
    value = argument(call, position, name)
    known = isinstance(value, Constant) and type(value.value) in (int, float)
    return value.value if known and isinstance(value, Constant) else None  # type: ignore[return-value]


def _wrong(call: Called) -> Iterator[_Wrong]:
    name = call.name
    if name == "torch.utils.data.DataLoader":
        yield from _loader(call)
    elif name in ("torch.nn.MultiheadAttention", "torch.nn.TransformerEncoderLayer",
                  "torch.nn.TransformerDecoderLayer"):  # fmt: skip
        width, heads = _number(call, 0, "embed_dim" if "Head" in name else "d_model"), None
        heads = _number(call, 1, "num_heads" if "Head" in name else "nhead")
        if width is not None and heads and width % heads:
            yield (
                f"{width} is not divisible by {heads} heads.",
                "AssertionError: embed_dim must be divisible by num_heads",
            )
    elif name.startswith("torch.nn.Conv") and name[-1:] == "d":
        yield from _convolution(call)
    elif name.startswith("torch.nn.Dropout"):
        p = _number(call, 0, "p")
        if p is not None and not 0 <= p <= 1:
            yield (
                f"{p} is no probability.",
                "ValueError: dropout probability has to be between 0 and 1",
            )
    elif name in _OPTIMIZERS:
        rate = _number(call, 1, "lr")
        if rate is not None and rate < 0:
            yield (
                f"The learning rate {rate} is negative.",
                f"ValueError: Invalid learning rate: {rate}",
            )


def _loader(call: Called) -> Iterator[_Wrong]:
    size = _number(call, 1, "batch_size")
    if size is not None and size <= 0:
        yield (
            f"batch_size is {size}.",
            f"ValueError: batch_size should be a positive integer value, but got batch_size={size}",
        )
    workers = _number(call, 5, "num_workers")
    if workers is not None and workers < 0:
        yield f"num_workers is {workers}.", "ValueError: num_workers option should be non-negative"
    persistent, sampler = call.keywords.get("persistent_workers"), call.keywords.get("sampler")
    if call.complete and _is_true(persistent) and (workers == 0 or ("num_workers" not in call.keywords
                                                   and len(call.arguments) < 6)):  # fmt: skip
        yield (
            "persistent_workers wants workers, and num_workers is 0.",
            "ValueError: persistent_workers option needs num_workers > 0",
        )
    if _is_true(argument(call, 2, "shuffle")) and sampler is not None and "Sampler" in str(sampler):
        yield (
            "A sampler and shuffle=True are given.",
            "ValueError: sampler option is mutually exclusive with shuffle",
        )


def _is_true(value: object) -> bool:
    return isinstance(value, Constant) and value.value is True


def _convolution(call: Called) -> Iterator[_Wrong]:
    taken, given = _number(call, 0, "in_channels"), _number(call, 1, "out_channels")
    groups = _number(call, 6, "groups")
    for what, channels in (("in_channels", taken), ("out_channels", given)):
        if groups and channels is not None and channels % groups:
            yield (
                f"{what} is {channels}, which {groups} groups do not divide.",
                f"ValueError: {what} must be divisible by groups",
            )


_LOADER = "from torch.utils.data import DataLoader\n\nsize = {}\nDataLoader([1, 2], batch_size=size // 4)\n"
_HEADS = "from torch import nn\n\nlayer = nn.MultiheadAttention({}, 8)\n"

RULE = Rule(
    id="argument-value",
    title="PyTorch is given a value that it refuses",
    category="illegal_argument",
    why="Values that are computed from options, or that depend on one another, are wrong only for some "
    "options: a batch size that was halved to zero, heads that do not divide the width.",
    fix="Change the option, or how the value is computed.",
    source="Zhang et al., ICSE 2020, Table 1, Illegal Argument; PyTorch documentation of the classes",
    check=_check,
    catches=(
        Case({"train.py": _LOADER.format(3)}, line=4),
        Case({"train.py": _HEADS.format(100)}, line=3),
        Case({"train.py": "from torch import nn\n\nlayer = nn.Conv2d(6, 8, 3, groups=4)\n"}, line=3),
        Case({"train.py": "from torch import nn\n\nlayer = nn.Dropout(20)\n"}, line=3),
        Case({"train.py": "from torch.utils.data import DataLoader\n"
              "DataLoader([1], persistent_workers=True)\n"}, line=2),
    ),
    leaves=(
        Case({"train.py": _LOADER.format(8)}),
        Case({"train.py": _HEADS.format(96)}),
        Case({"train.py": "from torch import nn\n\nlayer = nn.Conv2d(8, 8, 3, groups=4)\n"}),
        Case({"train.py": "from torch import nn\n\nlayer = nn.Dropout(0.2)\n"}),
        Case({"train.py": "import sys\nfrom torch.utils.data import DataLoader\n"
              "DataLoader([1], batch_size=len(sys.argv))\n"}),
    ),
)  # fmt: skip
