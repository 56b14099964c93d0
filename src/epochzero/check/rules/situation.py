"""What rules need of the circumstances of an event: findings at it, and guards around it."""

from __future__ import annotations

import ast
from dataclasses import replace

from epochzero.check.code import code_of
from epochzero.check.findings import Finding, Severity
from epochzero.check.program.events import Situation
from epochzero.check.program.model import Program

__all__ = ["at_keyword", "finding_at", "guarded"]


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
    """A finding about an event: an error when the event is certain, unless a severity is given."""
    return Finding(
        rule=rule,
        severity=severity or ("error" if at.certain else "warning"),
        category=category,
        phase=at.phase,
        place=at.place,
        message=message,
        consequence=consequence,
        fix=fix,
        via=at.via,
    )


def guarded(at: Situation, *exceptions: type[BaseException]) -> bool:
    """Whether one of the exceptions, or a class above it, is caught around the event."""
    above = {parent.__name__ for one in exceptions for parent in one.__mro__}
    # OSError has older names, and a handler may be written with its module.
    above |= {"IOError", "EnvironmentError"} if "OSError" in above else set()
    return any(name.rpartition(".")[2] in above for name in at.handled)


def at_keyword(program: Program, at: Situation, keyword: str) -> Situation:
    """The circumstances of a call, at the line of one of its keywords, where that is written."""
    module = next((one for one in program.modules.values() if one.path == at.place.path), None)
    for call in code_of(module).of(ast.Call) if module is not None else ():
        if (call.lineno, call.col_offset + 1) == (at.place.line, at.place.column):
            for one in call.keywords:
                if one.arg == keyword and module is not None:
                    return replace(at, place=module.place(one))
    return at
