"""Result types of a diagnosis: immutable values with a documented JSON form (``docs/json.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA = "epochzero.diagnosis/1"
MOST_FRAMES = 50

Basis = Literal["signature", "reading", "classifier", "exit", "nothing"]
EndState = Literal["died", "survived", "unknown"]
Outcome = Literal["failed", "no_failure", "evidence_missing", "unknown"]
FAILURES = frozenset({"failed", "evidence_missing"})
"""The outcomes that mean that the job failed."""


@dataclass(frozen=True, slots=True)
class Root:
    """The line that shows the root cause.

    Attributes:
        file: name of the log.
        line: 1-based; None if the evidence is not a line but, for example, an exit code.
        text: the line.
        rank, host: of the process that wrote it, if known.
        time: seconds since the epoch, or since midnight if the log contains no date.
    """

    file: str
    line: int | None
    text: str
    rank: int | None = None
    host: str | None = None
    time: float | None = None


@dataclass(frozen=True, slots=True)
class ExceptionInfo:
    """Class and message of the exception at the root."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class CodeFrame:
    """A frame of a traceback; ``code`` is its source line, if the log contains it."""

    file: str
    line: int | None
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Consequence:
    """An error that followed from the root cause.

    Attributes:
        rank: of its process; None if unknown.
        title: short description, if a signature matches.
        text: its first line.
        file, line: location of that line.
        role: cascade, wrapper, teardown or later (another failure after the first).
        count: number of occurrences.
    """

    rank: int | None
    title: str
    text: str
    file: str
    line: int
    role: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """Resources that the failed job used: ``gpu_hours`` is GPUs x hours."""

    gpus: int
    seconds: float
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class JobDeath:
    """Whether the job died, and the evidence.

    Attributes:
        state: died, survived, or unknown if no evidence was evaluated.
        evidence: the kind of evidence that decided; ``docs/json.md`` lists them.
        reason: the same as a sentence.
    """

    state: EndState
    evidence: str
    reason: str


UNKNOWN_END = JobDeath("unknown", "", "")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a job failed.

    Attributes:
        source: the paths that were read.
        outcome: failed, no_failure, evidence_missing (it failed, and no reason was found), or
            unknown (the logs are empty or incomplete, and how the job ended is unknown).
        dimension, category, also, root_cause, phase, retry: terms of the taxonomy.
        retry_reason: why a retry helps or does not.
        confidence: estimated probability that the category is right, 0 to 1.
        title, meaning: what happened, as a short title and in a sentence or two.
        root: the line that shows the root cause.
        exception: its class and message, if it is an exception.
        user_frame: innermost frame of the user's own code.
        stack: the frames of its traceback, innermost last; at most `MOST_FRAMES`,
            including those of libraries.
        evidence: lines that support the verdict, the root first.
        cascade: the consequences.
        fixes: concrete actions, most likely first.
        signature: name of the matching signature; empty for none.
        basis: what determined the category: signature, reading, classifier, exit or nothing.
        fingerprint: identity of the failure, versioned.
        fingerprint_weak: the fingerprint belongs to a process that exited without a message, and does not
            identify a failure.
        end: whether the job died, and the evidence.
        cost: resources that the job used, if known.
        notes: messages about the input: truncated, damaged, skipped or ignored parts.
    """

    source: tuple[str, ...]
    outcome: Outcome
    category: str
    dimension: str
    root_cause: str = "unknown"
    phase: str = "unknown"
    retry: str = "unknown"
    retry_reason: str = ""
    confidence: float = 0.0
    also: tuple[str, ...] = ()
    title: str = ""
    meaning: str = ""
    root: Root | None = None
    exception: ExceptionInfo | None = None
    user_frame: CodeFrame | None = None
    stack: tuple[CodeFrame, ...] = ()
    evidence: tuple[str, ...] = ()
    cascade: tuple[Consequence, ...] = ()
    fixes: tuple[str, ...] = ()
    signature: str = ""
    basis: Basis = "nothing"
    fingerprint: str = ""
    fingerprint_weak: bool = False
    end: JobDeath = UNKNOWN_END
    cost: Cost | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        """Whether the job is known to have failed."""
        return self.outcome in FAILURES

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        return {"schema": SCHEMA, **asdict(self)}
