"""One finding for each cause, though several rules, jobs, lines and the dry run report it.

Two rules report one cause if the job would fail in one file with the same error; a general rule gives way to
a specific one. A failure of the dry run confirms the same finding of a rule. Of findings that differ only in
their place, that name modules of one environment, keys of one part of a configuration, or files of one missing
directory, one remains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TypeAlias

from epochzero.check.findings import Finding, SourceLocation
from epochzero.file_access import is_folder

SEEN_TOO = "The dry run found this too."
LEAST_OF_ONE_CAUSE = 3
"""From this number on, the cause of missing modules or removed names is the environment, not each of them."""
MOST_NAMES = 8
_MISSING = re.compile(r"The job imports (\S+), but no installed distribution provides it\.(.*)")
_REMOVED = re.compile(r"(\S+) was removed in (\S+ \S+); the target has (\S+)\.")
_ABSENT = re.compile(r"(.+?) has no ('[^']+') at this position; it has (.*?)\.(?:\s|$)")
_NO_FILE = re.compile(r"FileNotFoundError: No such file or directory: '(/[^']+)'")
_KEY = re.compile(r"KeyError: '(.+)'")
_RAISED = re.compile(r"\b[A-Z]\w*(Error|Exception)\b")


def is_decidable(finding: Finding) -> bool:
    """Whether a failure cannot happen if its line has run once: its kind does not depend on values or on a GPU."""
    return bool(_OF_CODE.match(finding.consequence))


_OF_CODE = re.compile(
    r"(?:NameError|UnboundLocalError|AttributeError|TypeError|ImportError|ModuleNotFoundError"
    r"|FileNotFoundError|NotADirectoryError)\b"
)


def told_once(
    read: Iterable[Finding],
    met: Iterable[Finding],
    general: Collection[str],
    passed: Collection[SourceLocation] = (),
) -> list[Finding]:
    """The findings of a check, each cause once.

    Args:
        read: what rules found in the sources.
        met: what dry runs came upon.
        general: ids of the rules that give way to others.
        passed: lines that dry runs passed: what `is_decidable` there is dropped.
    """
    lines = {(place.path, place.line) for place in passed}
    left = [
        finding
        for finding in read
        if not (is_decidable(finding) and (finding.place.path, finding.place.line) in lines)
    ]
    found = _without_general(_by_place(left), general)
    for finding in _by_place(met):
        at = next((at for at, known in enumerate(found) if _is_met(known, finding)), None)
        if at is None:
            # A general rule only knows that the line raises; the dry run knows what.
            like = [n for n in found if n.rule in general and _near(n.place, finding.place)]
            found = [n for n in found if n not in like]
            found.append(_as_bad_as(finding, like[0]) if like else finding)
        else:
            message = f"{found[at].message.removesuffix('.')}. {SEEN_TOO}"
            found[at] = _as_bad_as(replace(found[at], message=message), finding)
    return found


def _by_place(findings: Iterable[Finding]) -> list[Finding]:
    """Of those that are found by other ways or in other jobs the worst, then the first."""
    found: dict[tuple[str, SourceLocation, str], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.place, finding.message)
        if key not in found or (finding.severity == "error" and found[key].severity != "error"):
            found[key] = finding
    return list(found.values())


def _without_general(findings: Iterable[Finding], general: Collection[str]) -> list[Finding]:
    """Without what a rule that knows more tells, too."""
    found: list[Finding] = []
    special: dict[tuple[str, str], int] = {}
    for finding in sorted(findings, key=lambda f: f.rule in general):
        end = (finding.place.path, finding.consequence)
        if finding.rule not in general:
            special.setdefault(end, len(found))
        elif end in special:
            found[special[end]] = _as_bad_as(found[special[end]], finding)
            continue
        found.append(finding)
    return found


def _is_met(read: Finding, met: Finding) -> bool:
    """Whether a dry run came upon what was read: there or on the way, or it ended with its words."""
    is_silent = read.severity != "error" and not _RAISED.search(read.consequence)
    if read.category != met.category or (is_silent and _RAISED.search(met.consequence)):
        return False
    key = _KEY.fullmatch(read.consequence)
    if key and met.consequence.startswith("KeyError") and key[1] not in met.consequence:
        return False
    # A message that names nothing, such as AssertionError, is that of many failures.
    named = ": " in met.consequence and read.consequence == met.consequence
    return named or any(_near(read.place, place) for place in (met.place, *met.via))


def _near(first: SourceLocation, second: SourceLocation) -> bool:
    return first.path == second.path and abs(first.line - second.line) <= 1


def _as_bad_as(first: Finding, second: Finding) -> Finding:
    return replace(first, severity="error") if second.severity == "error" else first


# -- Several places ----------------------------------------------------------------------------


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each cause; the places of the others are its `Finding.also`.

    Args:
        findings: in order; of those with one cause, the first remains.
    """
    claims = [_first_of(group) for group in _groups(findings, _claim).values()]
    found: list[Finding] = []
    for cause, group in _groups(claims, _cause).items():
        few = cause[0] in (_MODULES, _RELEASE) and len(group) < LEAST_OF_ONE_CAUSE
        found += group if few else [_summary(cause, _first_of(group), group)]
    order = {finding.place: number for number, finding in enumerate(found)}
    return sorted(found, key=lambda f: (f.severity != "error", order[f.place]))


