"""A capture, and what came when it was replayed; immutable values with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from epochzero.run.replay.walk_result import Walked

SCHEMA = "epochzero.replay/1"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a training is.

    Attributes:
        steps: of all optimizers.
        backwards: backward passes, the one that is about to begin included.
        batches: that all loaders delivered.
    """

    steps: int
    backwards: int
    batches: int


@dataclass(frozen=True, slots=True)
class ReplayFailure:
    """How a job failed.

    Attributes:
        kind: ``exception``, ``nonfinite`` (a loss), ``exit`` (an exit code) or ``signal``.
        type: of the exception, or the signal's name.
        message: of the exception, the exit code.
        path, line, function: of the user's innermost code at work; empty and 0 where not known.
        through: files of code that the exception passed through, the innermost last.
        operators: of a loss that is not finite, the first that saw such values, the farthest from it first.
        arguments: what that function was given, as docs/replay.md tells structures.
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
        """The failure in a line."""
        if self.kind == "nonfinite":
            return self.message
        named = {"exit": f"exit code {self.message}", "signal": self.type}
        lines = self.message.strip().splitlines() or [""]
        # Of a loader's worker the message is a traceback.
        said = lines[-1] if "Original Traceback" in self.message else f"{self.type}: {lines[0]}"
        return named.get(self.kind, said.removesuffix(": "))


@dataclass(frozen=True, slots=True)
class Capture:
    """What was kept of a failed process.

    Attributes:
        folder: with its files.
        command, directory: of the job, and where it ran.
        variables: of the job; those of ``withheld`` have no values.
        withheld: names of variables that look like secrets.
        commit, changes: of the repository, and a digest of what differed from it; empty for none.
        rank: of the process.
        failure: how it failed.
        position: where.
        nonfinite: the first loss that was not finite, with where it was; None for none.
        losses: of the last backward passes, up to the failure.
        ended: when the capture was written, in seconds since 1970.
        elapsed_s: seconds from the start of the process to the failure.
        snapshot: where the last snapshot was made; None for none.
        complete: whether all batches since the snapshot, or the start, are kept.
        checkpoint_bytes: of weights, buffers and optimizers.
        size_bytes: of all files of the capture.
        versions: of Python, the packages that were imported, CUDA and the GPU.
        code: the user's own files of code that were loaded: ``path``, ``modified``, ``sha256``.
        devices: on which the models lay.
        files: that were read: ``path``, ``bytes``, ``modified``, of small ones ``sha256``.
        spent_s: seconds that capturing took.
        troubles: what went wrong in capturing.
        input: the file that was the standard input; ``pipe``, which cannot be read again; empty for neither.
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
class Row:
    """One line of the table about a step.

    Attributes:
        what: ``batch``, ``input``, ``weight``, ``gradient`` or ``random``.
        name: its path.
        shape, dtype: of a tensor.
        min, max, mean: of its finite values; None where there are none.
        nonfinite: how many values are not finite.
        digest: of a random state.
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
    """What came of a replay.

    Attributes:
        reproduced: whether the same failure came: the same exception at the same place, or a loss that
            is not finite for the same operators. When another step was asked for: whether it was reached.
        way: ``start``, or ``snapshot``.
        expected: how the job failed.
        came: how it failed now; None where it did not.
        position: where it ended.
        exactness: ``bits`` where all losses that can be compared are equal bit for bit, ``close``,
            ``different``, or ``none`` where there are none.
        compared: how many losses.
        largest_difference: of two losses, relative to the larger; 0 for none.
        first_difference: the backward pass of the first loss that differs; None for none.
        differences: what is otherwise than then and may matter, a sentence each.
        table: the step, where that was asked for.
        walked: the operators of the step, where that was asked for and the step was reached.
        output: the end of what the program wrote.
        seconds: that it took.
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
    table: tuple[Row, ...]
    walked: Walked | None
    output: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON, with the schema's version."""
        told = asdict(replace(self, walked=None))
        return {"schema": SCHEMA, **told, "walked": self.walked.to_dict() if self.walked else None}
