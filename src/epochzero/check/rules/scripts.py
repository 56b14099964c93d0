"""What the rules about launch scripts share."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.findings import Finding
from epochzero.check.job.model import ScriptProblem
from epochzero.check.program.model import Program
from epochzero.check.rules.situation import finding_at_start

__all__ = ["finding_of", "problems_of"]


def problems_of(program: Program, *kinds: str) -> Iterator[ScriptProblem]:
    """The problems of the job's scripts that are of these kinds."""
    return (one for one in program.job.problems if one.kind in kinds)


def finding_of(
    problem: ScriptProblem, rule: str, category: str, *, message: str, consequence: str, fix: str
) -> Finding:
    """A finding about a script: an error where it is surely reached and fails."""
    return finding_at_start(
        problem.place,
        rule,
        category,
        severity="error" if problem.certain else "warning",
        message=message,
        consequence=consequence,
        fix=fix,
    )
