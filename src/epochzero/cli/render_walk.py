"""What a walk through the failing step found, as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click

from epochzero.cli import layout
from epochzero.run.replay.program import Reproducer
from epochzero.run.replay.walk_result import FailureOrigin, TensorRange, TracedOperator

_DATA = {
    "inline": "it contains values of your data",
    "made": "its values are generated in the range of yours; none of your data is in it",
    "file": "its values, which are of your data, are in",
}
_LARGEST = {"float16": "65504", "bfloat16": "3.4e38", "float32": "3.4e38"}


def walked_lines(walked: FailureOrigin | None) -> Iterator[str]:
    """The operator that caused the failure, its inputs, and the operators around it."""
    yield ""
    if walked is None:
        yield layout.wrapped("Operator", "not traced: the program exited before the failing step")  # fmt: skip
        return
    culprit = walked.culprit
    if culprit is None:
        yield layout.wrapped("Operator", (f"none of {walked.operators:,} operators raised an exception, returned non-finite values or differs "
"from float64: the failure is in the program's own code"))  # fmt: skip
        return
    way = f" of the gradient of {culprit.of}" if culprit.of else ""
    yield layout.wrapped("Operator", f"{culprit.name}{way} {_what(walked, culprit)}", fg="red")
    if culprit.module:
        yield layout.wrapped("Module", culprit.module)
    if culprit.path:
        yield layout.wrapped("Line", f"{layout.short_path(culprit.path)}:{culprit.line}")
        yield layout.wrapped("", culprit.text)
    makers = {source.number: source for source in walked.sources}
    inputs = (f"{_range(argument)}, {_from(argument, makers)}" for argument in culprit.inputs)
    yield from layout.listed("Inputs", inputs)
    yield ""
    yield from _table(walked)


def _what(walked: FailureOrigin, culprit: TracedOperator) -> str:
    if walked.why == "raised":
        return f"raised {walked.error}"
    if walked.why == "differs":
        return f"differs from float64 by {culprit.error or 0:.2g} of its largest value"
    outputs = culprit.outputs
    nan, inf = sum(output.nan for output in outputs), sum(output.inf for output in outputs)
    bad = " and ".join(text for count, text in ((nan, f"{nan:,} NaN"), (inf, f"{inf:,} infinite")) if count)  # fmt: skip
    given = any(argument.nan or argument.inf for argument in culprit.inputs)
    description = f"gives {bad} of {sum(math.prod(output.shape) for output in outputs):,} values{' from non-finite inputs' if given else ' from finite inputs'}"
    if culprit.finite_in_float64:
        kind = outputs[0].dtype
        most = f", whose maximum is {_LARGEST[kind]}" if kind in _LARGEST else ""
        description += f"; the result is finite in float64 but too large for {kind}{most}"
    return description


def _range(range_: TensorRange) -> str:
    shape = "x".join(map(str, range_.shape)) or "()"
    text = f"{range_.dtype} {shape}"
    if range_.min is not None and range_.max is not None:
        text += f" of {range_.min:.5g}" + (
            f" to {range_.max:.5g}" if range_.max != range_.min else ""
        )
    for count, name in ((range_.nan, "NaN"), (range_.inf, "infinite")):
        text += f", {count:,} {name}" if count else ""
    return text


def _from(range_: TensorRange, makers: dict[int, TracedOperator]) -> str:
    if range_.made_by is None:
        return (
            f"parameter or buffer {range_.name}"
            if range_.name
            else "from before this step, or data"
        )
    maker = makers.get(range_.made_by)
    line = f" in {layout.short_path(maker.path)}:{maker.line}" if maker and maker.path else ""
    return f"from {maker.name if maker else 'operator'} (number {range_.made_by}){line}"


def _table(walked: FailureOrigin) -> Iterator[str]:
    """The operators before the culprit, it, and those on the way to where the failure was seen."""
    assert walked.culprit is not None
    after = walked.chain[1:]
    heads = ("", "number", "operator", "module", "output", "line")
    rows: list[tuple[str, ...]] = [heads]
    for mark, operators in (("", walked.before), (">", (walked.culprit,)), ("", after)):
        nothing = "raises" if mark and walked.why == "raised" else "in place"
        rows += [(mark, *_cells(operator, nothing)) for operator in operators]
    head, *lines = layout.aligned(rows)
    yield click.style(head, bold=True)
    for line in lines:
        yield click.style(line, fg="red") if line.startswith(">") else line


def _cells(operator: TracedOperator, nothing: str) -> tuple[str, ...]:
    name = f"{operator.name}{' (gradient)' if operator.backward else ''}"
    gives = _range(operator.outputs[0]) if operator.outputs else nothing
    place = f"{Path(operator.path).name}:{operator.line}" if operator.path else ""
    return f"{operator.number:,}", name, layout.shorten(operator.module, 30), gives, place


def program_lines(program: Reproducer) -> Iterator[str]:
    """Where the program is, what is in it, and that it was run."""
    source = _DATA[program.data] + (f" {program.file}" if program.file else "")
    yield layout.wrapped(
        "Program", f"{program.path}: {source}. It was run and failed with {program.outcome}"
    )
