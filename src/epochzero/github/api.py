"""GitHub's REST API, as far as comments and the files of a pull request need it.

Source: GitHub's documentation, "REST API endpoints for issue comments", "Get a pull request", "List pull
requests files", "Rate limits for the REST API", "Best practices for using the REST API".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from epochzero.errors import InputError
from epochzero.http_client import NoResponseError, Response, request

PUBLIC_API = "https://api.github.com"
_TIMEOUT_S = 30.0
_PAUSES_S = (1.0, 2.0, 4.0)
"""Between tries, where GitHub does not say how long to wait."""
_LONGEST_PAUSE_S = 90.0
_PER_PAGE = 100
_MOST_PAGES = 30
"""GitHub lists no more than 3,000 files of a pull request."""


class RefusedError(InputError):
    """GitHub does not do what was asked; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class UnsureError(InputError):
    """Whether GitHub did what was asked is not known."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on an issue or a pull request.

    Attributes:
        id: of the comment.
        account: who wrote it.
        body: its Markdown.
        url: where it is shown.
    """

    id: int
    account: str
    body: str
    url: str


@dataclass(frozen=True, slots=True)
class Head:
    """What a pull request wants to bring in.

    Attributes:
        repository: that it comes from, as ``owner/name``; empty where it is gone.
        commit: its last one.
        open: whether the pull request is.
    """

    repository: str
    commit: str
    open: bool


class GitHub:
    """Asks GitHub about one repository.

    What fails on the server's side, and what comes too often for it, is asked again a few times.

    Args:
        repository: as ``owner/name``.
        token: empty to read what is public.
        url: of the API.
    """

    def __init__(self, repository: str, token: str = "", url: str = PUBLIC_API) -> None:
        self.repository = repository
        self._url = f"{url.rstrip('/')}/repos/{repository}"
        self._host = urlsplit(url).hostname
        self._headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def changed_files(self, number: int) -> list[str]:
        """The paths that a pull request adds or changes; not those that it removes.

        Raises:
            InputError: GitHub refuses or does not answer.
        """
        files = self._listed(f"/pulls/{number}/files")
        return [str(file.get("filename")) for file in files if file.get("status") != "removed"]

    def head(self, number: int) -> Head:
        """What a pull request of this repository wants to bring in, as it is now.

        Raises:
            InputError: GitHub refuses or does not answer; there is no such pull request.
        """
        path = f"/pulls/{number}"
        pull = self._ask("GET", path)
        head = pull.get("head") if isinstance(pull, dict) else None
        if not isinstance(head, dict):
            raise InputError(f"{self._host} returned an invalid pull request for {path}")
        repository = head.get("repo")
        name = repository.get("full_name") if isinstance(repository, dict) else ""
        return Head(str(name), str(head.get("sha")), pull.get("state") == "open")

    def comments(self, number: int) -> Iterator[Comment]:
        """The comments on an issue or a pull request, the oldest first; at most the first 3,000.

        Raises:
            InputError: GitHub refuses or does not answer.
        """
        return map(_comment, self._listed(f"/issues/{number}/comments"))

    def post(self, number: int, body: str) -> Comment:
        """A new comment.

        Raises:
            UnsureError: it may be there or not.
            InputError: GitHub refuses or does not answer.
        """
        return _comment(self._ask("POST", f"/issues/{number}/comments", {"body": body}))

    def edit(self, comment: Comment, body: str) -> Comment:
        """The comment with another text.

        Raises:
            InputError: GitHub refuses or does not answer.
        """
        return _comment(self._ask("PATCH", f"/issues/comments/{comment.id}", {"body": body}))

    def delete(self, comment: Comment) -> None:
        """Takes a comment away.

        Raises:
            InputError: GitHub refuses or does not answer.
        """
        self._ask("DELETE", f"/issues/comments/{comment.id}")

    def _listed(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Each object of a list that comes in pages."""
        for page in range(1, _MOST_PAGES + 1):
            found = self._ask("GET", path, query={"per_page": _PER_PAGE, "page": page})
            if not isinstance(found, list):
                raise InputError(f"{self._host} returned an invalid list for {path}")
            yield from (value for value in found if isinstance(value, dict))
            if len(found) < _PER_PAGE:
                return

    def _ask(
        self,
        method: str,
        path: str,
        value: Mapping[str, Any] | None = None,
        query: Mapping[str, int] | None = None,
    ) -> Any:
        data = None if value is None else json.dumps(value).encode()
        asked = f"{path}?{urlencode(query)}" if query else path
        for usual in (*_PAUSES_S, None):
            answer = self._answer(method, asked, data)
            if answer.succeeded:
                return self._json(answer)
            pause = None if usual is None else _pause(answer, method, usual)
            if pause is None or pause > _LONGEST_PAUSE_S:
                break
            time.sleep(pause)
        message = f"{self._host} returned {answer.status} for {method} {path}: {_message(answer)}"
        if method == "POST" and answer.status >= 500:
            raise UnsureError(message)
        if _is_limited(answer):
            raise InputError(f"{message}; try again later")
        raise RefusedError(message, answer.status)

    def _answer(self, method: str, path: str, data: bytes | None) -> Response:
        headers = (
            self._headers if data is None else {**self._headers, "Content-Type": "application/json"}
        )
        for pause in (*_PAUSES_S, None):
            try:
                return request(method, self._url + path, data, headers=headers, timeout=_TIMEOUT_S)
            except NoResponseError as error:
                if error.sent or pause is None:
                    raise UnsureError(f"{self._host} does not respond: {error}") from error
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _json(self, answer: Response) -> Any:
        try:
            return answer.json() if answer.content else None
        except ValueError as error:
            raise UnsureError(f"{self._host} returned invalid JSON: {error}") from error


def _comment(value: Any) -> Comment:
    value = value if isinstance(value, dict) else {}
    user = value.get("user")
    try:
        return Comment(
            id=int(value["id"]),
            account=str(user.get("login")) if isinstance(user, dict) else "",
            body=str(value.get("body") or ""),
            url=str(value.get("html_url") or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnsureError(f"GitHub returned an invalid comment: {error!r}") from error


def _is_limited(answer: Response) -> bool:
    """Whether GitHub was asked too often."""
    headers = answer.headers
    message = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    return answer.status == 429 or (answer.status == 403 and message)


def _pause(answer: Response, method: str, usual: float) -> float | None:
    """Seconds until a request may succeed; None where it will not, or may have done so already."""
    limited = _is_limited(answer)
    if not limited and (answer.status < 500 or method == "POST"):
        return None
    try:
        if "retry-after" in answer.headers:
            return max(0.0, float(answer.headers["retry-after"]))
        if limited and "x-ratelimit-reset" in answer.headers:
            return max(0.0, float(answer.headers["x-ratelimit-reset"]) - time.time())
    except ValueError:
        pass
    return usual


def _message(answer: Response) -> str:
    """Why, in a line."""
    try:
        message = answer.json()["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.reason
    return " ".join(str(message).split())[:200]
