"""Requests to real servers: what is returned, and what is known when nothing is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from epochzero.http_client import NoResponseError, request

PATIENCE_S = 120.0


class _Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
            return
        moved = self.path == "/moved"
        self.send_response(302 if moved else 404 if self.path == "/missing" else 200)
        if moved:
            self.send_header("Location", "/there")
        body = b'{"agent": "%s"}' % self.headers["User-Agent"].encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    _Handler.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_response_of_any_status_is_returned(url: str) -> None:
    found = request("GET", f"{url}/there", headers={}, timeout=PATIENCE_S)
    assert (found.status, found.succeeded, found.json()) == (200, True, {"agent": "epochzero"})
    missing = request("GET", f"{url}/missing", headers={}, timeout=PATIENCE_S, most=3)
    assert (missing.status, missing.succeeded, missing.content) == (404, False, b'{"a')


def test_a_redirect_is_not_followed(url: str) -> None:
    moved = request("GET", f"{url}/moved", headers={"Authorization": "x"}, timeout=PATIENCE_S)
    assert (moved.status, moved.succeeded, moved.headers["location"]) == (302, False, "/there")
    assert _Handler.asked == ["/moved"]


def test_whether_a_request_was_sent_is_known(url: str) -> None:
    with pytest.raises(NoResponseError) as cut:
        request("GET", f"{url}/cut", headers={}, timeout=PATIENCE_S)
    assert cut.value.sent
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}", "http://host.invalid"):
        with pytest.raises(NoResponseError) as unreached:
            request("GET", address, headers={}, timeout=PATIENCE_S)
        assert not unreached.value.sent, address
