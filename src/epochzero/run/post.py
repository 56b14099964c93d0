"""Sends JSON to an address: the certificate is verified, no redirect is followed, once tried again."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request

__all__ = ["post"]

_TIMEOUT_S = 5.0
_PAUSE_S = 1.0
_MOST_TRIES = 2


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What is told to one host is not told to another."""

    def redirect_request(self, *_: object) -> None:
        """Follows none."""


def post(url: str, data: bytes) -> str:
    """What is wrong; empty when the host has accepted the data."""
    headers = {"Content-Type": "application/json", "User-Agent": "epochzero"}
    request = urllib.request.Request(url, data, headers)
    opener = urllib.request.build_opener(_NoRedirects)
    problem = ""
    for again in range(_MOST_TRIES):
        time.sleep(_PAUSE_S if again else 0.0)
        try:
            with opener.open(request, timeout=_TIMEOUT_S):
                return ""
        except urllib.error.HTTPError as error:
            error.close()
            problem = f"it answers {error.code}"
            if error.code < 500 and error.code != 429:
                return problem
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            problem = str(reason) or type(reason).__name__
    return problem
