"""Responses of pages: rendered templates."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache, wraps
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import ChainableUndefined, Environment, PackageLoader
from markupsafe import Markup

from epochzero import taxonomy
from epochzero.errors import InputError
from epochzero.number_formats import counted, duration, shorten, size
from epochzero.store.database import Database, StoreError
from epochzero.store.teams import Viewer
from epochzero.web.pages import escaped_text
from epochzero.web.pages.charts import sparkline
from epochzero.web.pages.period import CHOICES

_UNITS = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0))

Format = Annotated[Literal["html", "csv", "json"], Query()]


@dataclass(frozen=True, slots=True)
class Action:
    """A suggested action on a page.

    Attributes:
        text: one sentence.
        link: page of the action; empty for none.
        command: command to run; empty for none.
    """

    text: str
    link: str = ""
    command: str = ""


def page(
    request: Request,
    viewer: Viewer,
    template: str,
    *,
    title: str,
    now: Sequence[Action],
    status: int = 200,
    exports: Sequence[str] = ("csv", "json"),
    **values: Any,
) -> Response:
    """Renders a page as HTML.

    Args:
        request: the request.
        viewer: the authenticated viewer.
        template: name of its file, without suffix.
        title: of the page; may contain text of jobs.
        now: suggested actions, the most useful first.
        status: HTTP status.
        exports: available export formats.
        **values: values of the template.
    """
    known = {
        "request": request,
        "viewer": viewer,
        "title": escaped_text.plain(title),
        "now": now,
        "here": request.url.path,
        "may_write": viewer.role != "reader",
        "is_admin": viewer.role in ("admin", "operator"),
        "exports": exports,
    }
    html = _environment().get_template(f"{template}.html").render(known | values)
    return HTMLResponse(html, status)


def pages_router() -> APIRouter:
    """A router whose error responses are pages."""
    return APIRouter(route_class=_PageRoute)


class _PageRoute(APIRoute):
    """Reads all data of a page in one session, and converts an invalid URL to an error page with a way to continue."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **values: Any) -> None:
        super().__init__(path, _in_one_session(endpoint), **values)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except StoreError:
                raise
            except InputError as error:
                return _refusal(request, 422, str(error))
            except RequestValidationError as error:
                wrong = ", ".join(str(value["loc"][-1]) for value in error.errors())
                return _refusal(request, 422, f"This URL is invalid: {wrong}.")
            except HTTPException as error:
                if error.status_code in (401, 429):
                    raise
                return _refusal(request, error.status_code, str(error.detail))

        return answered


def _in_one_session(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(endpoint)
    def answer(**values: Any) -> Any:
        if not isinstance(store := values.get("store"), Database):
            return endpoint(**values)
        with store.shared_read():
            return endpoint(**values)

    return answer


def _refusal(request: Request, status: int, text: str) -> Response:
    viewer = getattr(request.state, "viewer", None)
    if viewer is None:
        raise HTTPException(status, text)
    title = {403: "Not allowed", 404: "Not found"}.get(status, "This page cannot be shown")
    now = (Action("Show all jobs, or search above.", link="/jobs"),)
    if request.method == "POST":
        now = (
            Action(
                "Go back and correct the form.", link=quote(request.url.path.rpartition("/")[0])
            ),
        )
    return page(
        request, viewer, "refusal", title=title, now=now, status=status, text=text, exports=()
    )


def address(request: Request, **changed: Any) -> str:
    """The URL of this page with other query parameters; None or empty removes a parameter."""
    words = dict(request.query_params) | changed
    given = {name: value for name, value in words.items() if value not in (None, "")}
    return f"{request.url.path}?{urlencode(given)}" if given else request.url.path


def failure_address(fingerprint: str) -> str:
    """The URL of a failure's page."""
    return f"/failures/{_path(fingerprint)}"


def why(category: str) -> str:
    """Display name of a category or training fault."""
    for words in (taxonomy.categories(), taxonomy.faults(), taxonomy.symptoms()):
        if category in words:
            return words[category].title
    return category or "Unknown"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("epochzero.web"),
        autoescape=True,
        undefined=ChainableUndefined,  # Any part of a diagnosis may be missing.
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": _ago, "clock": _clock, "counted": counted, "duration": duration, "hours": _hours,
        "line": escaped_text.line, "moment": _moment, "number": _number, "path": _path, "plain": escaped_text.plain,
        "prose": escaped_text.prose,
        "shorten": shorten, "signed": _signed, "size": size, "visible": escaped_text.visible, "why": why,
    }  # fmt: skip
    environment.globals |= {
        "address": address, "days_offered": CHOICES, "fragment": _fragment, "sparkline": sparkline
    }  # fmt: skip
    return environment


@lru_cache(4096)
def _fragment(macro: str, *values: Any) -> Markup:
    """A row of a list, from immutable values: of those on a page, few have changed since they were last shown."""
    rendered: Markup = getattr(_environment().get_template("parts.html").module, macro)(*values)
    return rendered


def _moment(seconds: float) -> Markup:
    """A date and time in UTC; the pages' script shows it in local time."""
    return _time(seconds, "moment", _utc(seconds)[:16])


def _clock(seconds: float) -> Markup:
    return _time(seconds, "clock", _utc(seconds)[11:])


def _ago(seconds: float) -> Markup:
    """How long ago a time was."""
    age = time.time() - seconds
    name, size = next((unit for unit in _UNITS if age >= unit[1]), ("minute", 60.0))
    return _time(seconds, "ago", f"{counted(max(1, int(age / size)), name)} ago")


def _time(seconds: float, kind: str, text: str) -> Markup:
    when = _utc(seconds)
    machine = f"{when.replace(' ', 'T')}Z"
    return Markup(f'<time datetime="{machine}" title="{when} UTC" data-time="{kind}">{text}</time>')


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(" ", "seconds")


def _hours(value: float) -> str:
    """GPU hours, no more precise than anyone needs."""
    if 0 < value < 0.1:
        return "<0.1"
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:.1f}".removesuffix(".0")


def _number(value: float) -> str:
    return f"{value:,}"


def _signed(value: float) -> str:
    """A change, with a typographic minus."""
    return f"{round(value):+,}".replace("-", "−") if round(value) else "0"


def _path(text: str) -> str:
    """A string as one URL path segment."""
    return quote(text, safe="")
