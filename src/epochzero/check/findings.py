"""The results of a check: predicted failures with location and phase, and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A location in the code, the configuration or the command line.

    Attributes:
        path: of the file, relative to the job's directory if it is inside; ``<command>`` for the command line, ``<target>``
            for the target.
        line: from 1; 0 if there is none.
        column: from 1; 0 if there is none.
        code: the source line, without surrounding blanks.
    """

    path: str
    line: int = 0
    column: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rule reports; the engine adds the rule's id and makes it a `Finding`.

    Attributes:
        severity: as of a `Finding`.
        phase: as of a `Finding`.
        place: as of a `Finding`.
        message: as of a `Finding`.
        consequence: as of a `Finding`.
        fix: as of a `Finding`; empty if it is the rule's.
        via: as of a `Finding`.
        category: where it is not the rule's own.
    """

    severity: Severity
    phase: str
    place: SourceLocation
    message: str
    consequence: str
    fix: str
    via: tuple[SourceLocation, ...] = ()
    category: str = ""

    def of(self, rule: str, category: str, fix: str) -> Finding:
        """The finding of a rule with this category and fix."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Finding(
            **values | {"rule": rule, "category": self.category or category, "fix": self.fix or fix}
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure that will happen, or is likely.

    Attributes:
        rule: id of the rule that found it.
        severity: ``error`` if the job would fail on the target, ``warning`` if it may fail, or would continue with wrong
            results.
        category: of the failure, by the taxonomy.
        phase: in which the job would fail, by the taxonomy.
        place: location.
        message: what is wrong, with the values that cause it.
        consequence: what would happen: the error of the job.
        fix: what to do.
        via: the calls and imports that lead to the location, the entry point first.
        also: other places with the same cause.
    """

    rule: str
    severity: Severity
    category: str
    phase: str
    place: SourceLocation
    message: str
    consequence: str
    fix: str
    via: tuple[SourceLocation, ...] = ()
    also: tuple[SourceLocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that could not be checked.

    Attributes:
        what: what was to be checked.
        reason: why it could not be.
        place: location.
    """

    what: str
    reason: str
    place: SourceLocation
