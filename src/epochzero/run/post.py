"""Sends JSON to an address: the certificate is verified, no redirect is followed, once tried again.

The header that tells one delivery from others is that of the Standard Webhooks specification, "Webhook Metadata".
Source of what is refused on request: OWASP, "Server-Side Request Forgery Prevention Cheat Sheet"; the special
addresses are those of IANA's registries (`ipaddress.IPv4Address.is_global`).
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
import urllib.error
import urllib.request

__all__ = ["no_redirects", "post"]

_TIMEOUT_S = 5.0
_PAUSE_S = 1.0
_MOST_TRIES = 2


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What is told to one host is not told to another."""

    def redirect_request(self, *_: object) -> None:
        """Follows none."""


def no_redirects(
    *handlers: type[urllib.request.BaseHandler] | urllib.request.BaseHandler,
) -> urllib.request.OpenerDirector:
    """What opens an address and goes to no other one."""
    return urllib.request.build_opener(_NoRedirects, *handlers)


class _PublicHTTP(http.client.HTTPConnection):
    """Connects to the very address that was looked at: a second look-up could tell another."""

    def connect(self) -> None:
        """See `http.client.HTTPConnection.connect`."""
        self.sock = _public_socket(self.host, self.port, self.timeout)


class _PublicHTTPS(http.client.HTTPSConnection):
    def connect(self) -> None:
        """See `http.client.HTTPSConnection.connect`."""
        plain = _public_socket(self.host, self.port, self.timeout)
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(plain, server_hostname=self.host)


class _PublicHTTPHandler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See `urllib.request.HTTPHandler`."""
        return self.do_open(_PublicHTTP, request)


class _PublicHTTPSHandler(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See `urllib.request.HTTPSHandler`."""
        return self.do_open(_PublicHTTPS, request)


def _public_socket(host: str, port: int, timeout: float | None) -> socket.socket:
    """A connection to an address of the internet.

    Raises:
        OSError: the name leads to another one, or cannot be looked up or reached.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(one[4][0]) for one in found]
    if not all(_is_public(address) for address in addresses):
        raise OSError("its address is in a private network")
    return socket.create_connection((addresses[0], port), timeout)


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None)
    return found.is_global and not found.is_multicast and (inner is None or inner.is_global)


def post(url: str, data: bytes, *, private: bool = True, identity: str = "") -> str:
    """What is wrong; empty when the host has accepted the data.

    Args:
        url: the address.
        data: JSON.
        private: whether the address may be one of a private network or of this machine.
        identity: goes along as ``Webhook-Id``, the same in each try; none where it is empty.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "epochzero"}
    if identity:
        headers["Webhook-Id"] = identity
    request = urllib.request.Request(url, data, headers)
    # A proxy would look the name up once more.
    direct = (_PublicHTTPHandler, _PublicHTTPSHandler, urllib.request.ProxyHandler({}))
    opener = no_redirects(*(() if private else direct))
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