_Key: TypeAlias = tuple[str, ...]


def _groups(
    findings: Iterable[Finding], key: Callable[[Finding], _Key]
) -> dict[_Key, list[Finding]]:
    groups: dict[_Key, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return groups


def _first_of(group: Sequence[Finding]) -> Finding:
    first, *others = group
    also = (place for other in others for place in (other.place, *other.also))
    return replace(first, also=tuple(dict.fromkeys((*first.also, *also))))


def _claim(finding: Finding) -> _Key:
    return finding.rule, finding.message, finding.consequence


_MODULES, _DIRECTORY, _RELEASE, _PART = "modules", "directory", "release", "part"


def _cause(finding: Finding) -> _Key:
    if missing := _MISSING.fullmatch(finding.message):
        return _MODULES, finding.severity, missing[2]
    if finding.rule == "path-not-found" and (path := _NO_FILE.fullmatch(finding.consequence)):
        return _DIRECTORY, finding.severity, _first_missing(PurePath(path[1]))
    if absent := _ABSENT.match(finding.message):
        return _PART, finding.severity, absent[1], absent[3]
    if removed := _REMOVED.fullmatch(finding.message):
        return _RELEASE, finding.severity, removed[2], removed[3]
    return _claim(finding)


def _first_missing(path: PurePath) -> str:
    """The outermost directory on the way to a path that does not exist here; the path itself if there is none."""
    above = reversed(path.parents)
    return str(next((folder for folder in above if not is_folder(str(folder))), path))


def _summary(cause: _Key, first: Finding, group: Sequence[Finding]) -> Finding:
    """The first finding of a group, with what all of them have in common."""
    if len(group) == 1:
        return first
    if cause[0] == _DIRECTORY:
        many = f"The job reads {len(group)} paths in {cause[2]}, which does not exist."
        return replace(first, message=f"{first.message} {many}")
    if cause[0] == _MODULES:
        return replace(
            first,
            message=f"The job imports {_named(group, _MISSING, 'modules')} that no installed "
            f"distribution provides.{cause[2] or ' Its environment is not installed there.'}",
            fix="Install the requirements of the project on the target, or choose the environment that has them.",
        )
    if cause[0] == _PART:
        names = [match[2] for other in group[1:] if (match := _ABSENT.match(other.message))]
        return replace(first, message=f"{first.message} Missing there too: {', '.join(names)}.")
    return replace(
        first,
        message=f"The job uses {_named(group, _REMOVED, 'names')} that were removed in {cause[2]}; the "
        f"target has {cause[3]}. It was written for an older release.",
        fix=f"Install {cause[2].replace(' ', '<')}, or port the job to the target's release.",
    )


def _named(group: Sequence[Finding], pattern: re.Pattern[str], what: str) -> str:
    names = [match[1] for finding in group if (match := pattern.fullmatch(finding.message))]
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return f"{len(names)} {what} ({shown})"
