"""What a check reports: what will go wrong, where and in which phase; and what could not be checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """Where in the code, the configuration or the command line.

    Attributes:
        path: of the file, relative to the folder of the job where it lies in it; ``<command>`` for
            the command line, ``<target>`` for the target.
        line: from 1; 0 where there is none.
        column: from 1; 0 where there is none.
        code: the source line, without the blanks around it.
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
        fix: as of a `Finding`.
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

    def of(self, rule: str, category: str) -> Finding:
        """The finding of a rule of this category."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Finding(**values | {"rule": rule, "category": self.category or category})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that will go wrong, or is likely to.

    Attributes:
        rule: id of the rule that found it.
        severity: ``error`` when the job would fail on the target, ``warning`` when it may, or would
            go on with wrong results.
        category: of the failure that it would be, by the taxonomy.
        phase: in which the job would have failed, by the taxonomy.
        place: where.
        message: what is wrong, with the values that make it so.
        consequence: what would have happened: the error that the job would have ended with.
        fix: what to do.
        via: the calls and imports through which the place is reached, the entry point first.
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


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that could not be checked.

    Attributes:
        what: what was to be checked.
        reason: why it could not be.
        place: where.
    """

    what: str
    reason: str
    place: SourceLocation
