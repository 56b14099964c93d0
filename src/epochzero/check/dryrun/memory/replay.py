"""A trace, replayed in the allocator of a GPU: the peaks, and what was alive at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochzero.check.dryrun.memory.allocator import CachingAllocator, OutOfMemoryError
from epochzero.check.dryrun.memory.options import AllocatorOptions
from epochzero.check.dryrun.memory.trace import Alloc, Event, Free, Mark, Trace

WORKSPACES = {"cublas": -1, "cublas backward": -2}
"""The moments at which a thread's cuBLAS handle takes its workspace -> the storage that it is."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that a replay took.

    Attributes:
        allocated, reserved: the most bytes that were; not of the same moment.
        event: number of the event at which `allocated` was reached.
        alive: storages that were allocated then -> bytes of their blocks' requests.
        retries: how often cached segments were given back for lack of room.
        out_of_memory: bytes that could not be allocated; None where all could.
    """

    allocated: int
    reserved: int
    event: int
    alive: dict[int, Alloc]
    retries: int
    out_of_memory: int | None


def replay(
    trace: Trace,
    options: AllocatorOptions,
    workspace: int,
    capacity: int | None = None,
) -> Peak:
    """Replay a trace.

    Args:
        trace: of a job.
        options: of the allocator.
        workspace: bytes of a cuBLAS workspace.
        capacity: bytes that the allocator may reserve; None: no limit.
    """
    allocator = CachingAllocator(options, capacity)
    allocated = reserved = at = 0
    failed = None
    for number, event in enumerate(with_workspaces(trace, workspace)):
        if isinstance(event, Alloc):
            try:
                allocator.malloc(event.storage, event.size)
            except OutOfMemoryError as error:
                failed, at = error.size, number
                break
            if allocator.allocated > allocated:
                allocated, at = allocator.allocated, number
            reserved = max(reserved, allocator.reserved)
        elif isinstance(event, Free):
            allocator.free(event.storage)
        elif event.name == "empty cache":
            allocator.empty_cache()
    alive = _alive(trace, workspace, at)
    return Peak(allocated, reserved, at, alive, allocator.retries, failed)


def with_workspaces(trace: Trace, workspace: int) -> Iterator[Event]:
    """The events, with the workspaces of cuBLAS at the first product of each thread."""
    for event in trace.events:
        yield event
        if isinstance(event, Mark) and event.name in WORKSPACES:
            yield Alloc(WORKSPACES[event.name], workspace, -1)


def kind_of(trace: Trace, storage: int) -> str:
    """What a storage is for: one of `trace.KINDS`, or ``workspace``."""
    return "workspace" if storage in WORKSPACES.values() else trace.kind(storage)


def _alive(trace: Trace, workspace: int, at: int) -> dict[int, Alloc]:
    alive: dict[int, Alloc] = {}
    for number, event in enumerate(with_workspaces(trace, workspace)):
        if isinstance(event, Alloc):
            alive[event.storage] = event
        elif isinstance(event, Free):
            alive.pop(event.storage, None)
        if number == at:
            break
    return alive
