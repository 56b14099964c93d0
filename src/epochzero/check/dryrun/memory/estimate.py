"""How much memory a traced job takes on a GPU: as a range, with what holds it and what was assumed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from epochzero.check.dryrun.memory.history import UNCORRECTED, Correction
from epochzero.check.dryrun.memory.options import AllocatorOptions, cublas_workspace_bytes
from epochzero.check.dryrun.memory.replay import WORKSPACES, Peak, kind_of, replay, with_workspaces
from epochzero.check.dryrun.memory.surroundings import Range, Surrounding, surroundings, total
from epochzero.check.dryrun.memory.timeline import MemoryTimeline, timeline
from epochzero.check.dryrun.memory.trace import Alloc, AllocationSite, Mark, Trace
from epochzero.check.dryrun.memory.units import MIB
from epochzero.check.target.model import GPU

ALLOCATED_ERROR = 0.03
RESERVED_ERROR = 0.08
"""By how much an estimate may be off: more than in any run of ``bench/memory.py``."""
MOST_HOLDERS = 10

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)")

Fits = Literal["fits", "may not fit", "does not fit"]


@dataclass(frozen=True, slots=True)
class Holder:
    """What holds memory at the peak.

    Attributes:
        site: line and layer that allocated it; ``*`` stands for the numbers of like layers.
        kind: what for, one of `trace.KINDS`.
        size: bytes.
        count: of storages.
    """

    site: AllocationSite
    kind: str
    size: int
    count: int


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a job fits on a GPU.

    Attributes:
        gpu: which.
        answer: ``may not fit`` where the range of the estimate holds both.
        failing: of one that does not, the line that asks for what there is no room for.
        wanted: bytes that it asks for; 0 where it fits.
        surroundings: other uses of the GPU's memory than torch.
    """

    gpu: GPU
    answer: Fits
    failing: AllocationSite | None
    wanted: int
    surroundings: tuple[Surrounding, ...]


@dataclass(frozen=True)
class Memory:
    """The memory that a job takes on a GPU.

    Attributes:
        allocated, reserved: peak of ``torch.cuda.max_memory_allocated`` and ``..._reserved``; bytes.
        by_kind: at the peak of what is allocated, bytes by kind; their sum is what was requested, the
            rest up to `allocated` is what the allocator rounds up. Of a compiled job, as it is written.
        holders: lines and layers that hold most at the peak, the largest first.
        moment: of the peak, by the marks of the trace (``after backward of step 2``).
        fit: on the GPU.
        assumptions: what makes the range.
        timeline: what is allocated over the events.
    """

    allocated: Range
    reserved: Range
    by_kind: Mapping[str, int]
    holders: tuple[Holder, ...]
    moment: str
    fit: Fit
    assumptions: tuple[str, ...]
    timeline: MemoryTimeline


def estimate(
    trace: Trace,
    gpu: GPU,
    environment: Mapping[str, str] | None = None,
    processes: int = 1,
    corrected: Correction = UNCORRECTED,
) -> Memory:
    """The memory of a traced job on a GPU.

    Args:
        trace: of the dry run of one of its processes.
        gpu: that the process has.
        environment: variables that are set for the job: those of the allocator and of cuBLAS count.
        processes: of the whole job.
        corrected: by past runs of the job.
    """
    environment = environment or {}
    options = AllocatorOptions.read(environment)
    workspace = cublas_workspace_bytes(gpu.capability, environment)
    peak = replay(trace, options, workspace)
    least = replay(trace.least, options, workspace) if trace.least else peak
    return Memory(
        allocated=_around(least.allocated, peak.allocated, ALLOCATED_ERROR, trace, corrected),
        reserved=_around(least.reserved, peak.reserved, RESERVED_ERROR, trace, corrected),
        by_kind=_by_kind(peak, trace),
        holders=_holders(peak, trace),
        moment=_moment(trace, workspace, peak.event),
        fit=fit(trace, gpu, environment, processes, corrected),
        assumptions=tuple(_assumptions(trace, options, workspace, processes, corrected)),
        timeline=timeline(trace, workspace),
    )


def fit(
    trace: Trace,
    gpu: GPU,
    environment: Mapping[str, str] | None = None,
    processes: int = 1,
    corrected: Correction = UNCORRECTED,
) -> Fit:
    """Whether a traced job fits on a GPU: it is replayed with the room that is left there.

    When the GPU is full the allocator gives back what it keeps, as torch does, so that a job may fit
    where its peak of reserved memory would not.
    """
    environment = environment or {}
    options = AllocatorOptions.read(environment)
    workspace = cublas_workspace_bytes(gpu.capability, environment)
    parts = surroundings(gpu, processes)
    room = room_of(gpu, processes, corrected)
    answer: Fits = "fits"
    failed = replay(trace, options, workspace, room.low)
    if failed.out_of_memory is not None:
        least = trace.least or trace
        beyond = replay(least, options, workspace, room.high)
        answer = "may not fit" if beyond.out_of_memory is None else "does not fit"
        if beyond.out_of_memory is not None:
            trace, failed = least, beyond
    wanted = failed.out_of_memory or 0
    return Fit(gpu, answer, _failing(trace, workspace, failed) if wanted else None, wanted, parts)


