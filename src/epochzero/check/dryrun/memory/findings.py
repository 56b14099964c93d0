"""Findings about an estimate of GPU memory: a finding if the job may not fit."""

from __future__ import annotations

from collections.abc import Sequence

from epochzero.check.dryrun.memory.advice import Advice
from epochzero.check.dryrun.memory.estimate import Memory
from epochzero.check.dryrun.memory.units import size_text
from epochzero.check.findings import Finding, SourceLocation

RULE = "dry-run-memory"
MOST_ADVICE = 3


def finding(memory: Memory, place: SourceLocation, advice: Sequence[Advice] = ()) -> Finding | None:
    """The finding about a job's memory; None if the job certainly fits.

    An error only if the lower bound of the estimate does not fit; a warning if the job may not fit.

    Args:
        memory: memory use of the job.
        place: line whose allocation fails.
        advice: changes that save memory, the best first.
    """
    fit = memory.fit
    if fit.answer == "fits":
        return None
    failing = fit.failing
    layer = f" in {failing.layer}" if failing and failing.layer else ""
    likely, room = memory.allocated.likely, fit.gpu.memory_bytes
    certain = fit.answer == "does not fit"
    return Finding(
        rule=RULE,
        severity="error" if certain else "warning",
        category="gpu_out_of_memory",
        phase="training",
        place=place,
        message=(
            f"The job uses about {size_text(likely)} ({_range(memory)}) in addition to the "
            f"CUDA context, {memory.moment}; {fit.gpu.model} has {size_text(room)}."
        ),
        consequence=(
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"
            f" {size_text(fit.wanted)}{layer}"
        ),
        fix=" ".join(_said(hint) for hint in advice[:MOST_ADVICE])
        or "Use a smaller batch, or a GPU with more memory.",
    )


def _range(memory: Memory) -> str:
    return f"{size_text(memory.allocated.low)} to {size_text(memory.allocated.high)}"


def _said(advice: Advice) -> str:
    about = "" if advice.change.exact else "about "
    saved = size_text(max(advice.allocated, advice.reserved))
    name = advice.change.name
    return f"{name[0].upper()}{name[1:]} saves {about}{saved}: {advice.change.fix}."
