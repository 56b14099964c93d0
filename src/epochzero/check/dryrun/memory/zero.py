"""What DeepSpeed's ZeRO makes of a job's memory: reckoned from the trace of the job without it.

Parameters, gradients and optimizer states of the trace are divided as the stage says (Rajbhandari et al.,
2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", section 5 and figure 1), with
a copy of the parameters in single precision where they are in half. Buffers are those of DeepSpeed's
configuration (deepspeed.ai, *DeepSpeed Configuration JSON*; ``deepspeed/runtime/zero/config.py``).
Activations are those of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from epochzero.check.dryrun.memory.resize import first_gradients
from epochzero.check.dryrun.memory.trace import Alloc, Event, Free, Mark, Trace

SINGLE = 4
"""Bytes of a value in single precision."""


@dataclass(frozen=True, slots=True)
class Zero:
    """What counts of DeepSpeed's configuration; sizes are in values.

    Attributes:
        stage: 1 divides optimizer states, 2 gradients too, 3 parameters too.
        half: parameters are in half precision.
        offload_optimizer, offload_parameters: they lie in the memory of the CPU.
        bucket: of gradients that are reduced together.
        contiguous: gradients are copied to a buffer of the bucket's size.
        overlap: a second one is filled while the first is sent.
        live: parameters that are gathered at a time, at most.
        prefetch: parameters that are gathered ahead.
        persistent: a parameter of as many values is not divided.
    """

    stage: int = 0
    half: bool = False
    offload_optimizer: bool = False
    offload_parameters: bool = False
    bucket: int = 500_000_000
    contiguous: bool = True
    overlap: bool = False
    live: int = 1_000_000_000
    prefetch: int = 50_000_000
    persistent: int = 100_000

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Zero:
        """The configuration as DeepSpeed reads it; ``auto`` is its default.

        >>> Zero.read({"bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}).overlap
        True
        """
        given = config.get("zero_optimization")
        zero = given if isinstance(given, dict) else {"stage": 1 if given is True else 0}
        stage = _number(zero.get("stage"), 0)
        return cls(
            stage=stage,
            half=any(_part(config, name).get("enabled") is True for name in ("fp16", "bf16")),
            offload_optimizer=_away(zero, "offload_optimizer", "cpu_offload"),
            offload_parameters=stage == 3 and _away(zero, "offload_param", "cpu_offload_param"),
            bucket=_number(zero.get("reduce_bucket_size"), cls().bucket),
            contiguous=zero.get("contiguous_gradients") is not False,
            overlap=zero.get("overlap_comm", stage == 3) is True,
            live=_number(zero.get("stage3_max_live_parameters"), cls().live),
            prefetch=_number(zero.get("stage3_prefetch_bucket_size"), cls().prefetch),
            persistent=_number(zero.get("stage3_param_persistence_threshold"), cls().persistent),
        )


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = config.get(name)
    return part if isinstance(part, dict) else {}


def _away(zero: Mapping[str, Any], name: str, old: str) -> bool:
    return _part(zero, name).get("device") in ("cpu", "nvme") or zero.get(old) is True


def _number(value: Any, default: int) -> int:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if number and 0 <= value < 1 << 60 else default


def partitioned(trace: Trace, zero: Zero, processes: int) -> Trace:
    """What one of the processes allocates with ZeRO.

    Args:
        trace: of the job without it, its parameters in the precision that the configuration says.
        zero: the configuration.
        processes: that share.
    """
    most = _Engine(trace, zero, processes, least=False)
    least = _Engine(trace.least or trace, zero, processes, least=True)
    assumption = f"ZeRO stage {zero.stage} over {processes} GPUs is computed; DeepSpeed's engine does not run"
    return replace(
        most.trace(),
        least=least.trace(),
        assumed=(*trace.assumed, assumption),
    )


class _Engine:
    """The events of a trace, as the engine has them.

    Args:
        trace, zero, processes: as for `partitioned`.
        least: nothing is gathered but the largest parameter, and no memory is taken inside the step.
    """

    def __init__(self, trace: Trace, zero: Zero, processes: int, *, least: bool) -> None:
        self._trace = trace
        self._zero = zero
        self._least = least
        self._shares = [processes if zero.stage >= stage else 1 for stage in range(4)]
        self._value = 2 if zero.half else SINGLE
        allocs = [event for event in trace.events if isinstance(event, Alloc)]
        of_kind = {
            kind: [event.size for event in allocs if trace.kind(event.storage) == kind]
            for kind in ("parameter", "optimizer")
        }
        self._parameters = of_kind["parameter"]
        first = first_gradients(trace)
        self._trained = sum(event.size for event in allocs if event.storage in first)
        self._states = round(sum(of_kind["optimizer"]) / self._trained) if self._trained else 0
        self._kinds = dict(trace.kinds)
        self._next = max((event.storage for event in allocs), default=0) + 1
        self._held: dict[str, int] = {}

    def trace(self) -> Trace:
        """The trace with the engine."""
        return replace(self._trace, events=tuple(self._events()), kinds=self._kinds)

    def _events(self) -> Iterator[Event]:
        begun = stepping = False
        for event in self._trace.events:
            if isinstance(event, Alloc):
                kind = self._trace.kind(event.storage)
                if not begun and kind in ("input", "activation"):
                    begun = True
                    yield from self._begin()
                yield replace(event, size=self._size(event, kind, stepping))
                continue
            yield event
            if isinstance(event, Mark):
                stepping = event.name == "optimizer" or (
                    stepping and not event.name.startswith("step ")
                )
                yield from self._at(event.name)

    def _size(self, event: Alloc, kind: str, stepping: bool) -> int:
        zero = self._zero
        if kind == "optimizer" or (stepping and kind == "temporary"):
            return 0  # those of the engine take their place
        if kind == "communication" and zero.stage:
            return 0  # buckets of DDP, which stood in for it
        if kind == "gradient" and zero.stage >= 2:
            return 0 if zero.offload_optimizer else self._share(event.size, 2)
        if kind == "parameter" and event.size > zero.persistent * self._value:
            return 0 if zero.offload_parameters else self._share(event.size, 3)
        return event.size

    def _share(self, size: int, stage: int) -> int:
        """What a process holds of what the stage divides."""
        return -(-size // self._shares[stage])

    def _single(self) -> int:
        """Bytes of a process's part of what is trained, in single precision."""
        if self._zero.offload_optimizer:
            return 0
        return self._share(self._trained * SINGLE // self._value, 1)

    def _begin(self) -> Iterator[Event]:
        """The engine is made: its optimizer holds its part in single precision, and its states."""
        copies = self._states + self._zero.half
        yield from self._take("states", "optimizer", copies * self._single())
        yield from self._take("gathered", "communication", self._gathered())

    def _at(self, moment: str) -> Iterator[Event]:
        if moment == "backward":
            yield from self._take("bucket", "communication", self._bucket())
        elif moment == "backward done":
            yield from self._give("bucket")
        elif moment == "optimizer":
            yield from self._give("gathered")
            gradient = self._single() if self._zero.half and not self._least else 0
            yield from self._take("gradient", "temporary", gradient)
        elif moment.startswith("step "):
            yield from self._give("gradient")
            yield from self._take("gathered", "communication", self._gathered())

    def _bucket(self) -> int:
        zero = self._zero
        if not zero.stage:
            return 0
        size = zero.bucket * self._value
        return size * (1 + zero.overlap) if zero.contiguous else min(size, self._trained)

    def _gathered(self) -> int:
        """Parameters in use: those of the largest layer, and ahead of it and behind what is allowed."""
        if self._zero.stage < 3:
            return 0
        ahead = 0 if self._least else (self._zero.live + self._zero.prefetch) * self._value
        return min(max(self._parameters, default=0) + ahead, sum(self._parameters))

    def _take(self, name: str, kind: str, size: int) -> Iterator[Event]:
        if size:
            self._held[name] = self._next
            self._kinds[self._next] = kind
            yield Alloc(self._next, size, -1)
            self._next += 1

    def _give(self, name: str) -> Iterator[Event]:
        if name in self._held:
            yield Free(self._held.pop(name))
