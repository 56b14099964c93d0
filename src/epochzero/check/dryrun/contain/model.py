"""What a contained run may use, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Ended", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the job may use.

    Attributes:
        seconds: time by the clock.
        output_bytes: what is kept of its output.
    """

    seconds: float = 60.0
    output_bytes: int = 1 << 18


@dataclass(frozen=True, slots=True)
class Ended:
    """How a contained run ended.

    Attributes:
        why: one sentence for a person.
        code: exit status; None where a signal or a limit ended it.
        signal: name of the signal that ended it; empty for none.
        limit: the limit that was broken, ``time``; empty for none.
        seconds: time by the clock.
        output: standard output and error together.
        records: lines that the job wrote to the pipe for records.
    """

    why: str
    code: int | None
    signal: str
    limit: str
    seconds: float
    output: str
    records: tuple[bytes, ...]
