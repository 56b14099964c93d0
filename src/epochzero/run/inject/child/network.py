"""Connections that fail: other hosts cannot be reached from the job's Python.

Loopback and Unix sockets work as usual. Libraries that connect without Python's ``socket`` (NCCL, gloo, gRPC) are
not affected.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from epochzero.run.inject.child.faults import PlannedFault, as_of_python

_PAUSE_S = 0.05
_OUT = ("connect", "sendto")
_ON = ("send", "sendall", "sendmsg", "recv", "recv_into", "recvfrom")
_LOCAL = ("localhost", "127.", "::1", "0.0.0.0")


def replace_connections(faults: Sequence[PlannedFault]) -> None:
    """Route the job's connections through this module; change nothing if no fault is planned."""
    if not faults:
        return
    kind = socket.socket
    for name in _OUT:
        setattr(kind, name, _connecting(getattr(kind, name), faults))
    kind.connect_ex = _answering(kind.connect_ex, faults)  # type: ignore[method-assign]
    for name in _ON:
        setattr(kind, name, _talking(getattr(kind, name), faults))
    socket.getaddrinfo = _looking_up(socket.getaddrinfo, faults)


def _connecting(call: Callable[..., Any], faults: Sequence[PlannedFault]) -> Callable[..., Any]:
    def connect(self: socket.socket, *values: Any) -> Any:
        _unreachable(self, values[-1], faults)
        return call(self, *values)

    return as_of_python(connect)


def _answering(call: Callable[..., Any], faults: Sequence[PlannedFault]) -> Callable[..., Any]:
    def connect_ex(self: socket.socket, address: Any) -> Any:
        try:
            _unreachable(self, address, faults)
        except OSError as error:
            return error.errno
        return call(self, address)

    return as_of_python(connect_ex)


def _looking_up(call: Callable[..., Any], faults: Sequence[PlannedFault]) -> Callable[..., Any]:
    def getaddrinfo(host: Any, *values: Any, **named: Any) -> Any:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if name and not _is_local(name) and not _is_number(name):
            fault = _holding(faults)
            if fault is not None:
                fault.meets(f"the host name {name} could not be resolved")
                _hang(fault, None)
                if fault.holds():
                    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return call(host, *values, **named)

    return as_of_python(getaddrinfo)


def _talking(call: Callable[..., Any], faults: Sequence[PlannedFault]) -> Callable[..., Any]:
    def talk(self: socket.socket, *values: Any, **named: Any) -> Any:
        fault = _holding(faults)
        if fault is not None and self.family in _FAMILIES:
            try:
                peer = self.getpeername()
            except OSError:
                peer = None
            if peer is not None and not _is_local(str(peer[0])):
                fault.meets(f"the connection to {peer[0]} was lost")
                _hang(fault, self.gettimeout())
                if fault.holds():
                    raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        return call(self, *values, **named)

    return as_of_python(talk)


_FAMILIES = (socket.AF_INET, socket.AF_INET6)


@as_of_python
def _unreachable(connection: socket.socket, address: Any, faults: Sequence[PlannedFault]) -> None:
    """Raise the kernel's error for an unreachable address."""
    if connection.family not in _FAMILIES or not isinstance(address, tuple):
        return
    host = str(address[0])
    fault = _holding(faults)
    if fault is None or _is_local(host):
        return
    fault.meets(f"{host} could not be reached")
    _hang(fault, connection.gettimeout())
    if fault.holds():
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))


@as_of_python
def _hang(fault: PlannedFault, timeout: float | None) -> None:
    """Wait as on a network that loses all packets: until the fault ends, or until the socket's timeout."""
    if fault.word != "hang":
        return
    until = time.monotonic() + timeout if timeout else None
    while fault.holds():
        if until is not None and time.monotonic() > until:
            raise TimeoutError("timed out")
        time.sleep(_PAUSE_S)


def _holding(faults: Sequence[PlannedFault]) -> PlannedFault | None:
    return next((fault for fault in faults if fault.holds()), None)


def _is_local(host: str) -> bool:
    return not host or host.startswith(_LOCAL)


def _is_number(host: str) -> bool:
    for family in _FAMILIES:
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
