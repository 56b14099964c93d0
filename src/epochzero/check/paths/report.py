"""Convert a problem with a path into the finding of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from epochzero.check.findings import Claim
from epochzero.check.paths.world import Problem, World, world_of
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target

Texts: TypeAlias = tuple[str, str, str]
"""Message, consequence, fix."""


def path_check(
    rule: str, describe: Callable[[Problem, World], Texts]
) -> Callable[[Program, Target], Iterator[Claim]]:
    """Return the check of a rule about paths.

    Args:
        rule: id of the rule whose problems are reported.
        describe: returns the texts of one problem.
    """

    def check(program: Program, target: Target) -> Iterator[Claim]:
        world = world_of(program, target)
        for problem in world.problems:
            if problem.rule == rule:
                message, consequence, fix = describe(problem, world)
                at = problem.access.call.at
                yield Claim(
                    severity=problem.severity,
                    phase=at.phase,
                    place=at.place,
                    message=message,
                    consequence=consequence,
                    fix=fix,
                    via=at.via,
                )

    return check


def where_searched(world: World, path: str) -> str:
    """Where a path was searched, as text for users."""
    platform = world.platform
    if platform.travels(path):
        return "in the job directory"
    return (
        "on this machine" if platform.target.here else f"on {platform.target.name or 'the target'}"
    )
