"""What a workflow was started by (GitHub's documentation, "Webhook events and payloads").

An issue's text and the names of a fork are written by anybody; they are data here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochzero.errors import InputError
from epochzero.locate import Report, read_report

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PullRequestEvent:
    """A pull request was opened or changed.

    Attributes:
        repository: that it wants to change, as ``owner/name``.
        number: of the pull request.
        commit: its last one.
    """

    repository: str
    number: int
    commit: str


@dataclass(frozen=True, slots=True)
class IssueEvent:
    """An issue was opened or edited.

    Attributes:
        repository: as ``owner/name``.
        number: of the issue.
        report: what it says.
    """

    repository: str
    number: int
    report: Report


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A workflow that a pull request started has ended.

    Attributes:
        repository: as ``owner/name``.
        head_repository: that the pull request comes from; empty where it is gone.
        commit: its last one, when the workflow was started.
    """

    repository: str
    head_repository: str
    commit: str


def read_pull_request(text: str) -> PullRequestEvent:
    """The event ``pull_request`` from its JSON.

    Raises:
        InputError: it is no such event.
    """
    event = _event(text)
    pull = _object(event, "pull_request")
    commit = _commit(_object(pull, "head").get("sha"), "pull_request.head.sha")
    return PullRequestEvent(_repository(event), _number(pull, "pull_request"), commit)


def read_issue(text: str) -> IssueEvent:
    """The event ``issues`` from its JSON.

    Raises:
        InputError: it is no such event, or the issue is empty.
    """
    event = _event(text)
    issue = _object(event, "issue")
    said = {name: issue.get(name) for name in ("title", "body", "number", "created_at")}
    report = read_report(json.dumps(said))
    return IssueEvent(_repository(event), _number(issue, "issue"), report)


def read_run(text: str) -> RunEvent:
    """The event ``workflow_run`` from its JSON.

    Raises:
        InputError: it is no such event, or no pull request started the run.
    """
    event = _event(text)
    run = _object(event, "workflow_run")
    if run.get("event") != "pull_request":
        raise InputError(
            "the workflow run was not started by a pull request; there is nothing to comment on"
        )
    head = run.get("head_repository")
    name = head.get("full_name") if isinstance(head, dict) else ""
    return RunEvent(
        repository=_repository(event),
        head_repository=name if isinstance(name, str) else "",
        commit=_commit(run.get("head_sha"), "workflow_run.head_sha"),
    )


def _commit(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _COMMIT.fullmatch(value):
        raise InputError(f"the event's {name} is not a commit")
    return value


def _event(text: str) -> Mapping[str, Any]:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the event is not valid JSON: {error}") from error
    if not isinstance(event, dict):
        raise InputError("the event is not a JSON object")
    return event


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    if not isinstance(found, dict):
        raise InputError(f"the event has no {name}; is it the right event type?")
    return found


def _repository(event: Mapping[str, Any]) -> str:
    found = event.get("repository")
    name = found.get("full_name") if isinstance(found, dict) else None
    if not isinstance(name, str) or not _REPOSITORY.fullmatch(name):
        raise InputError("the event's repository.full_name is not of the form owner/name")
    return name


def _number(value: Mapping[str, Any], name: str) -> int:
    number = value.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"the event's {name}.number is not a number")
    return number
