"""What to change first so that a job takes less memory, and what it saves.

Each change is made to the trace, which is then replayed in the allocator: what is saved is the
difference of the peaks, not a formula's. Where the change to the trace is itself approximate, or leads
to other results of the training, the advice says so.
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
"""Of the peak: what saves less is not told."""
STATE_BLOCK = 256
"""Values of an optimizer's state that share a 32-bit scale (Dettmers et al., 2022; bitsandbytes)."""
SMALLEST_STATE = 4096
"""Values: smaller states stay in 32 bits there."""
SHARDS = 8
"""GPUs that sharding is reckoned for."""


@dataclass(frozen=True, slots=True)
class MemoryOption:
    """Something that a user can change.

    Attributes:
        name: in a word.
        fix: what to write.
        effect: on the training, for people.
        exact: whether the changed trace is what a run with the change would leave.
        apply: the changed trace.
        options: the changed options of the allocator.
    """

    name: str
    fix: str
    effect: str
    exact: bool
    apply: Callable[[Trace], Trace] = lambda trace: trace
    options: Callable[[AllocatorOptions], AllocatorOptions] = lambda options: options


@dataclass(frozen=True, slots=True)
class Advice:
    """A change, with what it saves.

    Attributes:
        change: it.
        allocated, reserved: bytes that the peaks become lower by.
    """

    change: MemoryOption
    allocated: int
    reserved: int


def advise(
    trace: Trace, gpu: GPU, environment: Mapping[str, str] | None = None
) -> tuple[Advice, ...]:
    """The changes that save memory, those that save most first.

    Args:
        trace: of the job as it is.
        gpu: that it runs on.
        environment: variables that are set for the job.
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
    """Gradients are made once, and kept while the next half is computed."""
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
    """Sizes of parameters and of their copies in half precision: they do not grow with the batch."""
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
    """The loop form of an optimizer makes its temporary tensors for one parameter at a time."""
    return resized(trace, lambda alloc, kind: 0 if kind == "transient" else alloc.size)


def _sharded(trace: Trace) -> Trace:
    """A GPU keeps its share; what is gathered for a layer in use is left out."""

    def size(alloc: Alloc, kind: str) -> int:
        shared = kind in ("parameter", "gradient", "optimizer", "transient")
        return -(-alloc.size // SHARDS) if shared else alloc.size

    return resized(trace, size)


def _checkpointed(trace: Trace) -> Trace:
    """Of a stack of like layers, only the last one's activations and the inputs of all are kept.

    A layer of the stack is known by the number in its path (``h.3.mlp``). What a block returns is
    taken to be of the median size of what it keeps.
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
        "none; less of what is reserved lies idle",
        exact=True,
        options=lambda options: replace(options, expandable_segments=True),
    ),
    MemoryOption(
        "optimizer without lists",
        "give the optimizer fused=True, or foreach=False",
        "none with fused=True; foreach=False is slower",
        exact=True,
        apply=_one_by_one,
    ),
    MemoryOption(
        "half the batch, accumulated twice",
        "halve the batch and call optimizer.step() after every second backward",
        "the same gradients where no layer looks across the batch",
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
        "bitsandbytes.optim.AdamW8bit in the place of torch.optim.AdamW",
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
"""What can be changed, the least intrusive first."""
