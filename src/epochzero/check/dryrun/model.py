"""What a dry run answers: how far the job came, what failed, and what was assumed on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from epochzero.check.findings import Finding, SourceLocation, Unknown

if TYPE_CHECKING:
    from epochzero.check.dryrun.memory.estimate import Memory
    from epochzero.check.dryrun.memory.fit import Largest
    from epochzero.check.target.model import GPU


Mode: TypeAlias = Literal["real", "fake"]
"""With true values, on the CPU; or with shapes, as the platform's GPUs would see them."""
Ending: TypeAlias = Literal["finished", "failed", "stopped", "time", "killed"]

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
    place: SourceLocation
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
    place: SourceLocation
    count: int = 1


class ProvidedFiles(NamedTuple):
    """What is put where a dry run looks for it: data that are made, files of the jobs before.

    Attributes:
        source: file or folder where it lies, absolute; empty for an empty folder.
        path: where the job looks for it, absolute.
    """

    source: str
    path: str


@dataclass(frozen=True, slots=True)
class Written:
    """Files that the job would have written in one place.

    Attributes:
        place: a folder, or a file that lies in the job's own; relative to that.
        files: how many.
        size: of all, in bytes.
    """

    place: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Effects:
    """What the job would have left behind; nothing of it has lasted.

    Attributes:
        containment: what held the job back.
        leaks: what that cannot hold back, a sentence; empty where nothing is known.
        written: where it would have written most, the largest first.
        deleted: files and folders that it would have deleted, some of them.
        addresses: beyond this machine that it tried to reach.
        programs: that it started.
    """

    containment: str
    leaks: str = ""
    written: tuple[Written, ...] = ()
    deleted: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DryRun:
    """A job run dry.

    Attributes:
        job: the command, for people.
        modes: in which it was run.
        gpus: the models that were pretended; none where it asked for none.
        ended: ``finished``, ``failed``, ``stopped`` (for want of what only the platform has), ``time``
            (its limit was reached) or ``killed``.
        parts: of the job, reached or not, in the order of `PARTS`.
        findings: what would fail.
        unknowns: what could not be tried.
        assumptions: loops that were shortened among them.
        effects: what it would have left behind.
        seconds: that it took.
        memory: of the platform's GPU that it would take; None in mode ``real``.
        smallest_gpu: of the presets that are enough for that; None where none is, too.
        largest: value of an option with which it fits, where that is asked for.
    """

    job: str
    modes: tuple[Mode, ...]
    gpus: tuple[str, ...]
    ended: Ending
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...]
    unknowns: tuple[Unknown, ...]
    assumptions: tuple[Assumption, ...]
    effects: Effects
    seconds: float
    memory: Memory | None = None
    smallest_gpu: GPU | None = None
    largest: Largest | None = None
