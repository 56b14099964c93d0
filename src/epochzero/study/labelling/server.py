"""The labelling screen of a browser: a server of one annotator, for this machine alone.

Whoever has the address may label: it holds a token that nobody guesses. Requests of other pages are
refused by the token, those that come by another name (DNS rebinding) by their Host header.
"""

from __future__ import annotations

import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from epochzero.errors import InputError
from epochzero.study.labelling.pages import page
from epochzero.study.labelling.session import Session

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FILES = {"label.css": "text/css", "label.js": "text/javascript"}
_LONGEST_FORM = 1 << 16
_STALE = "That was of an earlier question, and was not kept."


class LabelServer(ThreadingHTTPServer):
    """Serves the session of one annotator until it is shut down.

    Args:
        session: what is labelled.
        annotator: whose name is shown.
    """

    daemon_threads = True

    def __init__(self, session: Session, annotator: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.session = session
        self.annotator = annotator
        self.token = secrets.token_urlsafe(16)
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        """What to open."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    timeout = 60

    def do_GET(self) -> None:
        """A page, or a file that it needs."""
        path, _, query = self.path.partition("?")
        name = self._inside(path)
        if name is None:
            return
        if name in _FILES:
            text = files(__package__).joinpath(name).read_text(encoding="utf-8")
            self._send(HTTPStatus.OK, text, _FILES[name])
        elif name == "text":
            with self.server.lock:
                item = self.server.session.view().item
            self._send(HTTPStatus.OK, item.text if item else "", "text/plain")
        elif name == "":
            self._page(_STALE if query == "stale" else "")
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """An answer, or another key; then the page anew."""
        name = self._inside(self.path)
        if name is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST_FORM:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length)).decode("utf-8", "replace")
        form = {key: values[0] for key, values in parse_qs(body, keep_blank_values=True).items()}
        try:
            with self.server.lock:
                kept = self._do(name, form)
        except InputError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), "text/plain")
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"/{self.server.token}/{'' if kept else '?stale'}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _do(self, name: str, form: dict[str, str]) -> bool:
        """Whether it was about what is asked now: a page may be old, or open twice."""
        session, view = self.server.session, self.server.session.view()
        if name == "undo":
            session.undo()
            return True
        if view.item is None or form.get("item") != view.item.id:
            return False
        if name == "answer":
            asked = view.question.name if view.question else ""
            return form.get("question") == asked and session.answer(form.get("answer", ""))
        if name == "skip":
            session.skip()
        elif name == "note":
            session.note(form.get("note", ""))
        return True

    def _inside(self, path: str) -> str | None:
        """What of the session is meant; None when the request was refused."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        token, _, name = path.lstrip("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return name

    def _page(self, message: str) -> None:
        try:
            with self.server.lock:
                session = self.server.session
                text = page(session.view(), session.scheme, self.server.annotator, message)
        except InputError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), "text/plain")
            return
        self._send(HTTPStatus.OK, text, "text/html")

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, f"{status.phrase}\n", "text/plain")

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal shows the address alone."""
