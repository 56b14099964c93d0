"""What a diagnosis is made of: immutable values with a documented JSON form (``docs/json.md``)."""

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
"""The outcomes of a job that is known to have failed."""


@dataclass(frozen=True, slots=True)
class Root:
    """The line that names the first cause.

    Attributes:
        file: name of the log.
        line: 1-based; None when the evidence is no line (an exit code).
        text: the line.
        rank, host: where it was written, if the log tells.
        time: seconds since the epoch, or since midnight if the log gives no date.
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
    """A frame of a traceback; ``code`` is its source line, where the log shows it."""

    file: str
    line: int | None
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Consequence:
    """Something that followed from the first cause.

    Attributes:
        rank: whose; None when the log does not tell.
        title: what it is, in a few words, where a signature knows it.
        text: its first line.
        file, line: where that stands.
        role: cascade, wrapper, teardown or later (another failure after the first).
        count: how often it was seen.
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
    """What the failed job used: ``gpu_hours`` is GPUs x hours."""

    gpus: int
    seconds: float
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class End:
    """Whether the job is taken to have died, and why.

    Attributes:
        state: died, survived, or unknown where no evidence was weighed.
        evidence: the kind of evidence that decided; ``docs/json.md`` lists them.
        reason: the same in a sentence.
    """

    state: EndState
    evidence: str
    reason: str


UNKNOWN_END = End("unknown", "", "")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a job failed.

    Attributes:
        source: the paths that were read.
        outcome: failed, no_failure, evidence_missing (it failed and left no trace of why), or
            unknown (the logs are empty or incomplete, and nothing else is known of its end).
        dimension, category, also, root_cause, phase, retry: words of the taxonomy.
        retry_reason: why a retry helps or does not.
        confidence: estimated probability that the category is right, 0 to 1.
        title, meaning: what happened, in a few words and in a sentence or two.
        root: the line that names the first cause.
        exception: its class and message, if it is an exception.
        user_frame: innermost frame of the user's own code.
        stack: the frames of the traceback that it is of, the innermost last; at most `MOST_FRAMES`
            of them, those of libraries too.
        evidence: lines that support the verdict, the root first.
        cascade: what followed.
        fixes: concrete acts, most likely first.
        signature: name of the signature that matched; empty when none did.
        basis: what decided the category: signature, reading, classifier, exit or nothing.
        fingerprint: identity of the failure, versioned.
        fingerprint_weak: the fingerprint is of a process that ended without a message, and does not
            identify a failure.
        end: whether the job is taken to have died, and why.
        cost: what the job used, when that is known.
        notes: sentences on the input: what was cut off, damaged, skipped or ignored.
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
    end: End = UNKNOWN_END
    cost: Cost | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        """Whether the job is known to have failed."""
        return self.outcome in FAILURES

    def to_dict(self) -> Mapping[str, Any]:
        """The JSON form."""
        return {"schema": SCHEMA, **asdict(self)}