def room_of(gpu: GPU, processes: int = 1, corrected: Correction = UNCORRECTED) -> Range:
    """Bytes that a replay may reserve on a GPU, so that the job surely, likely, or just may fit."""
    beside = total(surroundings(gpu, processes))
    most, least = corrected.high * (1 + ALLOCATED_ERROR), corrected.low * (1 - ALLOCATED_ERROR)
    return Range(
        max(int((gpu.memory_bytes - beside.high) / most), 0),
        max(int((gpu.memory_bytes - beside.likely) / corrected.likely), 0),
        max(int((gpu.memory_bytes - beside.low) / least), 0),
    )


def _around(least: int, most: int, error: float, trace: Trace, corrected: Correction) -> Range:
    # Where a compiler's choices lie between the ends is unknown: the middle can be wrong by the least.
    likely = (least + most) // 2 if trace.compiled else most
    return Range(
        int(least * corrected.low * (1 - error)),
        int(likely * corrected.likely),
        int(most * corrected.high * (1 + error)),
    )


def _by_kind(peak: Peak, trace: Trace) -> Mapping[str, int]:
    sizes: dict[str, int] = defaultdict(int)
    for storage, event in peak.alive.items():
        sizes[kind_of(trace, storage)] += event.size
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _holders(peak: Peak, trace: Trace) -> tuple[Holder, ...]:
    """Like layers of a stack are one holder: ``h.*.mlp``."""
    held: dict[tuple[AllocationSite, str], list[int]] = defaultdict(list)
    for storage, event in peak.alive.items():
        if event.site < 0:
            continue  # no line's
        site = trace.site(event)
        alike = replace(site, layer=_NUMBER.sub("*", site.layer))
        held[alike, kind_of(trace, storage)].append(event.size)
    holders = [Holder(site, kind, sum(sizes), len(sizes)) for (site, kind), sizes in held.items()]
    return tuple(sorted(holders, key=lambda holder: -holder.size)[:MOST_HOLDERS])


def _moment(trace: Trace, workspace: int, at: int) -> str:
    """The last mark before an event, for people."""
    done, last = 0, "start"
    for number, event in enumerate(with_workspaces(trace, workspace)):
        if number >= at:
            break
        if isinstance(event, Mark) and event.name not in WORKSPACES:
            last = event.name
            done += event.name.startswith("step ")
    inside = {"backward": "in backward", "backward done": "after backward"}
    inside["optimizer"] = "in the optimizer's step"
    where = inside.get(last, "in forward" if last.startswith(("step ", "start")) else last)
    return f"{where}, step {done + 1}"


def _failing(trace: Trace, workspace: int, peak: Peak) -> AllocationSite:
    for number, event in enumerate(with_workspaces(trace, workspace)):
        if number == peak.event and isinstance(event, Alloc):
            return trace.site(event)
    return AllocationSite("", 0, "")


def _assumptions(
    trace: Trace,
    options: AllocatorOptions,
    workspace: int,
    processes: int,
    corrected: Correction,
) -> Sequence[str]:
    names = [event.name for event in trace.events if isinstance(event, Mark)]
    handles = sum(name in WORKSPACES for name in names)
    stated = [
        f"allocated to {ALLOCATED_ERROR:.0%} and reserved to {RESERVED_ERROR:.0%}: more than the"
        " errors of the benchmark, because temporary memory inside kernels (cuDNN) is not measured",
        "the batches of the dry run are the largest of the job",
        *trace.assumed,
    ]
    if handles:
        stated.append(f"{handles} cuBLAS workspaces of {workspace / MIB:g} MiB")
    if not any(name.startswith("step ") for name in names):
        stated.append("no optimizer step ran, so optimizer states are missing")
    elif "step 2" not in names:
        stated.append("only one step ran; in the second, optimizer states and activations coexist")
    if options.expandable_segments:
        stated.append("expandable segments, as set in the environment")
    for name in options.not_modelled:
        stated.append(f"the allocator option {name} is ignored")
    if processes > 1:
        stated.append(f"each of {processes} processes uses as much as the first")
    if corrected.runs:
        stated.append(
            f"times {corrected.likely:.2f} ({corrected.low:.2f} to {corrected.high:.2f}), based on past runs"
            f" of the job: {corrected.runs}"
        )
    return stated
