"""``epochzero send``: jobs of this machine for the service of a team."""

from __future__ import annotations

import os

import click

from epochzero.cli.home import homes
from epochzero.cli.sending import destination, send_all
from epochzero.run.sending import Destination

__all__ = ["command"]


@click.command(name="send")
@click.argument("url", required=False, envvar="EPOCHZERO_SEND", callback=destination)
def command(url: Destination | None) -> None:
    """Send the jobs that were run here to a service, as far as it does not have them.

    `epochzero run --send` does so by itself; this sends what it could not, or what ran before there was a
    service. Sending twice changes nothing. URL is EPOCHZERO_SEND by default.

    \b
    EPOCHZERO_TOKEN_FILE=~/token epochzero send https://epochzero.example.org

    Exit code 0, or 2 when not all could be sent.
    """
    if url is None:
        raise click.UsageError("where to? Give the URL of the service, or set EPOCHZERO_SEND")
    for home in homes(os.environ):
        if (home / "runs").is_dir():
            send_all(url, home / "runs")
            return
    click.echo("no job was run here yet", err=True)
