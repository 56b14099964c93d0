"""A server that speaks the chat completions of OpenAI's API, with scripted answers.

By OpenAI's API reference: "Create chat completion", "List models".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class LanguageModel:
    """What the server answers, and what it was sent.

    Attributes:
        answers: contents of messages, in turn; the last one is repeated.
        models: that it lists.
        raw: answered instead of a completion: a status, headers and a body.
        drips: whether it sends one byte at a time, until the test ends.
        usage: of one completion.
        requests: each request's method, path, headers and body.
    """

    answers: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=lambda: ["tiny"])
    raw: tuple[int, Mapping[str, str], bytes] | None = None
    drips: bool = False
    usage: dict[str, Any] = field(
        default_factory=lambda: {"prompt_tokens": 900, "completion_tokens": 30}
    )
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> LanguageModel:
        model = self
        self.over = threading.Event()

        class Handler(_Handler):
            known = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def prompts(self) -> list[list[dict[str, str]]]:
        """The messages of each completion that was requested."""
        return [body["messages"] for method, _, _, body in self.requests if method == "POST"]

    def completion(self) -> bytes:
        """The next completion."""
        content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        choice = {"index": 0, "message": {"role": "assistant", "content": content}}
        return json.dumps({"choices": [choice], "usage": self.usage}).encode()


class _Handler(BaseHTTPRequestHandler):
    known: LanguageModel

    def do_GET(self) -> None:
        self._note(None)
        listed = {"object": "list", "data": [{"id": name} for name in self.known.models]}
        self._send(200, {}, json.dumps(listed).encode())

    def do_POST(self) -> None:
        self._note(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.path != "/v1/chat/completions":
            self._send(404, {}, b"no such path")
        elif self.known.drips:
            self.send_response(200)
            self.end_headers()
            while not self.known.over.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
        elif self.known.raw:
            self._send(*self.known.raw)
        else:
            self._send(200, {}, self.known.completion())

    def _note(self, body: Any) -> None:
        self.known.requests.append((self.command, self.path, dict(self.headers), body))

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""
