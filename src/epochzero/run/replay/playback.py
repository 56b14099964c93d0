"""Runs a captured job again, contained, with companions that replay its capture."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochzero.errors import InputError
from epochzero.injected.companions import AT_START, Companion, with_companions
from epochzero.run.replay.capture import CAPTURE_COMPANIONS
from epochzero.run.replay.child.inputs import PIPE
from epochzero.run.replay.differences import changed_since
from epochzero.run.replay.model import Capture, Position, ReplayResult, StepRow
from epochzero.run.replay.reading import failure_of, losses_of, position_of, read_capture
from epochzero.run.replay.verdict import ANEW, FED, OUTSIDE, compared, differences, is_same
from epochzero.run.replay.walk_result import walked_of

WAYS = ("auto", "start", "snapshot")
NEAR_S = 120.0
"""A job that failed sooner is replayed from its start."""
_VARIABLE = "EPOCHZERO_REPLAY"
_CONTAINED = "epochzero.check.dryrun.child.companions"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay; see `epochzero.replay`."""

    step: int | None = None
    way: str = "auto"
    inspect: bool = False
    python: Path | None = None
    write: bool = False
    gpu: bool = False
    seconds: float | None = None
    bisect: bool = False


@dataclass(frozen=True, slots=True)
class Playback:
    """One run of the program.

    Attributes:
        reported: record of the captured process; None if it wrote none.
        output: end of the program's output.
        why: how it ended, as a sentence.
    """

    reported: Mapping[str, Any] | None
    output: str
    why: str


def play(
    folder: Path,
    environment: Mapping[str, str],
    asked: ReplayOptions,
    on_differences: Callable[[Sequence[str]], object],
) -> ReplayResult:
    """See `epochzero.replay`."""
    if asked.gpu and not asked.write:
        raise InputError("a replay on the GPU is not contained: add --write to allow its effects")
    capture = read_capture(folder)
    known = changed_since(capture, environment, asked.python)
    on_differences(known)
    began = time.monotonic()
    ways = list(_ways(capture, asked))
    for way in ways:
        played = run_again(capture, environment, asked, way)
        replayed = _replayed(capture, asked, way, played, known, time.monotonic() - began)
        if replayed.reproduced:
            break
    return replayed


def _ways(capture: Capture, asked: ReplayOptions) -> Iterator[str]:
    """Yield the ways to try, in this order.

    Raises:
        InputError: the capture does not contain the requested step.
    """
    if asked.way not in WAYS:
        raise InputError(f"{asked.way!r} is not a replay mode; choose one of {', '.join(WAYS)}")
    reaches = asked.step is None or (capture.snapshot is not None and capture.snapshot.steps < asked.step)  # fmt: skip
    possible = capture.complete and capture.position.batches > 0 and reaches
    if asked.step is not None and asked.step > capture.position.steps + 1:
        raise InputError(f"step {asked.step} was not started: the job failed after {capture.position.steps} steps")  # fmt: skip
    if asked.way == "snapshot" and not possible:
        raise InputError(f"{capture.folder}: no snapshot before the failing step; replay from the start")  # fmt: skip
    near = capture.elapsed_s <= NEAR_S or capture.snapshot is None
    if asked.way == "start" or (asked.way == "auto" and near):
        yield "start"
    if asked.way == "snapshot" or (asked.way == "auto" and possible):
        yield "snapshot"
    if asked.way == "auto" and not near and not possible:
        yield "start"


def run_again(
    capture: Capture, environment: Mapping[str, str], asked: ReplayOptions, way: str
) -> Playback:
    """Run the program of a capture once.

    Args:
        capture: what to replay.
        environment: supplies variables that were withheld.
        asked: options.
        way: ``start`` or ``snapshot``.

    Raises:
        InputError: the program or its directory no longer exists.
    """
    from epochzero.check.dryrun.contain.model import Limits
    from epochzero.check.dryrun.process import RECORDS_DESCRIPTOR, run_contained

    if not capture.directory.is_dir():
        raise InputError(f"{capture.directory}: the job's working directory no longer exists")
    command = _command(capture, asked.python)
    seconds = asked.seconds or max(120.0, 10 * capture.elapsed_s)
    if asked.write:
        return _run_free(
            command,
            capture.directory,
            lambda records: _environment(capture, environment, asked, way, records),
            seconds,
        )
    ended = run_contained(
        command,
        folder=capture.directory,
        environment=_environment(capture, environment, asked, way, RECORDS_DESCRIPTOR),
        limits=Limits(seconds=seconds, record_bytes=1 << 24),
        spec=b"",
    )
    return Playback(_last_of(ended.records), ended.output, ended.why)


