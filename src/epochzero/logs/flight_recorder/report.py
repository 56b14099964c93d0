"""A fault found in dumps as a log that `diagnose` reads like any other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from epochzero.errors import InputError
from epochzero.logs.flight_recorder.dumps import Dump, Operation, read_dump
from epochzero.logs.flight_recorder.waits import CollectiveFault, first_fault
from epochzero.logs.traceback import Frame
from epochzero.logs.user_code import is_user_frame
from epochzero.number_formats import ranks_text


def report_of(paths: Sequence[Path]) -> tuple[str, float | None]:
    """What dumps of a job's ranks show together, in the form of a log.

    Args:
        paths: the dumps; of several of one rank the last written one counts.

    Returns:
        The log, and since when ranks wait, in seconds since the epoch; None if none does.
    """
    dumps: dict[int, Dump] = {}
    damaged = []
    for path in sorted(paths, key=lambda path: path.stat().st_mtime):
        try:
            dump = read_dump(path)
        except InputError as error:
            damaged.append(f"Flight recorder: {error}; it was ignored\n")
            continue
        dumps[dump.rank] = dump
    fault = first_fault(tuple(dumps.values()))
    if fault is None:
        return "".join([*damaged, f"No rank waits in a collective: {ranks_text(dumps)}\n"]), None
    return "".join([*damaged, traceback_of(fault)]), fault.call.created or None


def traceback_of(fault: CollectiveFault) -> str:
    """The fault as a traceback: the stack of the call that is to blame, or of those that wait, and
    one line of the form ``CollectiveFault: ...``.
    """
    shown = fault.blamed_call if fault.kind in ("mismatch", "cycle", "not_started") else fault.call
    prefix = f"[rank{fault.blamed[0]}]: " if len(fault.blamed) == 1 else ""
    lines = ["Traceback (most recent call last):"]
    for frame in (shown or fault.call).frames:
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
    return "".join(f"{prefix}{line}\n" for line in [*lines, f"CollectiveFault: {sentence(fault)}"])


def sentence(fault: CollectiveFault) -> str:
    """What the ranks wait for, in one line."""
    waiting = f"{ranks_text(fault.waiting)} {_waits(fault.waiting)} in {_named(fault.call)}{_since(fault.call)}"
    blamed = ranks_text(fault.blamed)
    collective = f"collective {fault.call.number} of {fault.description}"
    if fault.call.peer is not None:
        collective = f"{fault.call.operation} {fault.call.number} of {fault.description}"
    before = fault.blamed_call
    if fault.kind == "mismatch" and before:
        called = f"{ranks_text(fault.waiting)} called {_named(fault.call, tensors=True)}"
        return f"{collective} differs: {blamed} called {_named(before, tensors=True)}; {called}"
    if fault.kind == "cycle" and before:
        return f"ranks wait for each other: {blamed} {_waits(fault.blamed)} in {_named(before)}; {waiting}"
    if fault.kind == "not_started":
        return f"{collective} was never started by the GPU of {blamed}, which still runs earlier work; {waiting}"
    if fault.kind == "stuck":
        return f"{collective} did not complete although no rank is missing; {waiting}"
    if not fault.blamed:
        return f"{collective}: there is no dump of {ranks_text(fault.missing)}; {waiting}"
    last = f"; the last call of rank {fault.blamed[0]} was {_named(before)}" if before else ""
    return f"{collective} was not called by {blamed}; {waiting}{last}"


def _waits(numbers: Sequence[int]) -> str:
    return "wait" if len(numbers) > 1 else "waits"


def _named(call: Operation, *, tensors: bool = False) -> str:
    place = _place(call.frames)
    peer = f" with rank {call.peer}" if call.peer is not None else ""
    shapes = f" of {', '.join(_shape(call))}" if tensors and call.inputs else ""
    return f"{call.operation}{peer}{shapes}{f' at {place}' if place else ''}"


def _shape(call: Operation) -> list[str]:
    dtypes = call.dtypes or ("",) * len(call.inputs)
    return [f"{dtype}{list(shape)}" for dtype, shape in zip(dtypes, call.inputs, strict=False)][:4]


def _place(frames: Sequence[Frame]) -> str:
    own = [frame for frame in frames if is_user_frame(frame)]
    return f"{own[-1].file.rpartition('/')[2]}:{own[-1].line}" if own else ""


def _since(call: Operation) -> str:
    if not call.created:
        return ""
    return f" since {datetime.fromtimestamp(call.created).astimezone():%H:%M:%S}"
