"""The inverse questions: the smallest GPU that is enough, and the largest value of an option that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochzero.check.dryrun.memory.estimate import estimate, fit, room_of
from epochzero.check.dryrun.memory.history import UNCORRECTED, Correction
from epochzero.check.dryrun.memory.trace import Trace
from epochzero.check.target.gpus import presets
from epochzero.check.target.model import GPU

MOST_TRACES = 8
"""A search runs the job dry as often, at most."""
MOST_TIMES = 64
"""What is tried next is at most so many times what fits."""
FUSED = (8, 0)
"""From this compute capability on PyTorch has fused attention for all of its types."""


@dataclass(frozen=True, slots=True)
class Trial:
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
        option: whose it is.
        value: it; None where the smallest that was tried does not fit.
        certain: whether the next value (by `step`) was tried and does not fit.
        tried: in the order of the search.
    """

    option: str
    value: int | None
    certain: bool
    tried: tuple[Trial, ...]


def smallest_gpu(
    trace: Trace, traced: GPU, processes: int = 1, corrected: Correction = UNCORRECTED
) -> GPU | None:
    """The preset with the least memory on which a traced job surely fits; None where there is none.

    Which kernels run, and so what they keep, depends on the GPU: only presets are asked for which
    the trace of this one holds, with fused attention or without.

    Args:
        trace: of the job.
        traced: the GPU that it was traced for.
        processes: of the whole job.
        corrected: by past runs of the job.
    """
    fused = (traced.capability or FUSED) >= FUSED
    alike = [
        gpu for gpu in presets().values() if gpu.capability and (gpu.capability >= FUSED) == fused
    ]
    for gpu in sorted(alike, key=lambda gpu: gpu.memory_bytes):
        if fit(trace, gpu, processes=processes, corrected=corrected).answer == "fits":
            return gpu
    return None


def largest(
    option: str,
    traced: Callable[[int], Trace | None],
    start: int,
    gpu: GPU,
    environment: Mapping[str, str] | None = None,
    step: int = 1,
    processes: int = 1,
    corrected: Correction = UNCORRECTED,
) -> Largest:
    """The largest value of an option, such as the batch size, with which the job fits.

    The job is traced with `start` and twice that, then where the line through two peaks reaches the
    limit, until two values that are a step apart lie on both sides of it.

    Args:
        option: its name.
        traced: the job's trace with a value; None where it does not run with it.
        start: the value that it has now.
        gpu: that it must fit on.
        environment: variables that are set for the job.
        step: values are multiples of it.
        processes: of the whole job.
        corrected: by past runs of the job.
    """
    tried: dict[int, Trial] = {}

    def fits(value: int) -> bool:
        trace = traced(value)
        if trace is None:
            tried[value] = Trial(value, 0, False)
        else:
            found = estimate(trace, gpu, environment, processes, corrected)
            tried[value] = Trial(value, found.allocated.likely, found.fit.answer == "fits")
        return tried[value].fits

    room = int(room_of(gpu, processes, corrected).low * corrected.likely)
    value = max(start // step, 1) * step
    low, high = 0, 0  # the largest that fits, the smallest that does not
    while value and value not in tried and len(tried) < MOST_TRACES:
        if fits(value):
            low = max(low, value)
        else:
            high = min(high or value, value)
        value = _next(tried, low, high, step, room)
    return Largest(option, low or None, bool(high) and high - low <= step, tuple(tried.values()))


def _next(tried: Mapping[int, Trial], low: int, high: int, step: int, room: int) -> int:
    """What to try next, above the one and below the other, if it is known; 0 where nothing is left."""
    if high and high - low <= step:
        return 0
    guess = _guess(tried, room) // step * step
    if not high:
        return min(max(guess or 2 * low, low + step), MOST_TIMES * low)
    if low < guess < high:
        return guess
    if 0 < guess <= low and low - step not in tried:
        return low + step
    # What is left over between blocks decides, and no line tells that.
    return max((low + high) // 2 // step * step, low + step)


def _guess(tried: Mapping[int, Trial], room: int) -> int:
    """Where the line through the two largest peaks reaches the limit; 0 where they do not grow."""
    known = sorted(
        (attempt.value, attempt.allocated) for attempt in tried.values() if attempt.allocated
    )
    if len(known) < 2 or known[-1][1] <= known[-2][1]:
        return 0
    (x, a), (y, b) = known[-2:]
    return int(x + (room - a) * (y - x) / (b - a))
