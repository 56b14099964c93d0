"""Converts issues and their fixes to bug reports in the shared format, with a reason for each exclusion."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from epochzero.code import Repository
from epochzero.errors import InputError
from epochzero.study.importing.fixes import Changed, changed_by, fix_record, is_code
from epochzero.study.importing.issues import Issue, read_issues
from epochzero.study.importing.links import Link, links, read_commits

MOST_FILES = 100
"""A commit with more files is not considered the fix of one bug."""
_BUG = re.compile(r"bug|defect|error|crash|regression|broken", re.IGNORECASE)
_NO_BUG = re.compile(
    r"feature|enhancement|question|support|documentation|\bdocs?\b|discussion|duplicate|invalid"
    r"|won'?t[ -]?fix|wontfix|proposal|request|task|refactor|cleanup|chore",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        records: bug reports in the shared format, each with ``link`` (rule, certainty, other commits).
        by_rule: number of links by rule.
        left_out: number of excluded issues by reason.
        shallow: whether the clone lacks older commits.
    """

    records: tuple[Mapping[str, Any], ...]
    by_rule: Mapping[str, int]
    left_out: Mapping[str, int]
    shallow: bool


def import_reports(
    issues: Path,
    clone: Path,
    *,
    project: str = "",
    loose: bool = False,
    on_progress: Callable[[int, int], object] = lambda done, of: None,
) -> Imported:
    """Return bug reports with the commits that fixed them.

    Args:
        issues: an export, see `read_issues`; pull requests allow more links.
        clone: of the repository, with its history.
        project: ``owner/name``; by default taken from a directory named ``owner+name``.
        loose: also link by words and time, with low certainty.
        on_progress: called with the number of finished issues and the total.

    Raises:
        InputError: the export or the clone cannot be read.
    """
    known, left_out = read_issues(issues)
    reasons: Counter[str] = Counter(left_out)
    repository = Repository(clone)
    name = (project or _named(clone)).replace("+", "/", 1)
    found = links(known, read_commits(repository.git), name, loose=loose)
    wanted = [issue for issue in known if not issue.is_pull]
    records, rules = [], Counter[str]()
    for done, issue in enumerate(wanted):
        on_progress(done, len(wanted))
        record, reason = _record(repository, name, issue, found.get(issue.number, ()))
        if record is None:
            reasons[reason] += 1
        else:
            records.append(record)
            rules[record["link"]["rule"]] += 1
    return Imported(tuple(records), dict(rules), dict(reasons), repository.shallow)


def _named(clone: Path) -> str:
    """Return the project of a directory named ``owner+name``, this one or its parent."""
    folder = clone.resolve()
    return next((path.name for path in (folder, folder.parent) if "+" in path.name), "")


def _record(
    repository: Repository, project: str, issue: Issue, found: Sequence[Link]
) -> tuple[dict[str, Any] | None, str]:
    """Return the bug report, or why there is none."""
    reason = _no_bug(issue)
    if reason or not found:
        return None, reason or "no commit is linked to it"
    for link, files, reason in _judged(repository, found):
        if not reason:
            return {
                "id": f"{project.replace('/', '+')}#{issue.number}",
                "project": project.replace("/", "+"),
                "number": issue.number,
                "opened": _time(issue.opened),
                "closed": _time(issue.closed),
                "summary": issue.title,
                "description": issue.body,
                "project_class": [],
                "fix": fix_record(repository, link.commit, files),
                "link": {
                    "rule": link.rule,
                    "certainty": link.certainty,
                    "others": [other.commit.sha for other in found if other is not link],
                },
            }, ""
    return None, reason


def _no_bug(issue: Issue) -> str:
    """Return why an issue is not a fixed bug; empty if it may be one."""
    if issue.closed is None:
        return "it is still open"
    if not issue.is_planned:
        return "it was closed as not planned"
    labels = " ".join(issue.labels)
    if _NO_BUG.search(labels) and not _BUG.search(labels):
        return "labeled as something other than a bug"
    return ""


def _judged(
    repository: Repository, found: Sequence[Link]
) -> Iterator[tuple[Link, list[Changed], str]]:
    """Yield each link with the changes of its commit, and why that is not a fix; empty if it is one."""
    for link in found:
        try:
            files = changed_by(repository, link.commit)
        except InputError:
            yield link, [], "its commit is incomplete in this clone"
            continue
        reason = ""
        if len(files) > MOST_FILES:
            reason = f"its commit changes more than {MOST_FILES} files"
        elif not any(is_code(file.path) for file in files):
            reason = "its commit changes only tests, documentation or data"
        yield link, files, reason


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
