"""Results of a dry run: how far the job ran, what failed, and what was assumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from epochzero.check.findings import Finding, SourceLocation, Unknown

if TYPE_CHECKING:
    from epochzero.check.dryrun.memory.estimate import Memory
    from epochzero.check.dryrun.memory.fit import Largest
    from epochzero.check.dryrun.memory.layout import LayoutMemory
    from epochzero.check.target.model import GPU


Mode: TypeAlias = Literal["real", "fake"]
"""With real values, on the CPU; or with shapes, as the GPUs of the platform would see them."""
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
"""The parts of a job, in their usual order."""


@dataclass(frozen=True, slots=True)
class JobPart:
    """A part of the job, such as ``save``: one of `PARTS`.

    Attributes:
        name: its name.
        phase: phase of the taxonomy in which it ran; ``unknown`` if it did not.
        place: user's line that ran it, or would run it.
        reached: whether it ran.
        condition: condition around it, if it did not run.
    """

    name: str
    phase: str
    place: SourceLocation
    reached: bool
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A difference from the platform.

    Attributes:
        what: text for users.
        place: user's line.
        count: how often it occurred.
    """

    what: str
    place: SourceLocation
    count: int = 1


class ProvidedFiles(NamedTuple):
    """A path that is placed for a dry run: generated data, files of earlier jobs.

    Attributes:
        source: absolute path of the file or directory; empty for an empty directory.
        path: absolute path where the job finds it.
    """

    source: str
    path: str


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files that the job would have written in one location.

    Attributes:
        place: a directory, or a file in the job directory; relative to that.
        files: number of files.
        size: total size in bytes.
    """

    place: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Effects:
    """Side effects of the job; none of them persists.

    Attributes:
        containment: how the job was isolated.
        leaks: what the isolation cannot prevent, as a sentence; empty if nothing is known.
        written: locations where it would have written most, the largest first.
        deleted: some of the files and directories that it would have deleted.
        deletions: how many it would have deleted.
        addresses: other machines that it tried to contact.
        programs: programs that it started.
    """

    containment: str
    leaks: str = ""
    written: tuple[WrittenFiles, ...] = ()
    deleted: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    deletions: int = 0


@dataclass(frozen=True, slots=True)
class DryRun:
    """A dry run of a job.

    Attributes:
        job: the command, as text for users.
        modes: modes in which it ran.
        gpus: simulated models; empty if it uses none.
        ended: ``finished``, ``failed``, ``stopped`` (it needs something that only the platform has),
            ``time`` (its limit was reached) or ``killed``.
        parts: parts of the job, reached or not, in the order of `PARTS`.
        findings: what would fail.
        unknowns: what could not be tried.
        assumptions: differences from the platform, including shortened loops.
        effects: side effects that it would have had.
        seconds: duration.
        passed: lines that ran although a rule claims that they fail; these claims are dropped.
        memory: memory that it would use on the platform's GPU; None in mode ``real``.
        smallest_gpu: smallest sufficient preset; None if none is sufficient or known.
        largest: largest value of an option with which it fits, if requested.
        layout: memory of one rank if the job is divided over GPUs, if requested.
    """

    job: str
    modes: tuple[Mode, ...]
    gpus: tuple[str, ...]
    ended: Ending
    parts: tuple[JobPart, ...]
    findings: tuple[Finding, ...]
    unknowns: tuple[Unknown, ...]
    assumptions: tuple[Assumption, ...]
    effects: Effects
    seconds: float
    passed: tuple[SourceLocation, ...] = ()
    memory: Memory | None = None
    smallest_gpu: GPU | None = None
    largest: Largest | None = None
    layout: LayoutMemory | None = None
