"""Shared by the rules about launch scripts."""

from __future__ import annotations

from collections.abc import Iterator

from epochzero.check.launch.model import ScriptProblem
from epochzero.check.rule import Claim, Program, claim_at_start


def problems_of(program: Program, *kinds: str) -> Iterator[ScriptProblem]:
    """The problems of the job's scripts of these kinds."""
    return (problem for problem in program.job.launch_script.problems if problem.kind in kinds)


def claim_of(
    problem: ScriptProblem, *, message: str, consequence: str, fix: str = "", category: str = ""
) -> Claim:
    """A finding about a script: an error if the line is certainly reached and fails."""
    return claim_at_start(
        problem.place,
        category=category,
        severity="error" if problem.certain else "warning",
        message=message,
        consequence=consequence,
        fix=fix,
    )
