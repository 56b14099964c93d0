"""Combine a run with real values and one on simulated GPUs: one result per cause.

Each detects what the other cannot. Values are unknown on a simulated GPU, so a failure that occurs only
there counts only if it concerns devices, types, shapes or attributes. A failure that is specific to the CPU does
not count if the run on the simulated GPU succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epochzero.check.dryrun.attempt import DryRunAttempt
from epochzero.check.dryrun.records import ErrorRecord
from epochzero.check.findings import Finding, Unknown

Answer = Finding | Unknown
_FAKE_ONLY = re.compile(
    r"DataDependentOutput|DynamicOutputShape|UnsupportedFakeTensor|UnsupportedOperator|FakeTensor"
    r"|meta (kernel|tensor|device)|'meta'|data_ptr|unbacked|SymInt|_subclasses"
)
_CPU_ONLY = re.compile(
    r"cuda|gpu|nccl|flash|triton|device|not implemented for '(BFloat16|Half|Float8)", re.IGNORECASE
)
_OF_GPU = re.compile(
    r"^AttributeError|cuda|gpu|device|dtype|scalar type|same type|Half|BFloat16|FP16|BF16|float\d+|autocast"
    r"|shape|size|dimension|channels|unscale_|inf checks",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run; none if it completed."""

    run: DryRunAttempt
    answer: Answer | None

    @property
    def shown(self) -> str:
        """The error that ended it, as Python prints it."""
        raised = self.run.raised or ErrorRecord()
        return f"{raised.type}: {raised.message}"


def agreed(outcomes: Sequence[RunOutcome]) -> list[Answer]:
    """The results of a run with real values, and of one on simulated GPUs, if there was one."""
    if len(outcomes) == 1:
        return [outcome.answer for outcome in outcomes if outcome.answer]
    real, fake = outcomes
    first, second = fake.answer, real.answer
    if isinstance(first, Finding) and isinstance(second, Finding) and _same(first, second):
        return [second if second.severity == "error" != first.severity else first]
    return [*_of_fake(fake, real), *_of_real(real, fake)]


def _same(first: Finding, second: Finding) -> bool:
    near = first.place.path == second.place.path and abs(first.place.line - second.place.line) <= 1
    return near or first.category == second.category


def _of_fake(fake: RunOutcome, real: RunOutcome) -> Iterator[Answer]:
    found = fake.answer
    if isinstance(found, Unknown):
        if not (fake.run.unfit and real.answer):
            yield found
    elif found is not None:
        if _FAKE_ONLY.search(fake.shown):
            yield Unknown("the code after this line on the GPU", _CANNOT, found.place)
        elif real.answer is not None or (_raised_by_torch(fake) and _OF_GPU.search(fake.shown)):
            yield found
        else:
            yield Unknown("the code after this line on the GPU", _VALUES, found.place)


def _of_real(real: RunOutcome, fake: RunOutcome) -> Iterator[Answer]:
    found = real.answer
    if isinstance(found, Unknown):
        if isinstance(fake.answer, Unknown) or fake.run.unfit:
            yield found
    elif found is not None and not (fake.answer is None and _is_of_the_cpu(real)):
        yield found


def _is_of_the_cpu(real: RunOutcome) -> bool:
    """Whether a failure may result from a run without a GPU, on a single process of several."""
    raised = real.run.raised or ErrorRecord()
    if _OF_SIMULATION in raised.message:
        return False
    alone = raised.rank < 0
    in_group = bool(raised.frames) and "/torch/distributed/" in raised.frames[-1].path
    return (alone and in_group) or bool(_CPU_ONLY.search(real.shown))


_OF_SIMULATION = "invalid device ordinal"
"""What only the simulated GPUs raise in a run with real values."""
_CANNOT = "one of its operations cannot be simulated"
_VALUES = "it fails because the simulated GPU does not compute values; with real values on the CPU it succeeds"


def _raised_by_torch(outcome: RunOutcome) -> bool:
    raised = outcome.run.raised or ErrorRecord()
    innermost = raised.frames[-1].path if raised.frames else ""
    return raised.layer is not None or "/torch/" in innermost
