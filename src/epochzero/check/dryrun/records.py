"""What the child wrote, as typed records. It is the job's own process: nothing of it is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

MOST_RECORDS = 10_000
LONGEST_TEXT = 8000


@dataclass(frozen=True, slots=True)
class Started:
    """The child is about to run the script."""

    python: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Tries:
    """The job is about to run with another value of an option; told by the parent."""

    option: str
    value: int


@dataclass(frozen=True, slots=True)
class Site:
    """A part of a job stands at these lines of the user's source."""

    path: str = ""
    part: str = ""
    line: int = 0
    end: int = 0
    function: str = ""
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Reached:
    """A part was run by a line of the user's."""

    how: str = ""
    phase: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Shortened:
    """A loop left iterations out; ``total`` is how many it has, 0 where that is not known."""

    path: str = ""
    line: int = 0
    total: int = 0
    work: bool = False


@dataclass(frozen=True, slots=True)
class Assumed:
    """Something is otherwise than on the platform."""

    what: str = ""
    path: str = ""
    line: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Saved:
    """A file was written whose tensors have no values; ``bytes`` is what they would take in it."""

    path: str = ""
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class NaN:
    """A loss is NaN when backward is called."""

    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """Something beyond this machine was reached for: ``host:port`` or a name."""

    address: str = ""


@dataclass(frozen=True, slots=True)
class Spawned:
    """Another program was started."""

    program: str = ""


@dataclass(frozen=True, slots=True)
class Unfit:
    """The GPU could not be pretended."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The script came to its end, and begins once more with what it saved."""

    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of the error that ended the script."""

    path: str = ""
    line: int = 0
    function: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """The error that ended the script.

    Attributes:
        certain: whether no loop that was shortened before can be its cause.
        taken: how many iterations of loops were run before.
        frames: outermost first.
        layer: the module that was being called, where that is known.
    """

    type: str = ""
    message: str = ""
    phase: str = ""
    certain: bool = False
    taken: int = 0
    frames: tuple[Frame, ...] = ()
    layer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Allocated:
    """Lines of the trace of allocations, which come in order; `memory.trace` reads them."""

    lines: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Configured:
    """DeepSpeed's engine was asked for, with this configuration."""

    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """The script ended without an error, or was at a line when its time was over."""

    status: int = 0
    why: str = ""
    path: str = ""
    line: int = 0


Record = (
    Started
    | Tries
    | Site
    | Reached
    | Shortened
    | Assumed
    | Saved
    | NaN
    | Network
    | Spawned
    | Unfit
    | Resumed
    | Allocated
    | Configured
    | Raised
    | Ended
)
_KINDS: Mapping[str, type[Record]] = {
    "started": Started,
    "site": Site,
    "reached": Reached,
    "shortened": Shortened,
    "assumed": Assumed,
    "saved": Saved,
    "nan": NaN,
    "network": Network,
    "spawned": Spawned,
    "unfit": Unfit,
    "resumed": Resumed,
    "raised": Raised,
    "allocated": Allocated,
    "configured": Configured,
    "ended": Ended,
}


def read(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records among lines; what is none, or of a kind that is not known, is left out."""
    for _, line in zip(range(MOST_RECORDS), lines, strict=False):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        kind = _KINDS.get(str(said.get("kind"))) if isinstance(said, dict) else None
        if kind is not None:
            yield kind(**_fitting(kind, said))


def _fitting(kind: type[Record] | type[Frame], said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are of the type that they should have."""
    found: dict[str, Any] = {}
    for part in fields(kind):
        value = said.get(part.name)
        if part.name == "frames" and isinstance(value, list):
            frames = [frame for frame in value if isinstance(frame, dict)]
            found["frames"] = tuple(Frame(**_fitting(Frame, frame)) for frame in frames)
        elif part.name == "lines":
            found["lines"] = tuple(value) if isinstance(value, list) else ()
        elif part.name == "layer":
            found["layer"] = value if isinstance(value, dict) else None
        elif part.name == "config":
            found["config"] = value if isinstance(value, dict) else {}
        elif part.name == "argv" and isinstance(value, list):
            found["argv"] = tuple(str(word)[:LONGEST_TEXT] for word in value)
        elif type(value) is type(part.default):
            found[part.name] = value[:LONGEST_TEXT] if isinstance(value, str) else value
    return found