def _run_free(
    command: Sequence[str],
    folder: Path,
    environment: Callable[[int], Mapping[str, str]],
    seconds: float,
) -> Playback:
    """Run the program with all its effects."""
    with tempfile.TemporaryFile() as records, tempfile.TemporaryFile() as output:
        number = records.fileno()
        try:
            code = subprocess.run(
                command,
                cwd=folder,
                env=dict(environment(number)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[number],
                timeout=seconds,
                check=False,
            ).returncode
            why = f"It exited with status {code}."
        except subprocess.TimeoutExpired:
            why = f"It was still running after {seconds:g} s and was terminated."
        except OSError as error:
            raise InputError(f"{command[0]} cannot be executed: {error.strerror}") from error
        records.seek(0)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
        return Playback(_last_of(records.read().splitlines()), text, why)


def _last_of(records: Sequence[bytes]) -> Mapping[str, Any] | None:
    """Return the last valid record: a process may have progressed further than the previous one."""
    for record in reversed(records):
        with suppress(ValueError):
            reported = json.loads(record)
            if isinstance(reported, dict):
                return reported
    return None


def _command(capture: Capture, python: Path | None) -> list[str]:
    command = list(capture.command)
    if python is None:
        return command
    if not Path(command[0]).name.startswith("python"):
        raise InputError(f"{command[0]} is not a Python interpreter that {python} could replace")
    return [str(python), *command[1:]]


def _environment(
    capture: Capture, environment: Mapping[str, str], asked: ReplayOptions, way: str, records: int
) -> dict[str, str]:
    """Return the job's variables; withheld ones get their current values."""
    now = {name: environment[name] for name in capture.withheld if name in environment}
    companions: tuple[Companion, ...] = (
        Companion(AT_START, f"{_CONTAINED}:hold_back"),
        *CAPTURE_COMPANIONS,
    )
    if not asked.gpu and any(device.startswith("cuda") for device in capture.devices):
        companions = (*companions, Companion("torch", f"{_CONTAINED}:stay_on_cpu"))
    reported = {
        "folder": str(capture.folder.parent),
        "told_by": capture.folder.name,
        "from_snapshot": way == "snapshot",
        "nonfinite": capture.failure.kind == "nonfinite",
        "step": asked.step,
        "inspect": asked.inspect,
        "walk": asked.bisect,
        "records": records,
    }
    variables = {**capture.variables, **now, _VARIABLE: json.dumps(reported)}
    return with_companions(variables, companions, Path("/tmp"))


def _replayed(
    capture: Capture,
    asked: ReplayOptions,
    way: str,
    played: Playback,
    known: Sequence[str],
    seconds: float,
) -> ReplayResult:
    """Compare the run with the capture."""
    expected, at = capture.failure, capture.position
    if capture.nonfinite is not None and (way == "snapshot" or expected.kind == "nonfinite"):
        # The stored batches lead up to the first non-finite loss.
        expected, _ = capture.nonfinite
    reported = played.reported or {}
    ended = position_of(reported["position"]) if "position" in reported else Position(0, 0, 0)
    came = failure_of(reported.get("failure"))
    losses = compared(capture.losses, at, losses_of(reported.get("losses", ())), ended)
    differs = tuple(differences(capture, reported, known, gpu=asked.gpu))
    if not reported:
        differs = (
            f"the program reached neither its training nor the failure. {played.why}",
            *differs,
        )
    elif reported["why"] not in ("failed", "ended", "nonfinite", "passed", "reached"):
        differs = (str(reported["why"]), *differs)
    reached = reported.get("why") == "reached"
    reproduced = reached if asked.step is not None else is_same(expected, came)
    if (
        asked.step is None
        and reproduced
        and ended.steps != at.steps
        and expected.kind != "nonfinite"
    ):
        differs = (
            f"the failure occurred after {ended.steps:,} steps; originally after {at.steps:,}",
            *differs,
        )
    if way == "snapshot" and not reproduced:
        differs = (*differs, ANEW)
    if capture.input == PIPE and not reproduced:
        differs = (*differs, FED)
    if expected.kind == "signal" and not reproduced:
        differs = (*differs, OUTSIDE)
    return ReplayResult(
        reproduced=reproduced,
        way=way,
        expected=expected,
        came=came,
        position=ended,
        exactness=losses.exactness,
        compared=losses.count,
        largest_difference=losses.largest,
        first_difference=losses.first,
        differences=differs,
        table=tuple(_row(row) for row in reported.get("table", ())),
        walked=walked_of(reported["walk"]) if reported.get("walk") else None,
        output=played.output[-4000:],
        seconds=seconds,
    )


def _row(reported: Mapping[str, Any]) -> StepRow:
    return StepRow(**{**reported, "shape": tuple(reported.get("shape", ()))})
