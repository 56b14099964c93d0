"""From a problem with a path to the finding of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from epochzero.check.findings import Claim
from epochzero.check.paths.world import Problem, World, world_of
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target

Told: TypeAlias = tuple[str, str, str]
"""Message, consequence, fix."""


def path_check(
    rule: str, tell: Callable[[Problem, World], Told]
) -> Callable[[Program, Target], Iterator[Claim]]:
    """The check of a rule about paths: its problems of the world, as its own words tell them."""

    def check(program: Program, target: Target) -> Iterator[Claim]:
        world = world_of(program, target)
        for problem in world.problems:
            if problem.rule == rule:
                message, consequence, fix = tell(problem, world)
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


def where_looked(world: World, path: str) -> str:
    """Where a path was looked for, for people."""
    platform = world.platform
    if platform.travels(path):
        return "in the folder of the job"
    return (
        "on this machine" if platform.target.here else f"on {platform.target.name or 'the target'}"
    )
