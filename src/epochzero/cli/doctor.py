"""``epochzero doctor``: reports what works on this machine."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from epochzero.cli import layout
from epochzero.cli.output import echo_json, format_option
from epochzero.run.records.home import homes

_COLORS = {"works": "green", "limited": "yellow", "missing": None}


@click.command(name="doctor")
@format_option("Output format.")
def command(form: str) -> None:
    """Report which parts of EpochZero work on this machine, and what to install for the others.

    This command changes nothing. A missing extra is not an error; its line names the features that it adds.

    \b
    epochzero doctor
    epochzero doctor --format json

    The exit code is always 0.
    """
    from epochzero.cli import for_this_install
    from epochzero.doctor import capabilities

    found = capabilities(os.environ, homes(os.environ))
    if form == "json":
        echo_json([asdict(capability) for capability in found])
        return
    for capability in found:
        state = click.style(f"{capability.state:<8}", fg=_COLORS[capability.state])
        click.echo(f"{state} {click.style(capability.name, bold=True)}")
        for text in filter(None, (capability.text, capability.advice)):
            click.echo(layout.wrapped("", for_this_install(text)))
