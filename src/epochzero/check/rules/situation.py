"""What rules need of the circumstances of an event: findings at it, and guards around it."""

from __future__ import annotations

from epochzero.check.findings import Finding, Severity
from epochzero.check.program.events import Situation

__all__ = ["finding_at", "guarded"]


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
