"""Memory of a process on a GPU outside of the allocator: the driver's part, the context, NCCL's buffers.

None of it can be computed; each has a least, a likely and a most value, with where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochzero.check.dryrun.memory.units import MIB
from epochzero.check.target.model import GPU


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes: the least, the likely and the most."""

    low: int
    likely: int
    high: int


@dataclass(frozen=True, slots=True)
class Surrounding:
    """Memory that is not the allocator's.

    Attributes:
        name: what it is.
        size: bytes.
        source: where the numbers come from.
    """

    name: str
    size: Range
    source: str


_CONTEXT = Surrounding(
    "CUDA context",
    Range(105 * MIB, 300 * MIB, 1000 * MIB),
    "105 to 135 MiB on a T4 with CUDA 12.8 (torch-preflight 0.5.0, measured); about 300 MiB with"
    " lazy loading, more than 1000 MiB before CUDA 11.7 (pytorch/pytorch#107667)",
)
_DRIVER = (0.005, 0.015, 0.03)
"""Of the memory that nvidia-smi names, what programs do not get: a T4 of 15360 MiB has 14.56 GiB for
them, an A100 of 81920 MiB 79.15 GiB, by the "total capacity" of out-of-memory messages."""
_NCCL = Surrounding(
    "NCCL buffers",
    Range(32 * MIB, 250 * MIB, 1000 * MIB),
    "NCCL_BUFFSIZE is 4 MiB a channel and peer (NCCL's documentation of its environment); their"
    " number depends on the links between GPUs",
)


def surroundings(gpu: GPU, processes: int) -> tuple[Surrounding, ...]:
    """Memory of a process of the job on a GPU that torch does not reserve.

    Args:
        gpu: of the platform.
        processes: of the whole job; with several there is a communicator.
    """
    low, likely, high = (int(share * gpu.memory_bytes) for share in _DRIVER)
    driver = Surrounding(
        "reserved by the driver",
        Range(low, likely, high),
        "memory available to programs on a T4 and an A100, according to torch's messages",
    )
    return (driver, _CONTEXT, *((_NCCL,) if processes > 1 else ()))


def total(parts: Sequence[Surrounding]) -> Range:
    """All of it."""
    sizes = [part.size for part in parts]
    return Range(
        sum(size.low for size in sizes),
        sum(size.likely for size in sizes),
        sum(size.high for size in sizes),
    )
