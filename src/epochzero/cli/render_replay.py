"""The result of a replay, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from epochzero.cli import layout
from epochzero.run.replay.model import ReplayFailure, ReplayResult, StepRow
from epochzero.run.replay.verdict import CLOSE

_WAYS = {"start": "from its start", "snapshot": "from the last snapshot"}
_MOST_ROWS = 40
_MOST_OUTPUT = 12


def replayed_lines(replayed: ReplayResult, step: int | None) -> Iterator[str]:
    """Yield the verdict, the failure, the exactness, and the differences.

    Args:
        replayed: the result.
        step: requested step; None for the failure.
    """
    yield _verdict(replayed, step)
    if step is None:
        yield from _failure("Failed", replayed.expected)
        if replayed.came is not None and not replayed.reproduced:
            yield from _failure("Now", replayed.came)
    yield layout.field("Replayed", _how_far(replayed))
    yield layout.wrapped("Exactness", _exactness(replayed))
    yield from layout.listed("Differs", replayed.differences)
    if not replayed.reproduced:
        yield from _output(replayed.output)
    if replayed.table:
        yield ""
        yield from _table(replayed.table)


def _verdict(replayed: ReplayResult, step: int | None) -> str:
    if replayed.reproduced:
        return click.style("REPRODUCED" if step is None else f"STEP {step}", bold=True, fg="green")
    verdict = "NOT REPRODUCED" if step is None else f"STEP {step} NOT REACHED"
    came = replayed.came
    why = f": a different failure occurred, {came.text}" if came else ": it did not fail"
    return click.style(verdict, bold=True, fg="red") + layout.plain(why)


def _failure(label: str, failure: ReplayFailure) -> Iterator[str]:
    yield layout.wrapped(label, failure.text)
    if failure.path:
        within = f" in {failure.function}" if failure.function else ""
        yield layout.wrapped("", f"{layout.short_path(failure.path)}:{failure.line}{within}")
    if failure.operators:
        yield layout.wrapped("", f"non-finite values in, or on the way to, {', '.join(failure.operators[:4])}")  # fmt: skip
    for name, value in (failure.arguments or {}).items():
        if isinstance(value, (bool, int, float, str)):
            yield layout.wrapped("", f"{name} = {layout.shorten(repr(value), 100)}")


def _how_far(replayed: ReplayResult) -> str:
    at = replayed.position
    return (
        f"{_WAYS[replayed.way]}, to {layout.counted(at.steps, 'step')} and "
        f"{layout.counted(at.batches, 'batch').replace('batchs', 'batches')}, in {replayed.seconds:.1f} s"
    )


def _exactness(replayed: ReplayResult) -> str:
    count = layout.counted(replayed.compared, "loss").replace("losss", "losses")
    if replayed.exactness == "none":
        return "no losses to compare"
    if replayed.exactness == "bits":
        return f"{count} compared, all bitwise equal"
    return (
        f"{count} compared; they differ from backward pass {replayed.first_difference:,} on, by a relative "
        f"difference of up to {replayed.largest_difference:.2g} (up to {CLOSE:g} counts as close)"
    )


def _output(output: str) -> Iterator[str]:
    lines = output.rstrip().splitlines()[-_MOST_OUTPUT:]
    for number, line in enumerate(lines):
        yield layout.field("" if number else "Output", layout.shorten(line, 160))


def _table(rows: tuple[StepRow, ...]) -> Iterator[str]:
    heads = ("", "name", "shape", "type", "smallest", "largest", "mean", "not finite")
    head, *shown = layout.aligned([heads, *(_cells(row) for row in _chosen(rows))])
    yield click.style(head, bold=True)
    yield from shown
    if len(rows) > len(shown):
        yield f"{len(rows) - len(shown):,} more; --format json lists all of them"


def _chosen(rows: tuple[StepRow, ...]) -> list[StepRow]:
    """Select, from many rows, those that are not finite, and the first of each kind."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    share = _MOST_ROWS // 5
    seen: dict[str, int] = {}
    found: list[StepRow] = []
    for row in rows:
        seen[row.what] = seen.get(row.what, 0) + 1
        if seen[row.what] <= share or (row.nonfinite and len(found) < 2 * _MOST_ROWS):
            found.append(row)
    return found


def _cells(row: StepRow) -> tuple[str, ...]:
    if row.what == "random":
        return row.what, row.name, "", "", row.digest, "", "", ""
    numbers = ("" if value is None else f"{value:.4g}" for value in (row.min, row.max, row.mean))
    shape = "x".join(map(str, row.shape)) or "()"
    return row.what, row.name, shape, row.dtype, *numbers, f"{row.nonfinite:,}" if row.nonfinite else ""  # fmt: skip
