"""A server that answers as GitHub's REST API does, as far as comments and the files of pull requests go.

By GitHub's documentation: "REST API endpoints for issue comments", "Get a pull request", "List pull requests
files", "Rate limits for the REST API".
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "team/project"
FORK = "somebody/project"
COMMIT = "3f1c9a04be" * 4
TOKEN = "ghs_" + "A1b2C3d4E5f6" * 3
BOT = "github-actions[bot]"
LONGEST_BODY = 65_536


@dataclass
class Forge:
    """What the server knows, and what it was asked.

    Attributes:
        files: of pull requests, by number: objects with ``filename`` and ``status``.
        comments: of issues and pull requests, by number.
        pulls: pull requests, by number.
        read_only: whether the token may not write, as that of a pull request from a fork.
        troubles: what is answered instead, in turn: a status, headers, and whether the request was
            carried out nevertheless; None for the usual answer.
        asked: each request's method and path.
    """

    files: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    read_only: bool = False
    troubles: deque[tuple[int, dict[str, str], bool] | None] = field(default_factory=deque)
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> Forge:
        forge = self

        class Handler(_Handler):
            known = forge

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def bodies(self, number: int) -> list[str]:
        """The comments of an issue."""
        return [one["body"] for one in self.comments.get(number, [])]

    def add(self, number: int, body: str, login: str = BOT) -> dict[str, Any]:
        """A comment that somebody writes."""
        identity = 1 + sum(map(len, self.comments.values())) + len(self.asked)
        comment = {
            "id": identity,
            "body": body,
            "user": {"login": login, "type": "Bot" if login == BOT else "User"},
            "html_url": f"https://github.com/{REPOSITORY}/issues/{number}#issuecomment-{identity}",
        }
        self.comments.setdefault(number, []).append(comment)
        return comment

    def acted(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        """What a request is answered: a status and a value."""
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/pulls/(\d+)/files", path):
            return 200, _page(self.files[int(found[1])], query)
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/pulls/(\d+)", path):
            pull = self.pulls.get(int(found[1]))
            return (200, pull) if pull else (404, {"message": "Not Found"})
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/issues/(\d+)/comments", path):
            if method == "GET":
                return 200, _page(self.comments.get(int(found[1]), []), query)
            return self._written(lambda: (201, self.add(int(found[1]), body["body"])), body)
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/issues/comments/(\d+)", path):
            return self._written(lambda: self._changed(int(found[1]), method, body), body)
        return 404, {"message": "Not Found"}

    def _written(self, act: Any, body: Any) -> Any:
        if self.read_only:
            return 403, {"message": "Resource not accessible by integration"}
        if body is not None and not 0 < len(body["body"]) <= LONGEST_BODY:
            return 422, {"message": "Validation Failed"}
        return act()

    def _changed(self, identity: int, method: str, body: Any) -> Any:
        for comments in self.comments.values():
            for one in comments:
                if one["id"] == identity and method == "DELETE":
                    comments.remove(one)
                    return 204, None
                if one["id"] == identity:
                    one["body"] = body["body"]
                    return 200, one
        return 404, {"message": "Not Found"}


def _page(values: list[Any], query: dict[str, list[str]]) -> list[Any]:
    size, page = (int(query.get(name, ["30"])[0]) for name in ("per_page", "page"))
    return values[(page - 1) * size : page * size]


class _Handler(BaseHTTPRequestHandler):
    known: Forge
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        parts = urlsplit(self.path)
        self.known.asked.append((self.command, parts.path))
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size)) if size else None
        trouble = self.known.troubles.popleft() if self.known.troubles else None
        if trouble is not None:
            status, headers, done = trouble
            if done:
                self.known.acted(self.command, parts.path, parse_qs(parts.query), body)
            self._answer(status, {"message": "trouble"}, headers)
        elif self.headers.get("Authorization") not in (None, f"Bearer {TOKEN}"):
            self._answer(401, {"message": "Bad credentials"}, {})
        else:
            self._answer(
                *self.known.acted(self.command, parts.path, parse_qs(parts.query), body), {}
            )

    def _answer(self, status: int, value: Any, headers: dict[str, str]) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def pull_request_event(number: int = 7, **changes: Any) -> dict[str, Any]:
    """What a workflow is given when a pull request is opened, as far as it is read here."""
    return {
        "action": "opened",
        "number": number,
        "pull_request": {
            "number": number,
            "title": "Train longer",
            "html_url": f"https://github.com/{REPOSITORY}/pull/{number}",
            "head": {"ref": "longer", "sha": COMMIT, "repo": {"full_name": REPOSITORY}},
            "base": {"ref": "main", "sha": "0" * 40, "repo": {"full_name": REPOSITORY}},
        },
        "repository": {"full_name": REPOSITORY, "private": False},
        "sender": {"login": "somebody", "type": "User"},
    } | changes


def fork_pull(**changes: Any) -> dict[str, Any]:
    """What GitHub says of a pull request that comes from a fork."""
    head = {"ref": "longer", "sha": COMMIT, "repo": {"full_name": FORK}}
    return {"number": 7, "state": "open", "head": head} | changes


def run_event(**changes: Any) -> dict[str, Any]:
    """What a workflow is given when the one of a pull request from a fork has ended: by GitHub's schema
    the list of pull requests is empty then.
    """
    run = {
        "id": 30433642,
        "name": "EpochZero",
        "event": "pull_request",
        "status": "completed",
        "conclusion": "failure",
        "head_branch": "longer",
        "head_sha": COMMIT,
        "head_repository": {"full_name": FORK, "fork": True},
        "pull_requests": [],
    }
    return {
        "action": "completed",
        "workflow_run": run | changes,
        "repository": {"full_name": REPOSITORY, "private": False},
        "sender": {"login": "somebody", "type": "User"},
    }


def issue_event(title: str, body: str | None, number: int = 9) -> dict[str, Any]:
    """What a workflow is given when an issue is opened."""
    return {
        "action": "opened",
        "issue": {
            "number": number,
            "title": title,
            "body": body,
            "created_at": "2030-01-01T00:00:00Z",
            "html_url": f"https://github.com/{REPOSITORY}/issues/{number}",
            "user": {"login": "somebody", "type": "User"},
            "labels": [{"name": "bug"}],
        },
        "repository": {"full_name": REPOSITORY, "private": False},
        "sender": {"login": "somebody", "type": "User"},
    }
