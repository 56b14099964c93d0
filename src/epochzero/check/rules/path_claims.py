"""Claims of the rules about paths and data files: one for each problem of the path analysis."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.paths.faults import Faulty, faults_of
from epochzero.check.rule import Claim, JobView, claim_at

Texts: TypeAlias = tuple[str, str, str]
"""Message, consequence, fix."""


def path_check(
    rule: str, describe: Callable[[AccessProblem, PathAnalysis], Texts]
) -> Callable[[JobView], Iterator[Claim]]:
    """Return the check of a rule about paths.

    Args:
        rule: id of the rule whose problems are reported.
        describe: returns the texts of one problem.
    """

    def check(view: JobView) -> Iterator[Claim]:
        for problem in view.paths.problems:
            if problem.rule == rule:
                message, consequence, fix = describe(problem, view.paths)
                yield claim_at(
                    problem.access.call.at,
                    severity=problem.severity,
                    message=message,
                    consequence=consequence,
                    fix=fix,
                )

    return check


def data_check(kind: str, fix: Callable[[Faulty], str]) -> Callable[[JobView], Iterator[Claim]]:
    """Return the check of a rule about data files.

    Args:
        kind: kind of the faults that are reported.
        fix: returns the fix of a fault.
    """

    def check(view: JobView) -> Iterator[Claim]:
        for faulty in faults_of(view.program, view.target):
            if faulty.fault.kind == kind:
                yield claim_at(
                    faulty.at,
                    severity="error" if faulty.sure else "warning",
                    message=f"{faulty.shown}, which {faulty.access.function} reads, "
                    f"{faulty.fault.what}.",
                    consequence=faulty.fault.error,
                    fix=fix(faulty),
                )

    return check


def where_searched(paths: PathAnalysis, path: str) -> str:
    """Where a path was searched, as text for users."""
    platform = paths.platform
    if platform.travels(path):
        return "in the job directory"
    return (
        "on this machine" if platform.target.here else f"on {platform.target.name or 'the target'}"
    )
