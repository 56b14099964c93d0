"""The address that a server of the command line listens on."""

from __future__ import annotations

import socket

import click

from epochzero.errors import InputError


def listen(host: str, port: int, scheme: str = "http", path: str = "/") -> socket.socket:
    """Announce the URL of a server once the system accepts connections for it.

    Raises:
        InputError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        # Python appends the address.
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise InputError(f"{host}:{port}: {reason}; choose another address") from error
    shown = f"[{host}]" if ":" in host else host
    number = listener.getsockname()[1]
    click.echo(f"epochzero: {scheme}://{shown}:{number}{path}", err=True)
    return listener
