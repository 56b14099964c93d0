"""One comment, wherever it is needed, that says what is true now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epochzero.github.api import Comment, GitHub, UnsureError

ACCOUNT = "github-actions[bot]"
"""Who comments with the token of a workflow."""
_MOST_TRIES = 3
_HIDDEN = "[redacted]"

Kind = Literal["check", "locate"]
Act = Literal["posted", "updated", "unchanged", "not needed"]


@dataclass(frozen=True, slots=True)
class PublishResult:
    """What became of a comment.

    Attributes:
        act: what was done.
        url: where it is shown; empty where there is none.
    """

    act: Act
    url: str = ""


def publish(
    github: GitHub,
    number: int,
    body: str,
    *,
    kind: Kind,
    needed: bool,
    account: str = ACCOUNT,
    secret: str = "",
) -> PublishResult:
    """Posts a comment, or brings the one of an earlier run up to date.

    A comment of an earlier run is known by a mark that is not shown, and by its author: anybody can
    write the mark.

    Args:
        github: the repository.
        number: of the issue or pull request.
        body: Markdown.
        kind: of what the comment tells; there is one of each.
        needed: whether to post where there is no comment yet.
        account: who writes.
        secret: a text that must not be published, such as the token.

    Raises:
        InputError: GitHub refuses or does not answer.
    """
    mark = f"<!-- epochzero:{kind} -->"
    text = f"{mark}\n{body}"
    if secret:
        text = text.replace(secret, _HIDDEN)
    for _ in range(_MOST_TRIES):
        own = [
            comment
            for comment in github.comments(number)
            if comment.account == account and comment.body.startswith(mark)
        ]
        if own:
            return _brought_up_to_date(github, own, text)
        if not needed:
            return PublishResult("not needed")
        try:
            return PublishResult("posted", github.post(number, text).url)
        except UnsureError as error:
            # It may be there: to look is better than to post twice.
            unsure = error
    raise unsure


def _brought_up_to_date(github: GitHub, own: list[Comment], text: str) -> PublishResult:
    first, *others = own
    for other in others:  # Of two runs at once.
        github.delete(other)
    # A browser may have sent other ends of lines, and GitHub takes blanks away from the end.
    if "\n".join(first.body.split("\r\n")).rstrip() == text.rstrip():
        return PublishResult("unchanged", first.url)
    return PublishResult("updated", github.edit(first, text).url)
