"""A capture and the result of its replay: immutable values with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from epochzero.run.replay.walk_result import FailureOrigin

SCHEMA = "epochzero.replay/1"


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a training run.

    Attributes:
        steps: optimizer steps so far, of all optimizers.
        backwards: backward passes so far, including the one that is about to start.
        batches: batches delivered so far by all data loaders.
    """

    steps: int
    backwards: int
    batches: int


@dataclass(frozen=True, slots=True)
class ReplayFailure:
    """How a job failed.

    Attributes:
        kind: ``exception``, ``nonfinite`` (a loss), ``exit`` (an exit code) or ``signal``.
        type: exception type or signal name.
        message: message of the exception, or the exit code.
        path, line, function: innermost frame of the user's code; empty and 0 if unknown.
        through: source files in the traceback, innermost last.
        operators: for a non-finite loss, the operators that first received non-finite values, the earliest first.
        arguments: arguments of that function, encoded as described in docs/replay.md.
    """

    kind: str
    type: str
    message: str
    path: str = ""
    line: int = 0
    function: str = ""
    through: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    arguments: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """Return a one-line description."""
        if self.kind == "nonfinite":
            return self.message
        named = {"exit": f"exit code {self.message}", "signal": self.type}
        lines = self.message.strip().splitlines() or [""]
        # The message of an exception in a data-loader worker is a whole traceback.
        sentence = lines[-1] if "Original Traceback" in self.message else f"{self.type}: {lines[0]}"
        return named.get(self.kind, sentence.removesuffix(": "))


@dataclass(frozen=True, slots=True)
class Capture:
    """What was captured of a failed process.

    Attributes:
        folder: directory of the capture.
        command, directory: command line and working directory of the job.
        variables: environment of the job; variables in ``withheld`` have no values.
        withheld: names of variables that look like secrets.
        commit, changes: commit of the repository and digest of uncommitted changes; empty if there are none.
        rank: rank of the process.
        failure: how it failed.
        position: where in the training it failed.
        nonfinite: the first non-finite loss and its position; None if all losses were finite.
        losses: losses of the last backward passes, up to the failure.
        ended: time at which the capture was written, in seconds since 1970.
        elapsed_s: seconds from the start of the process to the failure.
        snapshot: position of the last snapshot; None if there is none.
        complete: whether all batches since the snapshot, or since the start, are stored.
        checkpoint_bytes: size of weights, buffers and optimizer states.
        size_bytes: size of all files of the capture.
        versions: versions of Python, imported packages, CUDA and the GPU.
        code: loaded source files of the user: ``path``, ``modified``, ``sha256``.
        devices: devices of the models.
        files: files that were read: ``path``, ``bytes``, ``modified``; ``sha256`` for small files.
        spent_s: seconds that capturing took.
        troubles: errors that occurred while capturing.
        input: file that was the standard input; ``pipe`` if it was a pipe, which cannot be read again; empty otherwise.
    """

    folder: Path
    command: tuple[str, ...]
    directory: Path
    variables: Mapping[str, str]
    withheld: tuple[str, ...]
    commit: str
    changes: str
    rank: int
    failure: ReplayFailure
    position: Position
    nonfinite: tuple[ReplayFailure, Position] | None
    losses: tuple[float, ...]
    ended: float
    elapsed_s: float
    snapshot: Position | None
    complete: bool
    checkpoint_bytes: int
    size_bytes: int
    versions: Mapping[str, str]
    code: tuple[Mapping[str, Any], ...]
    devices: tuple[str, ...]
    files: tuple[Mapping[str, Any], ...]
    spent_s: float
    troubles: tuple[str, ...]
    input: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """One row of the table of a step.

    Attributes:
        what: ``batch``, ``input``, ``weight``, ``gradient`` or ``random``.
        name: path of the value.
        shape, dtype: of a tensor.
        min, max, mean: of its finite elements; None if it has none.
        nonfinite: number of elements that are not finite.
        digest: digest of a random state.
    """

    what: str
    name: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    nonfinite: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        reproduced: whether the failure occurred again: the same exception at the same place, or a non-finite loss
            with the same operators. If a step was requested: whether it was reached.
        way: ``start`` or ``snapshot``.
        expected: how the job failed.
        came: how the replay failed; None if it did not fail.
        position: position at which the replay ended.
        exactness: ``bits`` if all comparable losses are equal bit for bit, ``close``, ``different``, or ``none`` if no
            loss can be compared.
        compared: number of compared losses.
        largest_difference: largest difference of two losses, relative to the larger one; 0 if none differ.
        first_difference: backward pass of the first loss that differs; None if none differ.
        differences: other differences from the captured run that may matter, one sentence each.
        table: table of the step, if requested.
        walked: operators of the step, if requested and if the step was reached.
        output: end of the program's output.
        seconds: duration of the replay.
    """

    reproduced: bool
    way: str
    expected: ReplayFailure
    came: ReplayFailure | None
    position: Position
    exactness: str
    compared: int
    largest_difference: float
    first_difference: int | None
    differences: tuple[str, ...]
    table: tuple[StepRow, ...]
    walked: FailureOrigin | None
    output: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data, including the schema version."""
        fields = asdict(replace(self, walked=None))
        return {
            "schema": SCHEMA,
            **fields,
            "walked": self.walked.to_dict() if self.walked else None,
        }
