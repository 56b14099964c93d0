"""``epochzero mcp``: starts a server for coding agents."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from epochzero.cli.listener import listen
from epochzero.cli.output import file_option, folder_option
from epochzero.cli.store_options import opened, store_option
from epochzero.errors import InputError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command(name="mcp")
@folder_option(
    "--root",
    "roots",
    multiple=True,
    help="Directory that tools may read; repeatable.  [default: the working directory]",
    exists=True,
)
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="Serve HTTP instead of stdio.",
)
@file_option(
    "--token-file",
    help="With --http: file with the bearer token; required on non-loopback addresses.",
    exists=True,
)
@store_option
def command(
    roots: tuple[Path, ...], address: str | None, token_file: Path | None, store: str | None
) -> None:
    """Start a Model Context Protocol server for coding agents: diagnose, check, locate, explain, jobs.

    All tools are read-only: no job code runs, secrets are redacted, and paths outside the roots are
    refused.

    \b
    claude mcp add epochzero -- epochzero mcp
    epochzero mcp --root ~/work --root ~/logs
    epochzero mcp --http 127.0.0.1:8765
    """
    if find_spec("mcp") is None:
        raise InputError("`epochzero mcp` requires mcp: pip install 'epochzero[mcp]'")
    from epochzero.agents.server import build, http_app
    from epochzero.agents.tools import Tools

    server = build(Tools(roots or (Path.cwd(),), lambda: opened(store)))
    if address is None:
        if sys.stdin.isatty():
            click.echo(
                "epochzero: waiting for an agent on standard input; press Ctrl-C to stop", err=True
            )
        server.run("stdio")
        return
    host, port = _address(address)
    token = token_file.read_text("utf-8").strip() if token_file else ""
    if host not in _LOOPBACK and not token:
        raise InputError(f"{host} is reachable from other machines: --token-file is required")
    import uvicorn

    application = http_app(server, host, token)
    settings = uvicorn.Config(application, log_level="warning")
    uvicorn.Server(settings).run([listen(host, port, path="/mcp")])


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise click.BadParameter("must be HOST:PORT, such as 127.0.0.1:8765", param_hint="--http")
    return host, int(port)
