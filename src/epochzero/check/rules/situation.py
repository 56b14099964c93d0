"""What rules need of the circumstances of an event: findings at it, and guards around it."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import replace

from epochzero.check.code import code_of
from epochzero.check.findings import Finding, Place, Severity
from epochzero.check.program.events import Failed, Situation
from epochzero.check.program.model import Program
from epochzero.check.reach import Reach

__all__ = ["at_keyword", "failure", "failures", "finding_at", "finding_at_start", "guarded"]


def finding_at(
    at: Situation,
    rule: str,
    category: str,
    *,
    message: str,
    consequence: str,
    fix: str,
    severity: Severity | None = None,
) -> Finding:
    """A finding about an event: an error when the event is certain, unless a severity is given.

    In a thread it is a warning: the thread ends, and the job goes on without it.
    """
    return Finding(
        rule=rule,
        severity="warning" if at.aside else severity or ("error" if at.certain else "warning"),
        category=category,
        phase=at.phase,
        place=at.place,
        message=message,
        consequence=consequence,
        fix=fix,
        via=at.via,
    )


def finding_at_start(
    place: Place,
    rule: str,
    category: str,
    *,
    message: str,
    consequence: str,
    fix: str,
    severity: Severity = "error",
    via: tuple[Place, ...] = (),
) -> Finding:
    """A finding about how the job is started, or about what keeps it from starting."""
    return Finding(
        rule=rule,
        severity=severity,
        category=category,
        phase="initialization",
        place=place,
        message=message,
        consequence=consequence,
        fix=fix,
        via=via,
    )


def guarded(at: Situation, *exceptions: type[BaseException]) -> bool:
    """Whether one of the exceptions, or a class above it, is caught around the event."""
    above = {parent.__name__ for one in exceptions for parent in one.__mro__}
    # OSError has older names, and a handler may be written with its module.
    above |= {"IOError", "EnvironmentError"} if "OSError" in above else set()
    return any(name.rpartition(".")[2] in above for name in at.handled)


def failures(
    program: Program, *kinds: str, told: Container[tuple[str, int]] = ()
) -> Iterator[Failed]:
    """What surely fails in one of these ways, each line once.

    What stands under a condition that is not known is left out: the condition may be there to keep
    the job from it.

    Args:
        program: that may fail.
        kinds: of `Failed`.
        told: paths and lines of which the rule has told already.
    """
    if any(problem.fatal for parsed in program.parsed for problem in parsed.problems):
        return  # The parser of the command line has ended the job before.
    reach = Reach.of(program)
    seen: set[tuple[str, int]] = set()
    for one in program.failures:
        where = one.at.place.path, one.at.place.line
        if one.kind not in kinds or where in seen or reach.severity(one.at) != "error":
            continue
        seen.add(where)
        if where not in told:
            yield one


def failure(failed: Failed, rule: str, category: str, *, message: str, fix: str) -> Finding:
    """A finding about something that surely fails."""
    return finding_at(
        failed.at,
        rule,
        category,
        severity="error",
        message=message,
        consequence=f"{failed.error}: {failed.message}".removesuffix(": "),
        fix=fix,
    )


def at_keyword(program: Program, at: Situation, keyword: str) -> Situation:
    """The circumstances of a call, at the line of one of its keywords, where that is written."""
    module = next((one for one in program.modules.values() if one.path == at.place.path), None)
    for call in code_of(module).of(ast.Call) if module is not None else ():
        if (call.lineno, call.col_offset + 1) == (at.place.line, at.place.column):
            for one in call.keywords:
                if one.arg == keyword and module is not None:
                    return replace(at, place=module.place(one))
    return at
