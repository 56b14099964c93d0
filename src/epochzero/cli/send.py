"""``epochzero send``: jobs of this machine for the service of a team."""

from __future__ import annotations

import os

import click

from epochzero.cli.destination import destination, send_all
from epochzero.run.records.home import homes
from epochzero.run.reports.upload import Destination


@click.command(name="send")
@click.argument("url", required=False, envvar="EPOCHZERO_SEND", callback=destination)
def command(url: Destination | None) -> None:
    """Send the jobs of this machine that a team server does not have yet.

    `epochzero run --send` sends each job when it ends. This command sends the jobs that it could not
    send, and jobs that ran before the server existed. Sending a job twice has no effect. URL defaults
    to EPOCHZERO_SEND.

    \b
    EPOCHZERO_TOKEN_FILE=~/token epochzero send https://epochzero.example.org

    Exit code 0, or 2 if some jobs could not be sent.
    """
    if url is None:
        raise click.UsageError("missing URL: pass the URL of the server or set EPOCHZERO_SEND")
    for home in homes(os.environ):
        if (home / "runs").is_dir():
            send_all(url, home / "runs")
            return
    click.echo("no jobs recorded on this machine", err=True)
