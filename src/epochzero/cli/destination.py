"""The server to which commands send jobs, and its token."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epochzero.cli.layout import counted
from epochzero.cli.line import line
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.run.reports.upload import Destination


_AWAY_AFTER = 3
"""A server that accepts none of the first attempts is considered unavailable."""
_Command = TypeVar("_Command", bound=Callable[..., Any])


def send_option(command: _Command) -> _Command:
    """Add ``--send``, for the commands that store jobs."""
    return click.option(
        "--send",
        metavar="URL",
        callback=destination,
        envvar="EPOCHZERO_SEND",
        show_envvar=True,
        help="Also send the job to this team server; its token is read from EPOCHZERO_TOKEN or from "
        "the file EPOCHZERO_TOKEN_FILE.",
    )(command)


def destination(_: click.Context, __: click.Parameter, url: str | None) -> Destination | None:
    """Return the server at an address, with the token of the environment."""
    if not url:
        return None
    from epochzero.run.reports.upload import Destination

    token = os.environ.get("EPOCHZERO_TOKEN", "")
    file = os.environ.get("EPOCHZERO_TOKEN_FILE")
    try:
        if not token and file:
            token = Path(file).read_text("utf-8").strip()
        return Destination(url, token)
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}") from error
    except (InputError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error)) from error


def send_all(to: Destination, runs: Path) -> None:
    """Send all attempts that the server lacks or has only in part.

    Raises:
        InputError: some could not be sent; the message has their number.
    """
    from epochzero.run.reports.upload import send_attempt, unsent

    waiting = list(unsent(runs, to))
    sent = 0
    trouble = ""
    with line() as shown:
        for number, folder in enumerate(waiting, 1):
            shown.show("attempts sent", number - 1, len(waiting))
            try:
                send_attempt(to, folder)
                sent += 1
            except InputError as error:
                trouble = trouble or str(error)
                if number == _AWAY_AFTER and not sent:
                    break
    if trouble:
        left = counted(len(waiting) - sent, "attempt")
        raise InputError(f"{trouble}; {left} could not be sent; sent: {sent}")
    click.echo(f"{counted(sent, 'attempt')} sent to {to.url}", err=True)
