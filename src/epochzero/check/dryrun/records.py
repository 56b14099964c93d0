"""The output of the child as typed records. It is the job's own process: nothing in it is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

MOST_RECORDS = 10_000
LONGEST_TEXT = 8000


@dataclass(frozen=True, slots=True)
class StartRecord:
    """The child is about to run the script."""

    python: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """The job is about to run with another value of an option; reported by the parent."""

    option: str
    value: int


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """A part of a job is at these lines of the user's source."""

    path: str = ""
    part: str = ""
    line: int = 0
    end: int = 0
    function: str = ""
    condition: str = ""


@dataclass(frozen=True, slots=True)
class VisitRecord:
    """A line of the user's source ran a part."""

    how: str = ""
    phase: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class PassRecord:
    """A line has run that a rule claims to fail."""

    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class SkipRecord:
    """A loop skipped iterations; ``total`` is its number of iterations, 0 if unknown.

    A loop that the time limit ``cut`` did not run its last iterations either.
    """

    path: str = ""
    line: int = 0
    total: int = 0
    work: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class DifferenceRecord:
    """A difference from the platform."""

    what: str = ""
    path: str = ""
    line: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class SaveRecord:
    """A file with tensors without values was written; ``bytes`` is the size of their values."""

    path: str = ""
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class NaN:
    """A loss is NaN when backward is called."""

    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """The job contacted another machine: ``host:port`` or a name."""

    address: str = ""


@dataclass(frozen=True, slots=True)
class SpawnRecord:
    """The job started another program."""

    program: str = ""


@dataclass(frozen=True, slots=True)
class UnfitRecord:
    """The GPU could not be simulated."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class ResumeRecord:
    """The script completed, and starts again with its checkpoint."""

    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A frame of the error that ended the script."""

    path: str = ""
    line: int = 0
    function: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """The error that ended the script.

    Attributes:
        certain: whether no earlier shortened loop can be its cause.
        taken: number of loop iterations before it.
        frames: frames, the outermost first.
        layer: module whose call failed, if known.
        rank: rank of the process; -1 if the job has only one.
        trace: its traceback as text; empty if only the output explains the end.
        comparable: whether it is certain if it is the same after another number of iterations.
        operands: names in the line that failed, with their sizes, keys or values.
    """

    type: str = ""
    message: str = ""
    phase: str = ""
    certain: bool = False
    taken: int = 0
    frames: tuple[FrameRecord, ...] = ()
    layer: Mapping[str, Any] | None = None
    rank: int = -1
    trace: str = ""
    comparable: bool = False
    operands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoopPosition:
    """A loop that a rank is in.

    Attributes:
        path: its file.
        line, end: its first and last line.
        taken: the iterations begun so far.
    """

    path: str = ""
    line: int = 0
    end: int = 0
    taken: int = 0


@dataclass(frozen=True, slots=True)
class RankPosition:
    """Where a rank of a hanging job waits for the others, or that it has exited.

    Attributes:
        rank: its number.
        frames: the user's frames that wait, the outermost first; empty if it has exited.
        loops: the loops that it is in, the innermost first.
        visited: lines where it exchanged data with other ranks before, as ``path:line``.
        phase: phase of the taxonomy in which it waits.
    """

    rank: int = 0
    phase: str = ""
    frames: tuple[FrameRecord, ...] = ()
    loops: tuple[LoopPosition, ...] = ()
    visited: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HangRecord:
    """All ranks wait for each other, or for one that has exited.

    Attributes:
        ranks: position of each rank that was run.
    """

    ranks: tuple[RankPosition, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocationRecord:
    """Lines of the allocation trace, in order; `memory.trace` parses them."""

    lines: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """The script requested DeepSpeed's engine with this configuration."""

    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """The script ended without an error, or was at a line when it reached the time limit."""

    status: int = 0
    why: str = ""
    path: str = ""
    line: int = 0


Record = (
    StartRecord
    | TrialRecord
    | SiteRecord
    | VisitRecord
    | PassRecord
    | SkipRecord
    | DifferenceRecord
    | SaveRecord
    | NaN
    | Network
    | SpawnRecord
    | UnfitRecord
    | ResumeRecord
    | AllocationRecord
    | EngineRecord
    | ErrorRecord
    | HangRecord
    | EndRecord
)
_KINDS: Mapping[str, type[Record]] = {
    "started": StartRecord,
    "site": SiteRecord,
    "reached": VisitRecord,
    "passed": PassRecord,
    "shortened": SkipRecord,
    "assumed": DifferenceRecord,
    "saved": SaveRecord,
    "nan": NaN,
    "network": Network,
    "spawned": SpawnRecord,
    "unfit": UnfitRecord,
    "resumed": ResumeRecord,
    "raised": ErrorRecord,
    "hung": HangRecord,
    "allocated": AllocationRecord,
    "configured": EngineRecord,
    "ended": EndRecord,
}


def read(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records among lines; other lines and unknown kinds are ignored."""
    for _, line in zip(range(MOST_RECORDS), lines, strict=False):
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError):
            continue
        kind = _KINDS.get(str(parsed.get("kind"))) if isinstance(parsed, dict) else None
        if kind is not None:
            yield kind(**_fitting(kind, parsed))


def _fitting(kind: type[Any], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The fields whose values have the expected type."""
    found: dict[str, Any] = {}
    for part in fields(kind):
        value = parsed.get(part.name)
        if part.name in _NESTED and isinstance(value, list):
            inner = _NESTED[part.name]
            items = [v for v in value[:MOST_NESTED] if isinstance(v, dict)]
            found[part.name] = tuple(inner(**_fitting(inner, item)) for item in items)
        elif part.name == "lines":
            found["lines"] = tuple(value) if isinstance(value, list) else ()
        elif part.name == "visited" and isinstance(value, list):
            found["visited"] = frozenset(
                f"{v[0]}:{v[1]}" for v in value if isinstance(v, list) and len(v) == 2
            )
        elif part.name in ("layer", "config"):
            found |= {part.name: value} if isinstance(value, dict) else {}
        elif part.name == "operands" and isinstance(value, dict):
            found["operands"] = {str(name): str(text) for name, text in value.items()}
        elif part.name == "argv" and isinstance(value, list):
            found["argv"] = tuple(str(word)[:LONGEST_TEXT] for word in value)
        elif type(value) is type(part.default):
            found[part.name] = value[:LONGEST_TEXT] if isinstance(value, str) else value
    return found


_NESTED: Mapping[str, type[Any]] = {
    "frames": FrameRecord,
    "loops": LoopPosition,
    "ranks": RankPosition,
}
MOST_NESTED = 100
