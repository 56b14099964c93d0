"""One finding of each cause, though several rules, several jobs and the dry run tell of it.

Two rules tell of one cause when the job would end in one file with the same words; a rule that says
itself to be general gives way to one that knows more. What a dry run met confirms what was read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from epochzero.check.findings import Finding, SourceLocation

SEEN_TOO = "The dry run found it too."


def told_once(
    read: Iterable[Finding], met: Iterable[Finding], general: Collection[str]
) -> list[Finding]:
    """The findings of a check, each cause once.

    Args:
        read: what rules found in the sources.
        met: what dry runs came upon.
        general: ids of the rules that give way to others.
    """
    found = _without_general(_by_place(read), general)
    for one in _by_place(met):
        at = next((at for at, known in enumerate(found) if _is_met(known, one)), None)
        if at is None:
            found.append(one)
        else:
            message = f"{found[at].message.removesuffix('.')}. {SEEN_TOO}"
            found[at] = _as_bad_as(replace(found[at], message=message), one)
    return found


def _by_place(findings: Iterable[Finding]) -> list[Finding]:
    """Of those that are found by other ways or in other jobs the worst, then the first."""
    found: dict[tuple[str, SourceLocation, str], Finding] = {}
    for one in findings:
        key = (one.rule, one.place, one.message)
        if key not in found or (one.severity == "error" and found[key].severity != "error"):
            found[key] = one
    return list(found.values())


def _without_general(findings: Iterable[Finding], general: Collection[str]) -> list[Finding]:
    """Without what a rule that knows more tells, too."""
    found: list[Finding] = []
    special: dict[tuple[str, str], int] = {}
    for one in sorted(findings, key=lambda one: one.rule in general):
        end = (one.place.path, one.consequence)
        if one.rule not in general:
            special.setdefault(end, len(found))
        elif end in special:
            found[special[end]] = _as_bad_as(found[special[end]], one)
            continue
        found.append(one)
    return found


def _is_met(read: Finding, met: Finding) -> bool:
    """Whether a dry run came upon what was read: there or on the way, or it ended with its words."""
    if read.category != met.category:
        return False
    # A message that names nothing, such as AssertionError, is that of many failures.
    named = ": " in met.consequence and read.consequence == met.consequence
    return named or any(_near(read.place, place) for place in (met.place, *met.via))


def _near(one: SourceLocation, other: SourceLocation) -> bool:
    return one.path == other.path and abs(one.line - other.line) <= 1


def _as_bad_as(one: Finding, other: Finding) -> Finding:
    return replace(one, severity="error") if other.severity == "error" else one
