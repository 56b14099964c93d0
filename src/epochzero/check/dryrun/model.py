"""What a dry run answers: how far the job came, what failed, and what was assumed on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epochzero.check.dryrun.memory.estimate import Memory
from epochzero.check.findings import Finding, Place, Unknown

__all__ = ["PARTS", "Assumption", "DryRun", "Part"]

PARTS = (
    "arguments",
    "data",
    "forward",
    "backward",
    "optimizer step",
    "schedule",
    "validation",
    "save",
    "load",
    "export",
)
"""The parts of a job, as they usually come."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the job, such as ``save``: one of `PARTS`.

    Attributes:
        name: of it.
        phase: in which it was run, by the taxonomy; ``unknown`` where it was not.
        place: the user's line that came to it, or that would.
        reached: whether it was run.
        condition: what it stands under, where it was not run.
    """

    name: str
    phase: str
    place: Place
    reached: bool
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What was otherwise than it will be on the platform.

    Attributes:
        what: it is, for people.
        place: the user's line.
        count: how often.
    """

    what: str
    place: Place
    count: int = 1


@dataclass(frozen=True, slots=True)
class DryRun:
    """A job run dry.

    Attributes:
        job: the command, for people.
        mode: ``real``: with real tensors, on the CPU; ``fake``: with their shapes only, as on the
            platform's GPU.
        ended: ``finished``, ``failed``, ``time`` (its limit was reached) or ``killed``.
        parts: of the job, reached or not, in the order of `PARTS`.
        findings: what would fail.
        unknowns: what could not be tried.
        assumptions: loops that were shortened among them.
        seconds: that it took.
        memory: of the platform's GPU that it would take; None in mode ``real``.
    """

    job: str
    mode: Literal["real", "fake"]
    ended: Literal["finished", "failed", "time", "killed"]
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...]
    unknowns: tuple[Unknown, ...]
    assumptions: tuple[Assumption, ...]
    seconds: float
    memory: Memory | None = None
