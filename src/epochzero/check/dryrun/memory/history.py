"""What past runs of a job took of their GPU corrects what is estimated for it.

A run counts for a job when its script, the names of its options and its GPU are the same: other values,
such as another batch size, leave the error of an estimate about as it is. What was seen, divided by what
was estimated for that run, is its ratio. A run for which nothing was estimated counts for the very same
job alone, by what is estimated for that now: the code may have changed since, so that it only widens.

1. The median ratio of the runs that ended well scales the estimate; the least and the largest widen it.
2. A run that was out of memory would have taken at least what it had and what it asked for. Where that
   is more than the estimate, corrected so far, it becomes the likely value, and at least the most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from epochzero.check.dryrun.memory.units import GIB, MIB
from epochzero.check.launch.model import Job


@dataclass(frozen=True, slots=True)
class PastPeak:
    """What one run took.

    Attributes:
        job: `kind_of_job` of it; `same_job` where nothing was estimated for it.
        gpu: model of the one that it ran on.
        estimated: likely peak that was estimated for it, as allocated; bytes, 0 for nothing.
        allocated: ``torch.cuda.max_memory_allocated``, or what was allocated when it failed; bytes.
        wanted: that it asked for besides when it was out of memory, bytes; 0 where it was not.
    """

    job: str
    gpu: str
    estimated: int
    allocated: int
    wanted: int = 0

    @classmethod
    def of_failure(cls, job: Job, gpu: str, message: str) -> PastPeak | None:
        """A run that was out of memory, by torch's message; None where that has no numbers."""
        error = OutOfMemory.read(message)
        return cls(same_job(job), gpu, 0, error.allocated, error.wanted) if error else None

    def ratio(self, now: int) -> float:
        """Of what it took, or would have at least, to what was estimated, then or ``now``."""
        return (self.allocated + self.wanted) / (self.estimated or now)


@dataclass(frozen=True, slots=True)
class Correction:
    """What an estimate is multiplied with: the least, the likely and the most.

    Attributes:
        runs: how many past runs it comes of.
    """

    low: float = 1.0
    likely: float = 1.0
    high: float = 1.0
    runs: int = 0


UNCORRECTED = Correction()


def correction(history: Sequence[PastPeak], job: Job, gpu: str, now: int = 0) -> Correction:
    """The correction of a job's estimate on a GPU, by the runs that count for it.

    Args:
        history: the runs.
        job: it.
        gpu: model of the one that it is to run on.
        now: what is estimated for it, in bytes; without it only runs that were estimated count.

    >>> from pathlib import Path
    >>> job = Job(argv=("--batch", "8"), script=Path("train.py"), module="", folder=Path())
    >>> past = [PastPeak("train.py --batch", "T4", 1000, peak) for peak in (1000, 1100, 1040)]
    >>> correction(past, job, "T4")
    Correction(low=1.0, likely=1.04, high=1.1, runs=3)
    """
    kind, same = kind_of_job(job), same_job(job)
    alike = [
        p
        for p in history
        if p.gpu == gpu and (p.job == kind if p.estimated > 0 else now and p.job == same)
    ]
    ended = [peak.ratio(now) for peak in alike if not peak.wanted] or [1.0]
    failed = max((peak.ratio(now) for peak in alike if peak.wanted), default=0.0)
    return Correction(
        low=min(ended),
        likely=max(median(ended), failed),
        high=max(*ended, failed),
        runs=len(alike),
    )


def kind_of_job(job: Job) -> str:
    """A job without the values of its options: its script or module, and their names, in order."""
    names = {_OPTION.match(word) for word in job.argv}
    script = job.module or (job.script.name if job.script else "")
    return " ".join([script, *sorted(found[0] for found in names if found)])


def same_job(job: Job) -> str:
    """A job with its values: where its script or module lies, and its arguments."""
    return " ".join([str(job.script or job.folder / job.module), *job.argv])


_OPTION = re.compile(r"--?[A-Za-z][\w.-]*|[A-Za-z_][\w.]*(?==)")


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The numbers of the message of a ``torch.OutOfMemoryError``.

    Attributes:
        wanted: bytes that could not be allocated.
        allocated: bytes that were, by PyTorch.
        reserved: bytes that PyTorch had, used or not.
    """

    wanted: int
    allocated: int
    reserved: int

    @classmethod
    def read(cls, message: str) -> OutOfMemory | None:
        """The numbers, as torch writes them since 2.0 and as it did before; None where they lack.

        >>> OutOfMemory.read(
        ...     "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.56 GiB of which 1.05 GiB is"
        ...     " free. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 512.00 MiB is"
        ...     " reserved by PyTorch but unallocated."
        ... )
        OutOfMemory(wanted=2147483648, allocated=12884901888, reserved=13421772800)
        """
        wanted = _WANTED.search(message)
        if wanted is None:
            return None
        for pattern, beside in ((_SINCE_2, True), (_BEFORE_2, False)):
            if found := pattern.search(message):
                allocated, second = _bytes(*found.group(1, 2)), _bytes(*found.group(3, 4))
                reserved = allocated + second if beside else second
                return cls(_bytes(*wanted.groups()), allocated, reserved)
        return None


_SIZE = r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)"
_WANTED = re.compile(rf"Tried to allocate {_SIZE}")
_SINCE_2 = re.compile(
    rf"allocated memory {_SIZE} is allocated by PyTorch.{{0,200}}?and {_SIZE} is reserved",
    re.DOTALL,
)
_BEFORE_2 = re.compile(rf"{_SIZE} already allocated;.{{0,80}}?{_SIZE} reserved in total", re.DOTALL)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": GIB}


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * _UNITS[unit])
