"""A review as a file: what goes in comes out, and nothing that a stranger writes becomes more than text."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check import Finding, SourceLocation
from epochzero.errors import InputError
from epochzero.github import (
    Links,
    Review,
    UncheckedJob,
    handed_json,
    read_handed,
    read_run,
    review_comment,
)
from tests.forge import COMMIT, FORK, REPOSITORY, pull_request_event, run_event

LINKS = Links(REPOSITORY, COMMIT)
FINDING = Finding(
    rule="format-arguments",
    severity="error",
    category="type_mismatch",
    phase="training",
    place=SourceLocation("train.py", 41, 5, 'print("%d")'),
    message="The format asks for 2 values",
    consequence="TypeError",
    fix="Give as many",
    via=(SourceLocation("<command>"), SourceLocation("run.py", 3)),
)
REVIEW = Review(
    jobs=("python train.py",),
    findings=(FINDING, replace(FINDING, severity="warning", place=SourceLocation("other.py", 1))),
    changed=frozenset({"train.py"}),
    not_checked=(UncheckedJob("python x.py", "no such file"),),
    target="cluster",
)


def test_what_is_handed_over_is_what_was_found() -> None:
    handed = read_handed(handed_json(7, REVIEW))
    assert handed.number == 7
    assert handed.review(["train.py"]) == REVIEW


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(handed_json(7, REVIEW)), **values})


def with_finding(**values: Any) -> str:
    (first, _) = json.loads(handed_json(7, REVIEW))["findings"]
    return changed(findings=[{**first, **values}])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a JSON object"),
        (changed(schema="epochzero.review/0"), "does not have the schema"),
        (changed(target="x" * (1 << 20)), "not a JSON object"),
        (changed(number="7"), "number"),
        (changed(number=True), "number"),
        (changed(number=0), "number"),
        (changed(jobs=["python x.py"] * 101), "list of at most"),
        (changed(jobs=[None]), "not a string"),
        (with_finding(rule="a](https://example.org)"), "rule"),
        (with_finding(severity="**error**"), "severity"),
        (with_finding(category="none"), "category"),
        (with_finding(phase=[]), "phase"),
        (with_finding(place={"path": "../../../other/x", "line": 1, "column": 1, "code": ""}), "does not exist in"),
        (with_finding(place={"path": "/etc/passwd", "line": 1, "column": 1, "code": ""}), "does not exist in"),
        (with_finding(place={"path": "x", "line": -1, "column": 1, "code": ""}), "line"),
    ],
)  # fmt: skip
def test_what_is_no_review_is_told(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_handed(text)


def test_what_a_stranger_writes_is_shown_as_text() -> None:
    said = "<img src=x> @team #1 [here](https://example.org) `x` ghp_" + "a1B2" * 9
    place = {"path": "a b/`@team`?.py", "line": 1, "column": 1, "code": said}
    handed = read_handed(
        with_finding(message=said, fix=said * 50, consequence="\ud800", place=place)
    )
    body = review_comment(handed.review([]), LINKS)
    told = [line for line in body.splitlines() if line.startswith(("  - Problem", "  - Fix"))]
    assert len(told) == 2
    assert not any(
        sign in line for line in told for sign in ("<img", "@team", "#1", "[here](", "://")
    )
    assert "ghp_" + "a1B2" * 9 not in body
    assert f"https://github.com/{REPOSITORY}/blob/{COMMIT}/a%20b/%60%40team%60%3F.py#L1" in body
    assert len(body) < 5_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(["number", "jobs", "findings", "not_checked", "target"])
OF_FINDING = st.sampled_from([*json.loads(handed_json(7, REVIEW))["findings"][0]])


@given(st.dictionaries(FIELDS, VALUES), st.dictionaries(OF_FINDING, VALUES))
def test_any_file_is_a_review_or_is_told(values: dict[str, Any], finding: dict[str, Any]) -> None:
    for text in (changed(**values), with_finding(**finding)):
        with suppress(InputError):
            assert len(review_comment(read_handed(text).review([]), LINKS)) < 60_000


def test_the_end_of_a_run() -> None:
    found = read_run(json.dumps(run_event()))
    assert (found.repository, found.head_repository, found.commit) == (REPOSITORY, FORK, COMMIT)
    assert read_run(json.dumps(run_event(head_repository=None))).head_repository == ""


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (pull_request_event(), "has no workflow_run"),
        (run_event(event="push"), "not started by a pull request"),
        (run_event(head_sha="main"), "is not a commit"),
    ],
)
def test_what_is_no_end_of_a_run_is_told(event: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_run(json.dumps(event))
