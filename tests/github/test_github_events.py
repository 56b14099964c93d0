"""Events, recorded by GitHub's schema, and what is none."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.errors import InputError
from epochzero.github import IssueEvent, PullRequestEvent, read_issue, read_pull_request
from tests.forge import COMMIT, REPOSITORY, issue_event, pull_request_event

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
PARTS = ("pull_request", "issue", "repository", "action")


def test_a_pull_request() -> None:
    found = read_pull_request(json.dumps(pull_request_event(12)))
    assert found == PullRequestEvent(REPOSITORY, 12, COMMIT)


def test_an_issue_with_and_without_a_text() -> None:
    found = read_issue(json.dumps(issue_event("It fails", "at `train.py`")))
    assert (found.repository, found.number) == (REPOSITORY, 9)
    assert (found.report.title, found.report.text) == ("It fails", "at `train.py`")
    assert found.report.opened == 1893456000.0
    assert read_issue(json.dumps(issue_event("It fails", None))).report.text == ""


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("", "not valid JSON"),
        ("[]", "not a JSON object"),
        (json.dumps(issue_event("a", "b")), "has no pull_request"),
        (json.dumps(pull_request_event(repository={"full_name": "../../user"})), "owner/name"),
        (json.dumps(pull_request_event(pull_request={"head": {"sha": "main"}})), "is not a commit"),
        (json.dumps(pull_request_event(0)), "is not a number"),
    ],
)
def test_what_is_no_pull_request_is_told(event: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_pull_request(event)


def test_an_empty_issue_is_told() -> None:
    with pytest.raises(InputError, match="empty"):
        read_issue(json.dumps(issue_event(" ", None)))


@given(st.dictionaries(st.sampled_from(PARTS), VALUES), st.sampled_from(PARTS), VALUES)
def test_any_event_is_read_or_told(event: dict[str, object], part: str, value: object) -> None:
    for base in (event, pull_request_event(), issue_event("a", "b")):
        text = json.dumps({**base, part: value})
        for read in (read_pull_request, read_issue):
            with suppress(InputError):
                assert isinstance(read(text), PullRequestEvent | IssueEvent)
