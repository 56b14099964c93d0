"""Results of following the failing step operator by operator: immutable values, read from untrusted JSON."""

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
class TensorRange:
    """Properties of a tensor.

    Attributes:
        shape, dtype: of the tensor.
        min, max: of its finite elements; None if it has none or is too large to inspect.
        nan, inf: number of elements that are NaN or infinite.
        made_by: number of the operator that wrote it in this step; None if no operator did.
        name: name of the parameter or buffer; None for any other tensor.
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
class TracedOperator:
    """An operator that ran in the failing step.

    Attributes:
        number: position in the order of execution.
        name: torch's name for it.
        backward: whether it computed a gradient.
        module: path and class of the active module; for a backward operator, the module of its forward operator.
        path, line, text: innermost line of the user's code; for a backward operator, that of its forward operator.
        of: for a backward operator, the number of its forward operator.
        inputs, outputs: its tensors.
        finite_in_float64: whether it returns finite values in float64 for the same inputs; None if unknown.
        error: largest difference from the float64 result, relative to its largest value; None if unknown.
    """

    number: int
    name: str
    backward: bool
    module: str
    path: str
    line: int
    text: str
    of: str | None
    inputs: tuple[TensorRange, ...]
    outputs: tuple[TensorRange, ...]
    finite_in_float64: bool | None
    error: float | None


@dataclass(frozen=True, slots=True)
class TensorValues:
    """The values of a tensor.

    Attributes:
        dtype: type name of the safetensors format.
        shape: of the tensor.
        data: its bytes, little endian, in row-major order.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A call that fails on its own, outside the program.

    Attributes:
        kind: ``function``, ``operator`` or ``module`` of torch.
        name: name of the function or operator; for a module, its constructor call.
        given: ``args`` and ``kwargs``, encoded as described in docs/replay.md.
    """

    kind: str
    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FailureOrigin:
    """The origin of a failure.

    Attributes:
        operators: number of operators that were recorded.
        why: what is wrong with the culprit: it ``raised``, its result is ``not_finite`` although its inputs are
            finite, or it ``differs`` from float64; ``nothing`` if there is no culprit.
        error: type and first line of the exception if it raised.
        culprit: the operator that the failure comes from; None if there is none.
        before: the operators that ran before it.
        chain: operators from the culprit to the one at which the failure was observed.
        sources: operators that produced the culprit's inputs.
        calls: calls that fail on their own, innermost first.
        held: tensors by number of the call and name; empty if they are too large.
        versions: of Python, torch and NumPy.
        python: interpreter that ran the step.
    """

    operators: int
    why: Why
    error: str
    culprit: TracedOperator | None
    before: tuple[TracedOperator, ...]
    chain: tuple[TracedOperator, ...]
    sources: tuple[TracedOperator, ...]
    calls: tuple[OperatorCall, ...]
    held: Mapping[str, TensorValues]
    versions: Mapping[str, str]
    python: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data without tensors."""
        record = asdict(self)
        del record["held"]
        return record


def walked_of(record: Any) -> FailureOrigin | None:
    """Parse the record of the replayed process; None if it is missing or invalid."""
    try:
        if record["why"] not in WHYS:
            return None
        return FailureOrigin(
            operators=int(record["operators"]),
            why=record["why"],
            error=str(record["error"]),
            culprit=_operator(record["culprit"]) if record["culprit"] else None,
            before=tuple(map(_operator, record["before"])),
            chain=tuple(map(_operator, record["chain"])),
            sources=tuple(map(_operator, record["sources"])),
            calls=tuple(
                OperatorCall(str(c["kind"]), str(c["name"]), c["given"]) for c in record["calls"]
            ),
            held={str(name): _held(value) for name, value in record.get("tensors", {}).items()},
            versions={str(name): str(version) for name, version in record["versions"].items()},
            python=str(record["python"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _operator(record: Mapping[str, Any]) -> TracedOperator:
    path, line, text = record["place"] or ("", 0, "")
    wide = record["float64"] or {}
    return TracedOperator(
        int(record["number"]), str(record["operator"]), bool(record["backward"]), str(record["module"]),
        str(path), int(line), str(text), record["of"],
        tuple(map(_range, record["inputs"])), tuple(map(_range, record["outputs"])),
        wide.get("finite"), wide.get("error"),
    )  # fmt: skip


def _range(record: Mapping[str, Any]) -> TensorRange:
    return TensorRange(**{**record, "shape": tuple(map(int, record["shape"]))})


def _held(record: Mapping[str, Any]) -> TensorValues:
    held = TensorValues(
        record["dtype"], tuple(map(int, record["shape"])), base64.b64decode(record["data"])
    )
    if len(held.data) != SIZES[held.dtype] * prod(held.shape):
        raise ValueError("a tensor of another size")
    return held
