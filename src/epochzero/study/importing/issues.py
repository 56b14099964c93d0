"""Issues and pull requests, as exported by GitHub's API or command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochzero.errors import InputError, reading
from epochzero.locate.report import seconds

_PULL_KEYS = (
    "pull_request",
    "mergedAt",
    "merged_at",
    "mergeCommit",
    "merge_commit_sha",
    "headRefName",
)


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue or a pull request.

    Attributes:
        number: in its tracker.
        title, body: its text.
        opened, closed: in seconds since the epoch; None if unknown or still open.
        labels: their names.
        is_pull: whether it is a pull request.
        is_planned: False if it was closed as not planned.
        merged: commit by which a pull request was merged; empty if unknown.
    """

    number: int
    title: str
    body: str
    opened: float | None
    closed: float | None
    labels: tuple[str, ...] = ()
    is_pull: bool = False
    is_planned: bool = True
    merged: str = ""


def read_issues(path: Path) -> tuple[list[Issue], dict[str, int]]:
    """Read the issues of a file; return them and the number of excluded entries by reason.

    Args:
        path: a JSON array, an array of pages, or one JSON object per line.

    Raises:
        InputError: the file cannot be read, or contains no issues.
    """
    with reading(path):
        text = path.read_text("utf-8-sig", errors="replace")
    issues: dict[int, Issue] = {}
    left_out: dict[str, int] = {}
    for entry in _entries(text, path):
        issue = _issue(entry) if isinstance(entry, Mapping) else None
        reason = "no number or no title" if issue is None else ""
        if issue is not None and issue.number in issues:
            reason = "a duplicate number"
        if reason or issue is None:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            issues[issue.number] = issue
    if not issues:
        raise InputError(f"{path} contains no issues; expected the output of `gh issue list --json` or of GitHub's REST API, "
"with number, title, body, createdAt and closedAt")  # fmt: skip
    return list(issues.values()), left_out


def _entries(text: str, path: Path) -> Iterator[Any]:
    if text.lstrip().startswith("["):
        try:
            yield from _flat(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: invalid JSON: {error}") from error
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}: line {number}: invalid JSON: {error}") from error


def _flat(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield the entries of all pages."""
    for entry in entries:
        if isinstance(entry, list):
            yield from entry
        else:
            yield entry


def _issue(raw: Mapping[str, Any]) -> Issue | None:
    number, title = raw.get("number"), raw.get("title", raw.get("summary"))
    if not isinstance(number, int) or not isinstance(title, str) or not title.strip():
        return None
    return Issue(
        number,
        title,
        _text(raw, "body", "description"),
        seconds(_text(raw, "created_at", "createdAt", "opened")),
        seconds(_text(raw, "closed_at", "closedAt", "closed")),
        _labels(raw.get("labels")),
        any(raw.get(key) is not None for key in _PULL_KEYS),
        _text(raw, "state_reason", "stateReason").lower() != "not_planned",
        _merged(raw),
    )


def _text(raw: Mapping[str, Any], *keys: str) -> str:
    return next((raw[key] for key in keys if isinstance(raw.get(key), str)), "")


def _labels(raw: Any) -> tuple[str, ...]:
    given: Sequence[Any] = raw if isinstance(raw, list) else ()
    names = [value.get("name") if isinstance(value, Mapping) else value for value in given]
    return tuple(name for name in names if isinstance(name, str))


def _merged(raw: Mapping[str, Any]) -> str:
    """Return the merge commit; an unmerged pull request has a trial merge that is not in the history."""
    commit = raw.get("mergeCommit")
    if isinstance(commit, Mapping):
        return _text(commit, "oid")
    return _text(raw, "merge_commit_sha") if raw.get("merged_at") else ""
