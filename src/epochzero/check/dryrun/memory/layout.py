"""GPU memory of one rank if the model and the batch of a job are divided over GPUs.

The dry run measures the undivided job. Each storage of its trace is reduced as the layout divides it, and the
trace of the fullest pipeline stage is replayed in the allocator. Sources of the arithmetic:

- ``data``: DDP adds a copy of the gradients, its buckets (PyTorch, *DistributedDataParallel*,
  ``gradient_as_bucket_view``).
- ``zero1``, ``zero2``, ``fsdp`` (the same as ``zero3``): optimizer states, gradients, then parameters are divided
  (Rajbhandari et al., 2020, "ZeRO", section 5 and figure 1). FSDP gathers the parameters of a block and
  prefetches the next one; those outside of blocks stay gathered (PyTorch, ``fully_shard``).
- ``tensor``: parameters and activations inside attention and MLP are divided, the inputs of blocks and their
  norms only with ``sequence`` (Korthikanti et al., 2022, "Reducing Activation Recomputation in Large Transformer
  Models", equations 2 and 4).
- ``pipeline``: stage k of p has its share of the blocks, and in the 1F1B schedule activations of p - k
  micro-batches (the same paper, section 4.2.3). The batch of the dry run is one micro-batch.
- ``context``: activations are divided along the sequence, parameters are not (Megatron Core, *Context Parallelism*).
- ``expert``: each rank has its own batch and 1/N of the experts of each layer. With balanced routing, its experts get as
  many tokens from all ranks as all experts get from its own (Lepikhin et al., 2020, "GShard", section 2.2).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from epochzero.check.dryrun.memory.estimate import Memory, estimate
from epochzero.check.dryrun.memory.history import UNCORRECTED, Correction
from epochzero.check.dryrun.memory.trace import Alloc, Event, Free, Mark, Trace
from epochzero.check.target.model import GPU
from epochzero.errors import InputError, suggestion

_STAGES = {"zero1": 1, "zero2": 2, "zero3": 3, "fsdp": 3}
_DIVIDED = ("data", "tensor", "pipeline", "context", "expert")
_BLOCK = re.compile(r"((?:[^.\d][^.]*\.)*)(\d+)(?:\.(.*))?")
_OF_MODEL = ("parameter", "gradient", "optimizer")
_EXPERT = re.compile(r"(?:^|\.)experts\.")
_MOST_RANKS = 1 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """How many GPUs divide what; their product is the number of GPUs.

    Attributes:
        data: replicas of the model.
        shards: ranks among which ZeRO or FSDP divides model states.
        stage: of ZeRO: 1 divides optimizer states, 2 also gradients, 3 also parameters.
        tensor: ranks that divide each layer.
        pipeline: stages.
        context: ranks that divide the sequence.
        expert: ranks that divide the experts of each layer.
        sequence: whether ranks of `tensor` also divide what lies between attention and MLP.
    """

    data: int = 1
    shards: int = 1
    stage: int = 0
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    sequence: bool = False

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        sizes = (self.data, self.shards, self.tensor, self.pipeline, self.context, self.expert)
        return math.prod(sizes)

    @classmethod
    def read(cls, text: str) -> Layout:
        """A layout from its text.

        >>> Layout.read("fsdp=8,tensor=2").gpus
        16

        Raises:
            InputError: a part is unknown, repeated or contradicts another one.
        """
        sizes: dict[str, int] = {}
        is_sequence = False
        for part in text.split(","):
            name, is_number, number = part.strip().partition("=")
            key = "shards" if name in _STAGES else name
            if key in sizes:
                raise InputError(f"layout {text!r}: {name} contradicts an earlier part")
            if name == "sequence" and not is_number:
                is_sequence = True
            elif name in _STAGES or name in _DIVIDED:
                sizes[key] = _ranks(text, name, number)
                sizes |= {"stage": _STAGES[name]} if name in _STAGES else {}
            else:
                every = (
                    "parts are data=N, zero1=N, zero2=N, fsdp=N, tensor=N, pipeline=N, context=N, expert=N "
                    "and sequence"
                )
                hint = suggestion(name, (*_STAGES, *_DIVIDED, "sequence"), every)
                raise InputError(f"layout {text!r}: {part.strip()!r} is unknown; {hint}")
        if is_sequence and sizes.get("tensor", 1) == 1:
            raise InputError(f"layout {text!r}: sequence requires tensor=N")
        return cls(**sizes, sequence=is_sequence)

    def __str__(self) -> str:
        names = {"shards": {1: "zero1", 2: "zero2"}.get(self.stage, "fsdp")}
        sizes = ((names.get(f.name, f.name), getattr(self, f.name)) for f in fields(self))
        parts = [
            f"{name}={size}"
            for name, size in sizes
            if name not in ("stage", "sequence") and size > 1
        ]
        return ",".join([*parts, *(["sequence"] if self.sequence else [])]) or "one GPU"


def _ranks(text: str, name: str, number: str) -> int:
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= _MOST_RANKS):
        raise InputError(f"layout {text!r}: {name} requires a number of GPUs: {name}=8")
    return int(number)


@dataclass(frozen=True, slots=True)
class LayoutMemory:
    """GPU memory of the fullest rank of a layout.

    Attributes:
        layout: as text, such as ``fsdp=8,tensor=2``.
        gpus: number of GPUs.
        stage: pipeline stage of that rank, from 1.
        states: parameters, gradients and optimizer states of that rank; bytes.
        memory: its estimate.
    """

    layout: str
    gpus: int
    stage: int
    states: int
    memory: Memory


def divided(
    trace: Trace,
    layout: Layout,
    gpu: GPU,
    environment: Mapping[str, str],
    corrected: Correction = UNCORRECTED,
) -> LayoutMemory | str:
    """The memory of the fullest rank, or why it is unknown.

    Args:
        trace: of the undivided job.
        layout: how it is divided.
        gpu: each rank has one of these.
        environment: variables that are set for the job.
        corrected: by past runs of the job.
    """
    if any(kind == "communication" for kind in trace.kinds.values()):
        return "the job already divides its model; change its own settings instead"
    model = _Model(trace)
    needs_blocks = max(layout.tensor, layout.pipeline) > 1 or layout.stage == 3
    if needs_blocks and not model.blocks:
        return "the model has no stack of numbered layers (such as h.0, h.1) that could be divided"
    if layout.expert > 1 and not model.experts:
        return "no layer of the model has experts (a part named experts) that could be divided"
    if layout.pipeline > len(model.blocks or (0,)):
        return f"{layout.pipeline} pipeline stages for {len(model.blocks)} blocks"
    if not any(kind == "gradient" for kind in trace.kinds.values()):
        return "no optimizer step was seen, so gradients and states are unknown"
    # Of the stages in the middle, the first stores the most micro-batches.
    stages = sorted({0, min(1, layout.pipeline - 1), layout.pipeline - 1})
    found = []
    for stage in stages:
        most = _StageTrace(model, layout, stage, least=False).trace()
        least = _StageTrace(_Model(trace.least or trace), layout, stage, least=True).trace()
        ranked = replace(most, least=least, assumed=(*trace.assumed, *_assumed(layout)))
        memory = estimate(ranked, gpu, environment, layout.gpus, corrected)
        states = sum(_most_of(most, kind) for kind in _OF_MODEL)
        found.append(LayoutMemory(str(layout), layout.gpus, stage + 1, states, memory))
    return max(found, key=lambda fit: fit.memory.allocated.likely)


def _assumed(layout: Layout) -> Iterator[str]:
    yield f"{layout} is computed from the run on one GPU, whose batch is that of each rank"
    if layout.tensor > 1 and not layout.sequence:
        yield "inputs of blocks and norms are not divided (at the lower end they are, as with sequence)"
    if layout.pipeline > 1:
        yield "1F1B schedule, blocks divided evenly; the batch of the run is one micro-batch"
    if layout.context > 1:
        yield "fused attention, whose memory is linear in the sequence"
    if layout.expert > 1:
        yield "tokens are routed evenly to the experts, and buffers that exchange them are not counted"


def _most_of(trace: Trace, kind: str) -> int:
    """The most bytes of a kind at a time."""
    now = most = 0
    sizes: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Alloc) and trace.kind(event.storage) == kind:
            sizes[event.storage] = event.size
            now += event.size
            most = max(most, now)
        elif isinstance(event, Free):
            now -= sizes.pop(event.storage, 0)
    return most


class _Model:
    """The stack of blocks in a trace: which block each storage belongs to.

    Attributes:
        trace: the trace.
        blocks: numbers of the blocks of the longest stack, in order.
        block: storage -> block; -1 before the first one, ``len(blocks)`` after the last one.
        interior: storages of activations inside attention or MLP, or larger than what flows between blocks.
        experts: storages of parameters, gradients and optimizer states of experts.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.allocs = [event for event in trace.events if isinstance(event, Alloc)]
        names = {
            allocation.storage: trace.names.get(allocation.storage) or trace.site(allocation).layer
            for allocation in self.allocs
        }
        found = {number: match for number, name in names.items() if (match := _BLOCK.match(name))}
        stacks = Counter(
            match[1] for match in {match[0]: match for match in found.values()}.values()
        )
        stack = max(stacks, key=lambda name: stacks[name], default="")
        inside = {number: match for number, match in found.items() if match[1] == stack}
        numbers = sorted({int(match[2]) for match in inside.values()})
        self.blocks = numbers if len(numbers) > 1 else []
        order = {number: at for at, number in enumerate(self.blocks)}
        self.block = {n: order[int(m[2])] for n, m in inside.items()} if self.blocks else {}
        self._place_others()
        self.interior = self._interior({n: m[3] or "" for n, m in inside.items()})
        named = trace.names.items()
        self.experts = {
            n for n, name in named if trace.kind(n) in _OF_MODEL and _EXPERT.search(name)
        }

    def _place_others(self) -> None:
        """What belongs to no block runs next to the block whose storages come before it in time.

        Backward calls no layers: there, activations that are freed show how far it is.
        """
        last, backward = -1, False
        for event in self.trace.events:
            if isinstance(event, Mark):
                backward = event.name == "backward" or (backward and event.name != "backward done")
                last = -1 if event.name.startswith("step ") else last
            elif isinstance(event, Free):
                is_passed = backward and self.trace.kind(event.storage) == "activation"
                last = self.block.get(event.storage, last) if is_passed else last
            elif self.trace.kind(event.storage) not in _OF_MODEL:
                if event.storage in self.block:
                    last = len(self.blocks)
                else:
                    self.block[event.storage] = last
        for number, kind in self.trace.kinds.items():
            if kind in _OF_MODEL and number not in self.block:
                self.block[number] = self._side(self.trace.names.get(number, ""))

    def _side(self, name: str) -> int:
        """The side of the stack on which a parameter outside of it is used, by its layer's activations."""
        layer = name.rpartition(".")[0]
        for alloc in self.allocs:
            if layer and self.trace.site(alloc).layer == layer and alloc.storage in self.block:
                return self.block[alloc.storage]
        return -1

    def _interior(self, parts: Mapping[int, str]) -> frozenset[int]:
        """Of a block's layers those with layers of their own are divided, but for the last, whose result is reduced."""
        made = {a.storage: parts[a.storage] for a in self.allocs if self._is_result(a, parts)}
        sizes = Counter(a.size for a in self.allocs if made.get(a.storage) == "")
        flow = max(sizes, key=lambda size: sizes[size], default=0)
        last = {part.partition(".")[0]: part for part in made.values() if "." in part}
        return frozenset(
            alloc.storage
            for alloc in self.allocs
            if alloc.size > flow
            or (
                ((part := made.get(alloc.storage, "")).partition(".")[0] in last)
                and part != last[part.partition(".")[0]]
            )
        )

    def _is_result(self, alloc: Alloc, parts: Mapping[int, str]) -> bool:
        return alloc.storage in parts and self.trace.kind(alloc.storage) not in _OF_MODEL


