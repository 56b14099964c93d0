"""HTTP requests by the standard library. Certificates are verified, and no redirect is followed.

A redirect would send a token, or the content of a log, to another host than the one that was configured.
"""

from __future__ import annotations

import errno
import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

_UNREACHED = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)


class NoResponseError(OSError):
    """The server did not respond.

    Attributes:
        sent: whether it may have received the request.
    """

    def __init__(self, reason: object, *, sent: bool) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Response:
    """What a server returned, whatever the status.

    Attributes:
        status, reason: of HTTP.
        headers: names are case-insensitive.
        content: the body.
    """

    status: int
    reason: str
    headers: Message
    content: bytes

    @property
    def succeeded(self) -> bool:
        """Whether the status is one of success."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.content)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follows none."""


def request(
    method: str,
    url: str,
    data: bytes | None = None,
    *,
    headers: Mapping[str, str],
    timeout: float,
    most: int | None = None,
    handlers: tuple[urllib.request.BaseHandler, ...] = (),
) -> Response:
    """Sends a request and reads the response.

    Args:
        method: of HTTP.
        url: http or https.
        data: the body.
        headers: ``User-Agent`` is added.
        timeout: seconds that the server may be silent.
        most: bytes of the body to read at most; None for all.
        handlers: replace those of `urllib.request`.

    Raises:
        NoResponseError: there is no response, or not all of it.
    """
    asked = urllib.request.Request(url, data, {"User-Agent": "epochzero", **headers}, method=method)
    opener = urllib.request.build_opener(_NoRedirects, *handlers)
    try:
        try:
            answer = opener.open(asked, timeout=timeout)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return Response(answer.status, answer.reason, answer.headers, answer.read(most))
    except urllib.error.URLError as error:
        reason = error.reason
        unreached = isinstance(reason, socket.gaierror) or (
            isinstance(reason, OSError) and reason.errno in _UNREACHED
        )
        raise NoResponseError(reason, sent=not unreached) from error
    except (OSError, http.client.HTTPException) as error:
        raise NoResponseError(error, sent=True) from error
