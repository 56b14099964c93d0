"""Changes that reduce the memory of a job, and how much they save.

Each change is applied to the trace, which is then replayed in the allocator: the saving is the
difference of the peaks, not the result of a formula. If the change to the trace is approximate, or
changes the results of the training, the advice states it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from epochzero.check.dryrun.memory.options import AllocatorOptions, cublas_workspace_bytes
from epochzero.check.dryrun.memory.replay import replay
from epochzero.check.dryrun.memory.resize import first_gradients, resized
from epochzero.check.dryrun.memory.trace import Alloc, Free, Trace
from epochzero.check.target.model import GPU

LEAST_SAVED = 0.01
"""Fraction of the peak: smaller savings are not reported."""
STATE_BLOCK = 256
"""Values of an optimizer's state that share a 32-bit scale (Dettmers et al., 2022; bitsandbytes)."""
SMALLEST_STATE = 4096
"""Number of values: smaller states stay in 32 bits."""
SHARDS = 8
"""Number of GPUs that sharding assumes."""


@dataclass(frozen=True, slots=True)
class MemoryOption:
    """A change that a user can make.

    Attributes:
        name: short name.
        fix: code to write.
        effect: effect on the training, as text for users.
        exact: whether the changed trace equals the trace of a run with the change.
        apply: returns the changed trace.
        options: changed options of the allocator.
    """

    name: str
    fix: str
    effect: str
    exact: bool
    apply: Callable[[Trace], Trace] = lambda trace: trace
    options: Callable[[AllocatorOptions], AllocatorOptions] = lambda options: options


@dataclass(frozen=True, slots=True)
class Advice:
    """A change, with its savings.

    Attributes:
        change: the change.
        allocated, reserved: reduction of the peaks in bytes.
    """

    change: MemoryOption
    allocated: int
    reserved: int


def advise(
    trace: Trace, gpu: GPU, environment: Mapping[str, str] | None = None
) -> tuple[Advice, ...]:
    """The changes that save memory, the largest savings first.

    Args:
        trace: trace of the unchanged job.
        gpu: GPU that it runs on.
        environment: environment variables of the job.
    """
    options = AllocatorOptions.read(environment or {})
    workspace = cublas_workspace_bytes(gpu.capability, environment or {})
    before = replay(trace, options, workspace)
    found = []
    for change in CHANGES:
        after = replay(change.apply(trace), change.options(options), workspace)
        advice = Advice(
            change, before.allocated - after.allocated, before.reserved - after.reserved
        )
        if max(advice.allocated, advice.reserved) >= LEAST_SAVED * before.reserved:
            found.append(advice)
    return tuple(sorted(found, key=lambda advice: -max(advice.allocated, advice.reserved)))


# -- What the changes do to a trace ------------------------------------------------------------


_OF_BATCH = frozenset({"activation", "input", "temporary"})


def _half_batch(trace: Trace) -> Trace:
    """Gradients are allocated once, and stay allocated while the second half is computed."""
    fixed = _sizes_of_parameters(trace)
    kept = first_gradients(trace)

    def size(alloc: Alloc, kind: str) -> int:
        if kind == "gradient":
            return alloc.size if alloc.storage in kept else 0
        return alloc.size // 2 if kind in _OF_BATCH and alloc.size not in fixed else alloc.size

    halved = resized(trace, size)
    events = (e for e in halved.events if not (isinstance(e, Free) and e.storage in kept))
    return replace(halved, events=tuple(events))


def _sizes_of_parameters(trace: Trace) -> frozenset[int]:
    """Sizes of parameters and of their half-precision copies: they do not grow with the batch."""
    sizes = {
        event.size
        for event in trace.events
        if isinstance(event, Alloc) and trace.kind(event.storage) in ("parameter", "gradient")
    }
    return frozenset(sizes | {size // 2 for size in sizes})


def _eight_bit_states(trace: Trace) -> Trace:
    def size(alloc: Alloc, kind: str) -> int:
        values = alloc.size // 4
        if kind != "optimizer" or values < SMALLEST_STATE:
            return alloc.size
        return values + 4 * -(-values // STATE_BLOCK)

    return resized(trace, size)


def _one_by_one(trace: Trace) -> Trace:
    """The loop implementation of an optimizer allocates its temporary tensors for one parameter at a time."""
    return resized(trace, lambda alloc, kind: 0 if kind == "transient" else alloc.size)


def _sharded(trace: Trace) -> Trace:
    """Each GPU stores its shard; the gathered parameters of the active layer are omitted."""

    def size(alloc: Alloc, kind: str) -> int:
        shared = kind in ("parameter", "gradient", "optimizer", "transient")
        return -(-alloc.size // SHARDS) if shared else alloc.size

    return resized(trace, size)


def _checkpointed(trace: Trace) -> Trace:
    """In a stack of equal layers, only the last layer's activations and the inputs of all are stored.

    A layer of the stack is recognized by the number in its path (``h.3.mlp``). The output of a block is
    assumed to have the median size of its stored tensors.
    """
    blocks: dict[str, list[Alloc]] = {}
    for event in trace.events:
        if isinstance(event, Alloc) and trace.kind(event.storage) == "activation":
            found = _BLOCK.match(trace.site(event).layer)
            if found:
                blocks.setdefault(found[0], []).append(event)
    last: dict[str, str] = {}
    for name in blocks:
        last[_BLOCK_NUMBER.sub("", name)] = name
    kept = {
        alloc.storage
        for name, allocs in blocks.items()
        for alloc in (allocs if name in last.values() else _median(allocs))
    }
    dropped = {alloc.storage for allocs in blocks.values() for alloc in allocs} - kept
    return resized(trace, lambda alloc, _: 0 if alloc.storage in dropped else alloc.size)


_BLOCK = re.compile(r"(?:[^.\d][^.]*\.)*\d+(?=\.|$)")
_BLOCK_NUMBER = re.compile(r"\d+$")


def _median(allocs: list[Alloc]) -> list[Alloc]:
    ordered = sorted(allocs, key=lambda alloc: alloc.size)
    return [ordered[len(ordered) // 2]]


CHANGES = (
    MemoryOption(
        "expandable segments",
        "set PYTORCH_ALLOC_CONF=expandable_segments:True",
        "none; less reserved memory is unused",
        exact=True,
        options=lambda options: replace(options, expandable_segments=True),
    ),
    MemoryOption(
        "optimizer without lists",
        "pass fused=True, or foreach=False, to the optimizer",
        "none with fused=True; foreach=False is slower",
        exact=True,
        apply=_one_by_one,
    ),
    MemoryOption(
        "half the batch, accumulated twice",
        "halve the batch and call optimizer.step() after every second backward",
        "the same gradients if no layer computes across the batch",
        exact=False,
        apply=_half_batch,
    ),
    MemoryOption(
        "gradient checkpointing",
        "torch.utils.checkpoint.checkpoint around each block, or"
        " model.gradient_checkpointing_enable()",
        "none; about a third more time",
        exact=False,
        apply=_checkpointed,
    ),
    MemoryOption(
        "8-bit optimizer states",
        "bitsandbytes.optim.AdamW8bit instead of torch.optim.AdamW",
        "states are quantized in blocks",
        exact=True,
        apply=_eight_bit_states,
    ),
    MemoryOption(
        f"sharding over {SHARDS} GPUs",
        "torch.distributed.fsdp.fully_shard on each block and on the model",
        "none; needs the GPUs and a fast link between them",
        exact=False,
        apply=_sharded,
    ),
)
"""The possible changes, the least intrusive first."""
