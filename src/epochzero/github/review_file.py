"""A review as a file, passed from a run that may only read to one that may comment.

Whoever opens a pull request from a fork decides what the first of them runs, and so what is in the file: it is
taken for values of known forms and bounded sizes, is never Markdown, and what it says of where it comes from
is compared with what GitHub says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from epochzero import taxonomy
from epochzero.check import Finding, SourceLocation
from epochzero.errors import InputError
from epochzero.github.review import Review, UncheckedJob

SCHEMA = "epochzero.review/1"
LARGEST_BYTES = 1 << 20
_MOST = 100
"""Findings, jobs, or places on the way to one."""
_LONGEST = 2_000
_RULE = re.compile(r"[a-z0-9-]{1,80}")
_SEVERITIES = ("error", "warning")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """What was passed.

    Attributes:
        number: of the pull request, as the file says.
        jobs: the command lines that were checked.
        findings: as of `Review`.
        not_checked: the other command lines.
        target: name of the platform.
    """

    number: int
    jobs: tuple[str, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[UncheckedJob, ...]
    target: str

    def review(self, changed: Iterable[str]) -> Review:
        """The review.

        Args:
            changed: the files that the pull request changes.
        """
        files = frozenset(changed)
        return Review(
            jobs=self.jobs,
            findings=tuple(
                sorted(self.findings, key=lambda finding: finding.place.path not in files)
            ),
            changed=files,
            not_checked=self.not_checked,
            target=self.target,
        )


def handed_json(number: int, found: Review) -> str:
    """The file's text; of very many findings, the first."""
    value = {
        "schema": SCHEMA,
        "number": number,
        "jobs": found.jobs[:_MOST],
        "findings": [asdict(finding) for finding in found.findings[:_MOST]],
        "not_checked": [asdict(unchecked) for unchecked in found.not_checked[:_MOST]],
        "target": found.target,
    }
    return json.dumps(value)


def read_handed(text: str) -> ReviewFile:
    """What the file holds.

    Raises:
        InputError: it is no such file, or too large.
    """
    try:
        value = json.loads(text) if len(text) <= LARGEST_BYTES else None
    except (ValueError, RecursionError) as error:
        raise InputError(f"the review is not valid JSON: {error}") from error
    fields = _object(value, "it")
    if fields.get("schema") != SCHEMA:
        raise InputError(f"the review does not have the schema {SCHEMA}, or is larger than 1 MB")
    return ReviewFile(
        number=_number(fields, "number", least=1),
        jobs=_list(fields, "jobs", lambda job: _text({"job": job}, "job")),
        findings=_list(fields, "findings", _finding),
        not_checked=_list(fields, "not_checked", _not_checked),
        target=_text(fields, "target"),
    )


def _finding(value: Any) -> Finding:
    fields = _object(value, "a finding")
    rule = _text(fields, "rule")
    if not _RULE.fullmatch(rule):
        raise InputError("the review names an unknown rule")
    return Finding(
        rule=rule,
        severity=_word(fields, "severity", _SEVERITIES),
        category=_word(fields, "category", taxonomy.categories()),
        phase=_word(fields, "phase", taxonomy.phases()),
        place=_place(fields.get("place")),
        message=_text(fields, "message"),
        consequence=_text(fields, "consequence"),
        fix=_text(fields, "fix"),
        via=_list(fields, "via", _place),
    )


def _place(value: Any) -> SourceLocation:
    fields = _object(value, "a place")
    path = _text(fields, "path")
    # A link to it must not lead out of the repository.
    if PurePosixPath(path).is_absolute() or {".", ".."} & {*path.split("/")}:
        raise InputError("the review names a file that does not exist in the repository")
    line, column = (_number(fields, name, least=0) for name in ("line", "column"))
    return SourceLocation(path, line, column, _text(fields, "code"))


def _not_checked(value: Any) -> UncheckedJob:
    fields = _object(value, "a job")
    return UncheckedJob(_text(fields, "job"), _text(fields, "reason"))


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"the review is invalid: {what} is not a JSON object")
    return value


def _list(
    fields: Mapping[str, Any], name: str, read: Callable[[Any], _Value]
) -> tuple[_Value, ...]:
    value = fields.get(name)
    if not isinstance(value, list) or len(value) > _MOST:
        raise InputError(f"the review's {name} is not a list of at most {_MOST} items")
    return tuple(map(read, value))


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise InputError(f"the review's {name} is not a string")
    return value[:_LONGEST].encode("utf-8", "replace").decode()


def _word(fields: Mapping[str, Any], name: str, known: Iterable[str]) -> Any:
    value = fields.get(name)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"the review's {name} is unknown")
    return value


def _number(fields: Mapping[str, Any], name: str, *, least: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
        raise InputError(f"the review's {name} is not a valid number")
    return value