class _StageTrace:
    """The trace of a rank of one pipeline stage.

    Args:
        model: the undivided trace.
        layout: how it is divided.
        stage: from 0.
        least: the least that the rank may use.
    """

    def __init__(self, model: _Model, layout: Layout, stage: int, *, least: bool) -> None:
        self._model = model
        self._layout = layout
        self._least = least
        self._kinds = dict(model.trace.kinds)
        self._next = max((alloc.storage for alloc in model.allocs), default=0) + 1
        count, stages = len(model.blocks), layout.pipeline
        first, end = count * stage // stages, count * (stage + 1) // stages
        self._own = range(-1 if stage == 0 else first, count + 1 if stage == stages - 1 else end)
        self._in_flight = stages - stage
        self._taken: dict[str, int] = {}
        self._parameters = self._parameters_of(self._own)
        parameters = (a for a in model.allocs if model.trace.kind(a.storage) == "parameter")
        total = sum(alloc.size for alloc in parameters)
        self._share = (sum(self._parameters[0]) + self._parameters[1]) / total if total else 1.0

    def trace(self) -> Trace:
        """The trace of the rank."""
        return replace(self._model.trace, events=tuple(self._events()), kinds=self._kinds)

    def _events(self) -> Iterator[Event]:
        stepping = False
        for event in self._model.trace.events:
            if isinstance(event, Alloc):
                yield replace(event, size=self._size(event, stepping))
                continue
            if isinstance(event, Mark):
                stepping = event.name == "optimizer" or (
                    stepping and not event.name.startswith("step ")
                )
                if event.name == "optimizer" and "gathered" in self._taken:
                    yield Free(self._taken.pop("gathered"))
            yield event
            if isinstance(event, Mark) and event.name == "backward":
                yield from self._buffers()

    def _size(self, alloc: Alloc, stepping: bool) -> int:
        layout, kind = self._layout, self._model.trace.kind(alloc.storage)
        if stepping and kind == "temporary":  # of the optimizer, for all parameters or for one
            shards = layout.shards if layout.stage else 1
            return -(-int(alloc.size * self._share) // (layout.tensor * shards))
        if layout.pipeline > 1 and self._model.block.get(alloc.storage, -1) not in self._own:
            return 0
        if kind in _OF_MODEL:
            needed = {"optimizer": 1, "gradient": 2, "parameter": 3}[kind]
            shards = layout.shards if layout.stage >= needed else 1
            return -(-alloc.size // (layout.tensor * shards * self._experts(alloc)))
        if kind == "buffer":
            return alloc.size
        is_divided = self._least or layout.sequence or alloc.storage in self._model.interior
        parts = layout.context * (layout.tensor if is_divided else 1)
        return -(-alloc.size * (self._in_flight if kind == "activation" else 1) // parts)

    def _experts(self, alloc: Alloc) -> int:
        """The number of ranks that divide a storage because it is of experts."""
        return self._layout.expert if alloc.storage in self._model.experts else 1

    def _buffers(self) -> Iterator[Event]:
        """What FSDP gathers, until the step; and buckets of gradients, once."""
        for name, size in (("gathered", self._gathered()), ("buckets", self._buckets())):
            if size and name not in self._taken:
                self._taken[name] = self._next
                self._kinds[self._next] = "communication"
                yield Alloc(self._next, size // self._layout.tensor, -1)
                self._next += 1

    def _buckets(self) -> int:
        """A copy of the gradients; with ``zero2`` of those of a block."""
        layout = self._layout
        if layout.stage == 3 or layout.data * layout.shards == 1 or self._least:
            return 0
        inside, outside = self._parameters
        return max(inside, default=outside) if layout.stage == 2 else sum(inside) + outside

    def _gathered(self) -> int:
        """Parameters in use and prefetched, and gradients of a block with their copy to send."""
        if self._layout.stage < 3 or self._layout.shards == 1:
            return 0
        inside, outside = self._parameters
        largest = sorted(inside, reverse=True) or [0]
        return outside + (largest[0] if self._least else sum(largest[:2]) + 2 * largest[0])

    def _parameters_of(self, blocks: range) -> tuple[list[int], int]:
        """Bytes of parameters: by block, and of those outside of blocks."""
        found: Counter[int] = Counter()
        for alloc in self._model.allocs:
            block = self._model.block.get(alloc.storage, -1)
            if self._model.trace.kind(alloc.storage) == "parameter" and block in blocks:
                found[block] += alloc.size // self._experts(alloc)
        inside = [size for block, size in found.items() if 0 <= block < len(self._model.blocks)]
        return inside, sum(found.values()) - sum(inside)
