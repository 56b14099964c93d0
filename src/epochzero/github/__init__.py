"""Comments on pull requests and issues of GitHub: what the jobs would fail of, where the bug may be.

`review` reads the jobs of a pull request's checkout, and runs nothing of it; `review_comment` and
`ranking_comment` write what was found as Markdown, in which no text of others is markup; `publish`
keeps one comment of it. Only `GitHub` talks to a server.
"""

from __future__ import annotations

from epochzero.github.api import GitHub, RefusedError
from epochzero.github.comments import Links, ranking_comment, review_comment
from epochzero.github.events import (
    IssueEvent,
    PullRequestEvent,
    RunEvent,
    read_issue,
    read_pull_request,
    read_run,
)
from epochzero.github.publish import ACCOUNT, PublishResult, publish
from epochzero.github.review import Review, UncheckedJob, review
from epochzero.github.review_file import ReviewFile, handed_json, read_handed

__all__ = [
    "ACCOUNT",
    "GitHub",
    "IssueEvent",
    "Links",
    "PublishResult",
    "PullRequestEvent",
    "RefusedError",
    "Review",
    "ReviewFile",
    "RunEvent",
    "UncheckedJob",
    "handed_json",
    "publish",
    "ranking_comment",
    "read_handed",
    "read_issue",
    "read_pull_request",
    "read_run",
    "review",
    "review_comment",
]
