"""Shared by the rules about launch scripts."""

from collections.abc import Callable, Iterator

from epochzero.check.launch.model import ScriptProblem
from epochzero.check.rule import Claim, Claims, JobView, Program, claim_at_start


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


def script_check(
    kind: str, *, message: str, consequence: str, fix: str = ""
) -> Callable[[JobView], Claims]:
    """The check of a rule that reports all problems of one kind; ``{text}`` stands for the text of a problem."""

    def check(view: JobView) -> Claims:
        for problem in problems_of(view.program, kind):
            found, effect, advice = (
                text.replace("{text}", problem.text) for text in (message, consequence, fix)
            )
            yield claim_of(problem, message=found, consequence=effect, fix=advice)

    return check
