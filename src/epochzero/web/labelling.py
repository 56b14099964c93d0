"""The labelling screen of a browser: a server of one annotator, for this machine alone.

Whoever has the address may label: it contains a random token. Requests of other pages are refused by
the token, those that come by another name (DNS rebinding) by their Host header.
"""

from __future__ import annotations

import secrets
import socket
from http import HTTPStatus
from pathlib import Path

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader
from starlette.middleware.base import RequestResponseEndpoint

from epochzero.errors import InputError
from epochzero.study.labelling.scheme import Scheme
from epochzero.study.labelling.session import Session, View

LONGEST_SHOWN = 400_000
"""Characters of a text in the page; the whole text has an address of its own."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_LONGEST_FORM = 1 << 16
_STALE = "The answer belonged to an earlier question and was not saved."
_TEMPLATES = Environment(
    loader=PackageLoader("epochzero.web"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def page(view: View, scheme: Scheme, annotator: str, message: str = "") -> str:
    """The HTML page of the current record and question. Its forms work without scripts.

    Args:
        view: what to show.
        scheme: the questions.
        annotator: who labels.
        message: shown above the record, may be empty.

    Raises:
        InputError: a log cannot be read any more.
    """
    text = view.item.text if view.item else ""
    shown = text[-LONGEST_SHOWN:] if scheme.begin == "end" else text[:LONGEST_SHOWN]
    return _TEMPLATES.get_template("label.html").render(
        view=view,
        scheme=scheme,
        annotator=annotator,
        message=message,
        shown=shown,
        length=len(text),
    )


class LabelServer:
    """Serves the session of one annotator until it is stopped.

    Args:
        session: what is labelled.
        annotator: whose name is shown.
    """

    def __init__(self, session: Session, annotator: str) -> None:
        self.token = secrets.token_urlsafe(16)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._socket.getsockname()
        app = _Screen(session, annotator, self.token, self.port).app()
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                ws="none",
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                access_log=False,
                log_config=None,
                log_level="critical",  # A browser that went away is no news.
                timeout_graceful_shutdown=5,
            )
        )

    @property
    def address(self) -> str:
        """The URL of the screen."""
        return f"http://{self.host}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serves until `stop` or Ctrl-C."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Ends `run`, also from another thread."""
        self._server.should_exit = True


class _Screen:
    """The routes of one session. They are coroutines that do not wait, so they run one after the other."""

    def __init__(self, session: Session, annotator: str, token: str, port: int) -> None:
        self._session, self._annotator, self._token = session, annotator, token
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    def app(self) -> FastAPI:
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        app.middleware("http")(self._guard)
        app.add_exception_handler(InputError, _failed)
        router = APIRouter(prefix=f"/{self._token}")
        router.add_api_route("/", self._show, response_class=HTMLResponse)
        router.add_api_route("/text", self._text, response_class=PlainTextResponse)
        for action in ("answer", "note", "skip", "undo"):
            router.add_api_route(f"/{action}", self._act, methods=["POST"])
        app.include_router(router)
        files = StaticFiles(directory=Path(__file__).with_name("static"))
        app.mount(f"/{self._token}/static", files)
        return app

    async def _guard(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        status = self._refused(request)
        if status is None:
            answer = await call_next(request)
        else:
            answer = PlainTextResponse(f"{status.phrase}\n", status)
        answer.headers.update(_HEADERS)
        return answer

    def _refused(self, request: Request) -> HTTPStatus | None:
        if request.headers.get("host") not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        token = request.url.path.split("/")[1]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return HTTPStatus.NOT_FOUND
        length = request.headers.get("content-length", "")
        if request.method == "POST" and not (length.isdecimal() and int(length) <= _LONGEST_FORM):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return None

    async def _show(self, request: Request) -> str:
        message = _STALE if request.url.query == "stale" else ""
        return page(self._session.view(), self._session.scheme, self._annotator, message)

    async def _text(self) -> str:
        item = self._session.view().item
        return item.text if item else ""

    async def _act(self, request: Request) -> RedirectResponse:
        form = {name: str(value) for name, value in (await request.form()).items()}
        stale = "" if self._done(request.url.path.rpartition("/")[2], form) else "?stale"
        return RedirectResponse(f"/{self._token}/{stale}", HTTPStatus.SEE_OTHER)

    def _done(self, action: str, form: dict[str, str]) -> bool:
        """Whether the form was about the current question: a page may be old, or open twice."""
        session, view = self._session, self._session.view()
        if action == "undo":
            session.undo()
            return True
        if view.item is None or form.get("item") != view.item.id:
            return False
        if action == "answer":
            asked = view.question.name if view.question else ""
            return form.get("question") == asked and session.answer(form.get("answer", ""))
        if action == "skip":
            session.skip()
        else:
            session.note(form.get("note", ""))
        return True


async def _failed(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), HTTPStatus.INTERNAL_SERVER_ERROR)
