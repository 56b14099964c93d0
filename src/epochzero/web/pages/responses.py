"""How a page is sent: rendered by its template, or its rows as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, StreamingResponse
from fastapi.routing import APIRoute
from jinja2 import ChainableUndefined, Environment, PackageLoader

from epochzero import taxonomy
from epochzero.errors import InputError
from epochzero.number_formats import counted, duration, shorten, size
from epochzero.store.database import StoreError
from epochzero.store.teams import Viewer
from epochzero.web.pages import escaped_text
from epochzero.web.pages.period import CHOICES

Format = Annotated[Literal["html", "csv", "json"], Query()]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the reader of a page can do now.

    Attributes:
        text: in a sentence.
        link: of the page where it is done; empty for none.
        command: to type; empty for none.
    """

    text: str
    link: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Export:
    """The rows of a page, as a file.

    Attributes:
        name: of the file, without suffix.
        columns: of the table.
        rows: a value for each column.
    """

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def page(
    request: Request,
    viewer: Viewer,
    template: str,
    *,
    title: str,
    now: Sequence[Step],
    status: int = 200,
    exports: Sequence[str] = ("csv", "json"),
    **values: Any,
) -> Response:
    """A page as HTML.

    Args:
        request: that it answers.
        viewer: who asks.
        template: name of its file, without suffix.
        title: of the page; text of jobs may be in it.
        now: what to do now, the most useful first.
        status: of HTTP.
        exports: the formats that it is there in too.
        **values: what the template shows.
    """
    known = {
        "request": request,
        "viewer": viewer,
        "title": escaped_text.plain(title),
        "now": now,
        "here": request.url.path,
        "exports": exports,
    }
    html = _environment().get_template(f"{template}.html").render(known | values)
    return HTMLResponse(html, status)


def pages_router() -> APIRouter:
    """A router whose refusals are pages too."""
    return APIRouter(route_class=_PageRoute)


class _PageRoute(APIRoute):
    """Answers a wrong address with a page that says what is wrong and where to go on."""

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
                wrong = ", ".join(str(one["loc"][-1]) for one in error.errors())
                return _refusal(request, 422, f"This address has a part that cannot be: {wrong}.")
            except HTTPException as error:
                if error.status_code in (401, 429):
                    raise
                return _refusal(request, error.status_code, str(error.detail))

        return answered


def _refusal(request: Request, status: int, text: str) -> Response:
    viewer = getattr(request.state, "viewer", None)
    if viewer is None:
        raise HTTPException(status, text)
    title = {403: "Not allowed", 404: "Not found"}.get(status, "This cannot be shown")
    now = (Step("Look at all jobs, or search above.", link="/jobs"),)
    if request.method == "POST":
        now = (Step("Go back and change it.", link=quote(request.url.path.rpartition("/")[0])),)
    return page(
        request, viewer, "refusal", title=title, now=now, status=status, text=text, exports=()
    )


def table(form: str, export: Export) -> Response:
    """The rows of a page as CSV or JSON, sent as they are read."""
    kinds = {"csv": (_csv, "text/csv"), "json": (_json, "application/json")}
    write, kind = kinds[form]
    headers = {"Content-Disposition": f'attachment; filename="{export.name}.{form}"'}
    return StreamingResponse(write(export), media_type=f"{kind}; charset=utf-8", headers=headers)


def address(request: Request, **changed: Any) -> str:
    """The address of this page with other words in its query; None or empty takes a word out."""
    words = dict(request.query_params) | changed
    kept = {name: value for name, value in words.items() if value not in (None, "")}
    return f"{request.url.path}?{urlencode(kept)}" if kept else request.url.path


def failure_address(fingerprint: str) -> str:
    """The address of a failure's page."""
    return f"/failures/{_path(fingerprint)}"


def why(category: str) -> str:
    """A category, or the word of a training's fault, for people."""
    for words in (taxonomy.categories(), taxonomy.faults(), taxonomy.symptoms()):
        if category in words:
            return words[category].title
    return category or "Unknown"


def _csv(export: Export) -> Iterator[str]:
    lines = io.StringIO()
    writer = csv.writer(lines)
    for row in chain((export.columns,), export.rows):
        writer.writerow([escaped_text.cell(value) for value in row])
        yield lines.getvalue()
        lines.seek(0)
        lines.truncate()


def _json(export: Export) -> Iterator[str]:
    yield "["
    for number, row in enumerate(export.rows):
        record = json.dumps(dict(zip(export.columns, row, strict=True)), ensure_ascii=False)
        yield f"{',' * bool(number)}\n{record}"
    yield "\n]\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("epochzero.web"),
        autoescape=True,
        undefined=ChainableUndefined,  # A diagnosis may lack any part.
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clock": _clock, "counted": counted, "duration": duration, "hours": _hours,
        "line": escaped_text.line, "moment": _moment, "number": _number, "path": _path, "plain": escaped_text.plain,
        "shorten": shorten, "signed": _signed, "size": size, "visible": escaped_text.visible, "why": why,
    }  # fmt: skip
    environment.globals |= {"address": address, "days_offered": CHOICES}
    return environment


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _number(value: float) -> str:
    return f"{value:,}"


def _signed(value: float) -> str:
    """A change, with a real minus."""
    return f"{round(value):+,}".replace("-", "−") if round(value) else "0"


def _path(text: str) -> str:
    """A word as one part of an address."""
    return quote(text, safe="")
