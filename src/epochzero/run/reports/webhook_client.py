"""Sends JSON to an address: the certificate is verified, no redirect is followed, once tried again.

The header that tells one delivery from others is that of the Standard Webhooks specification, "Webhook Metadata".
Source of what is refused on request: OWASP, "Server-Side Request Forgery Prevention Cheat Sheet"; the special
addresses are those of IANA's registries (`ipaddress.IPv4Address.is_global`).
"""

from __future__ import annotations

import functools
import http.client
import ipaddress
import socket
import time
import urllib.request
from typing import Any

from epochzero.http_client import NoResponseError, request

_TIMEOUT_S = 5.0
_PAUSE_S = 1.0
_MOST_TRIES = 2


# What tells a cloud's machine its own credentials (RFC 3927 and providers' documentation). Some are addresses of
# the internet to IANA: 168.63.129.16 is Azure's. They are refused in private networks too.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",
            "169.254.169.253",
            "169.254.170.2",
            "169.254.170.23",
            "192.0.0.192",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)
_EMBEDDING = tuple(
    (ipaddress.IPv6Network(network), shift)
    for network, shift in (
        ("::/96", 0),  # IPv4-compatible, RFC 4291
        ("::ffff:0:0/96", 0),  # IPv4-mapped, RFC 4291
        ("::ffff:0:0:0/96", 0),  # IPv4-translated, RFC 2765
        ("64:ff9b::/96", 0),  # NAT64, RFC 6052
        ("64:ff9b:1::/48", 0),  # NAT64 of a local network, RFC 8215
        ("2002::/16", 80),  # 6to4, RFC 3056
    )
)
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def refusal(host: str, port: int, *, private: bool) -> str:
    """Why nothing is sent to a host; empty when something may be, or its name cannot be looked up now.

    Args:
        host, port: of an address.
        private: whether it may be one of a private network or of this machine.
    """
    try:
        _allowed_addresses(host, port, private=private)
    except _ForbiddenAddressError as error:
        return str(error)
    except (OSError, UnicodeError):
        return ""
    return ""


class _ForbiddenAddressError(OSError):
    """A name leads to an address to which nothing is sent."""


def _allowed_addresses(host: str, port: int, *, private: bool) -> list[str]:
    """The addresses of a name.

    Raises:
        _ForbiddenAddressError: one of them may not be connected to.
        OSError: the name cannot be looked up.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(row[4][0]) for row in found]
    for address in addresses:
        meant = _meant(ipaddress.ip_address(address.partition("%")[0]))
        if any(value in _METADATA for value in meant):
            raise _ForbiddenAddressError("its address belongs to a cloud metadata service")
        if not private and not all(map(_is_public, meant)):
            raise _ForbiddenAddressError("its address is in a private network")
    return addresses


def _is_public(address: _Address) -> bool:
    is_site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return address.is_global and not address.is_multicast and not is_site_local


def _meant(address: _Address) -> list[_Address]:
    """An address, and those of IPv4 that it stands for where a gateway translates it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    inner = [
        ipaddress.IPv4Address(int(address) >> shift & 0xFFFFFFFF)
        for network, shift in _EMBEDDING
        if address in network
    ]
    # IPv4-mapped and NAT64 addresses are themselves not of the internet to IANA, nor are the old forms.
    if inner:
        return list(inner)
    return [address, *(address.teredo or ())]


def _connection(
    address: tuple[str, int],
    timeout: float | None = None,
    source_address: tuple[str, int] | None = None,
    *,
    private: bool,
) -> socket.socket:
    """A connection to the very address that was inspected: a second look-up could tell another.

    Raises:
        OSError: the name leads to a refused address, or cannot be looked up or reached.
    """
    host, port = address
    trouble: OSError | None = None
    for allowed_address in _allowed_addresses(host, port, private=private):
        try:
            return socket.create_connection((allowed_address, port), timeout, source_address)
        except OSError as error:
            trouble = error
    raise trouble or OSError("its host name cannot be resolved")


class _AllowedConnections:
    """Opens connections to addresses that are allowed only."""

    def __init__(self, private: bool) -> None:
        super().__init__()
        self._private = private

    def _opened(self, kind: type[http.client.HTTPConnection]) -> Any:
        def made(host: str, **options: Any) -> http.client.HTTPConnection:
            connection = kind(host, **options)
            # `connect` of the class itself still sets up a proxy's tunnel and TLS with the host's name.
            connect = functools.partial(_connection, private=self._private)
            connection._create_connection = connect  # type: ignore[attr-defined]
            return connection

        return made


class _HTTPHandler(_AllowedConnections, urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See `urllib.request.HTTPHandler`."""
        return self.do_open(self._opened(http.client.HTTPConnection), request)


class _HTTPSHandler(_AllowedConnections, urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See `urllib.request.HTTPSHandler`."""
        return self.do_open(self._opened(http.client.HTTPSConnection), request)


def post(url: str, data: bytes, *, private: bool = True, identity: str = "") -> str:
    """What is wrong; empty when the host has accepted the data.

    Args:
        url: the address.
        data: JSON.
        private: whether the address may be one of a private network or of this machine.
        identity: goes along as ``Webhook-Id``, the same in each try; none where it is empty.
    """
    headers = {"Content-Type": "application/json"}
    if identity:
        headers["Webhook-Id"] = identity
    # A proxy would look the name up once more.
    proxies = () if private else (urllib.request.ProxyHandler({}),)
    handlers = (_HTTPHandler(private), _HTTPSHandler(private), *proxies)
    problem = ""
    for again in range(_MOST_TRIES):
        time.sleep(_PAUSE_S if again else 0.0)
        try:
            answer = request(
                "POST", url, data, headers=headers, timeout=_TIMEOUT_S, most=0, handlers=handlers
            )
        except NoResponseError as error:
            problem = str(error)
            continue
        if answer.succeeded:
            return ""
        problem = f"it returned {answer.status}"
        if answer.status < 500 and answer.status != 429:
            return problem
    return problem
