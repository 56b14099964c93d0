"""What a walk through the failing step found: immutable values, read with distrust."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any, Literal

from epochzero.run.replay.child.layout import SIZES

Why = Literal["raised", "not_finite", "differs", "nothing"]
WHYS = ("raised", "not_finite", "differs", "nothing")


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of a tensor.

    Attributes:
        shape, dtype: of the tensor.
        min, max: of its finite numbers; None where there are none, or it is too large.
        nan, inf: how many of its numbers are not finite.
        made_by: number of the operator that wrote it in this step; None for none.
        name: of the parameter or buffer that it is; None for another.
    """

    shape: tuple[int, ...]
    dtype: str
    min: float | None
    max: float | None
    nan: int
    inf: int
    made_by: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that ran in the failing step.

    Attributes:
        number: in the order in which they ran.
        name: as torch calls it.
        backward: whether it computed a gradient.
        module: path and class of the module at work, of a gradient's operator the one of its forward pass.
        path, line, text: the user's innermost line, likewise.
        of: of a gradient, the operator of the forward pass.
        inputs, outputs: its tensors.
        finite_in_float64: whether it gives finite numbers in float64 for the same inputs; None where not known.
        error: largest difference from float64, relative to the largest number; None where not known.
    """

    number: int
    name: str
    backward: bool
    module: str
    path: str
    line: int
    text: str
    of: str | None
    inputs: tuple[Range, ...]
    outputs: tuple[Range, ...]
    finite_in_float64: bool | None
    error: float | None


@dataclass(frozen=True, slots=True)
class Held:
    """The values of a tensor.

    Attributes:
        dtype: a word of the layout of safetensors.
        shape: of the tensor.
        data: its bytes, little endian, row by row.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A call that fails by itself.

    Attributes:
        kind: ``function``, ``operator`` or ``module`` of torch.
        name: of it; of a module, what makes it.
        given: ``args`` and ``kwargs``, as docs/replay.md tells structures.
    """

    kind: str
    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Walked:
    """Where a failure comes from.

    Attributes:
        operators: how many were walked through.
        why: what is wrong with the culprit: it ``raised``, its result is ``not_finite`` while its inputs are, or
            it ``differs`` from float64; ``nothing`` where there is none.
        error: type and first line of the exception, where it raised.
        culprit: the operator; None for none.
        before: the operators before it.
        chain: from the culprit to where the failure was seen.
        sources: the operators that made the culprit's inputs.
        calls: what fails by itself, the innermost first.
        held: their tensors by the number of the call and their name; empty where they are too large.
        versions: of Python, torch and NumPy.
        python: that ran it.
    """

    operators: int
    why: Why
    error: str
    culprit: Operator | None
    before: tuple[Operator, ...]
    chain: tuple[Operator, ...]
    sources: tuple[Operator, ...]
    calls: tuple[OperatorCall, ...]
    held: Mapping[str, Held]
    versions: Mapping[str, str]
    python: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without the tensors."""
        told = asdict(self)
        del told["held"]
        return told


def walked_of(told: Any) -> Walked | None:
    """What the process that was replayed tells of its walk; None where it tells nothing that can be read."""
    try:
        if told["why"] not in WHYS:
            return None
        return Walked(
            operators=int(told["operators"]),
            why=told["why"],
            error=str(told["error"]),
            culprit=_operator(told["culprit"]) if told["culprit"] else None,
            before=tuple(map(_operator, told["before"])),
            chain=tuple(map(_operator, told["chain"])),
            sources=tuple(map(_operator, told["sources"])),
            calls=tuple(
                OperatorCall(str(c["kind"]), str(c["name"]), c["given"]) for c in told["calls"]
            ),
            held={str(name): _held(one) for name, one in told.get("tensors", {}).items()},
            versions={str(name): str(version) for name, version in told["versions"].items()},
            python=str(told["python"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _operator(told: Mapping[str, Any]) -> Operator:
    path, line, text = told["place"] or ("", 0, "")
    wide = told["float64"] or {}
    return Operator(
        int(told["number"]), str(told["operator"]), bool(told["backward"]), str(told["module"]),
        str(path), int(line), str(text), told["of"],
        tuple(map(_range, told["inputs"])), tuple(map(_range, told["outputs"])),
        wide.get("finite"), wide.get("error"),
    )  # fmt: skip


def _range(told: Mapping[str, Any]) -> Range:
    return Range(**{**told, "shape": tuple(map(int, told["shape"]))})


def _held(told: Mapping[str, Any]) -> Held:
    held = Held(told["dtype"], tuple(map(int, told["shape"])), base64.b64decode(told["data"]))
    if len(held.data) != SIZES[held.dtype] * prod(held.shape):
        raise ValueError("a tensor of another size")
    return held
