"""The inverse questions: the smallest GPU that is enough, and the largest value of an option that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochzero.check.dryrun.memory.estimate import estimate, fit, room_of
from epochzero.check.dryrun.memory.trace import Trace
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU

__all__ = ["Largest", "Tried", "largest", "smallest_gpu"]

MOST_TRACES = 8
"""A search runs the job dry as often, at most."""
FUSED = (8, 0)
"""From this compute capability on PyTorch has fused attention for all of its types."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A value of the option, and the peak that was traced with it.

    Attributes:
        value: of the option.
        allocated: likely peak; bytes.
        fits: on the GPU, by the whole range of the estimate.
    """

    value: int
    allocated: int
    fits: bool


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value that fits.

    Attributes:
        value: it; None where the smallest that was tried does not fit.
        certain: whether the next value (by `step`) was tried and does not fit.
        tried: in the order of the search.
    """

    value: int | None
    certain: bool
    tried: tuple[Tried, ...]


def smallest_gpu(trace: Trace, traced: GPU, processes: int = 1) -> GPU | None:
    """The preset with the least memory on which a traced job surely fits; None where there is none.

    Which kernels run, and so what they keep, depends on the GPU: only presets are asked for which
    the trace of this one holds, with fused attention or without.

    Args:
        trace: of the job.
        traced: the GPU that it was traced for.
        processes: of the whole job.
    """
    fused = (traced.capability or FUSED) >= FUSED
    alike = [
        gpu for gpu in presets().values() if gpu.capability and (gpu.capability >= FUSED) == fused
    ]
    for gpu in sorted(alike, key=lambda gpu: gpu.memory_bytes):
        if fit(trace, gpu, processes=processes).answer == "fits":
            return gpu
    return None


def largest(
    traced: Callable[[int], Trace | None],
    start: int,
    gpu: GPU,
    environment: Mapping[str, str] | None = None,
    step: int = 1,
) -> Largest:
    """The largest value of an option, such as the batch size, with which the job fits.

    The job is traced with `start` and twice that, until one does not fit; then where the line through
    two peaks reaches the limit, until two values that are a step apart lie on both sides of it.

    Args:
        traced: the job's trace with a value; None where it does not run with it.
        start: the value that it has now.
        gpu: that it must fit on.
        environment: variables that are set for the job.
        step: values are multiples of it.
    """
    tried: dict[int, Tried] = {}

    def fits(value: int) -> bool:
        trace = traced(value)
        if trace is None:
            tried[value] = Tried(value, 0, False)
        else:
            found = estimate(trace, gpu, environment)
            tried[value] = Tried(value, found.allocated.likely, found.fit.answer == "fits")
        return tried[value].fits

    room = room_of(gpu).low
    value = max(start // step, 1) * step
    low, high = 0, 0  # the largest that fits, the smallest that does not
    while value and value not in tried and len(tried) < MOST_TRACES:
        if fits(value):
            low = max(low, value)
        else:
            high = min(high or value, value)
        value = _next(tried, low, high, step, room)
    return Largest(low or None, bool(high) and high - low <= step, tuple(tried.values()))


def _next(tried: Mapping[int, Tried], low: int, high: int, step: int, room: int) -> int:
    """What to try next, between the two; 0 where nothing lies between them."""
    if not high:
        return 2 * low
    if high - low <= step:
        return 0
    known = sorted((one.value, one.allocated) for one in tried.values() if one.allocated)
    guess = (low + high) // 2
    if len(known) > 1:
        (x, a), (y, b) = known[-2:]
        guess = int(x + (room - a) * (y - x) / (b - a)) if b > a else guess
    # The neighbor of an end is tried where the line leads beyond it.
    return min(max(guess // step * step, low + step), high - step)
