"""Options for the store, and times as people write them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epochzero.errors import InputError
from epochzero.run.records.home import homes
from epochzero.store.states import JOB_STATES

if TYPE_CHECKING:
    from epochzero.check import PastPeak
    from epochzero.store.database import Database


_Command = TypeVar("_Command", bound=Callable[..., Any])
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def store_option(command: _Command) -> _Command:
    """Add ``--store``, for every command that uses a store."""
    return click.option(
        "--store",
        metavar="URL",
        callback=_address,
        envvar="EPOCHZERO_STORE",
        show_envvar=True,
        help="Database: postgresql://... or the path of an SQLite file.  "
        "[default: epochzero.db in EPOCHZERO_HOME]",
    )(command)


def _address(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Reject addresses that cannot be a store; whether one exists is checked when it is opened."""
    if text is None or "://" not in text or text.startswith(("sqlite:", "postgres")):
        return text
    raise click.BadParameter("must be an SQLite file or postgresql://...")


def store_address(store: str | None, home: Path) -> str:
    """Return the given address, otherwise that of the store in the home directory."""
    return store or f"sqlite:///{home / 'epochzero.db'}"


@contextmanager
def opened(store: str | None) -> Iterator[Database]:
    """Open the store and import the journals of this machine's runs, if it can be written.

    Raises:
        StoreError: it cannot be opened.
    """
    from epochzero.store.database import StoreError, open_database
    from epochzero.store.recorder import sweep

    home = next((home for home in homes(os.environ) if (home / "runs").is_dir()), None)
    if home is None:
        home = homes(os.environ)[0]
        if store is None:
            home.mkdir(parents=True, exist_ok=True)
    database = open_database(store_address(store, home))
    try:
        try:
            sweep(database, home / "runs")
        except StoreError as error:
            click.echo(f"epochzero: some jobs are not in the store yet: {error}", err=True)
        yield database
    finally:
        database.close()


def past_peaks() -> Sequence[PastPeak]:
    """Return the peak GPU memory of past runs if a store exists; none is created."""
    address = os.environ.get("EPOCHZERO_STORE")
    there = (home / "epochzero.db" for home in homes(os.environ))
    file = next((file for file in there if file.is_file()), None)
    if not address and file is None:
        return ()
    try:
        from epochzero.store.database import open_to_read
        from epochzero.store.gpu_history import past_peaks as peaks_in

        database = open_to_read(address or str(file))
        if database is None:
            return ()
        with closing(database):
            return peaks_in(database)
    except (InputError, ModuleNotFoundError):
        return ()  # a problem of the store, or its missing library, must not fail a check


def moment(text: str) -> float:
    """Return a time in seconds since the epoch: ``7d`` ago, or a date.

    Raises:
        click.BadParameter: it is neither.
    """
    if ago := re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text):
        return time.time() - float(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        hint = "write 7d, 12h, 30m, or 2026-05-01"
        raise click.BadParameter(f"{text!r} is not a time; {hint}") from error


_FILTERS = (
    click.option("--state", type=click.Choice(JOB_STATES), help="Status of the job."),
    click.option(
        "--category",
        metavar="NAME",
        help="Failure category, or the training fault that terminated the job.",
    ),
    click.option("--fingerprint", metavar="ID", help="Failure fingerprint, or a prefix of it."),
    click.option("--user", metavar="NAME", help="User who started the job."),
    click.option("--host", metavar="NAME", help="Host on which the job started."),
    click.option("--name", metavar="PATTERN", help="Job name; * and ? are wildcards."),
    click.option(
        "--since",
        metavar="TIME",
        type=moment,
        help="Started at or after this time: 7d, 12h, 2026-05-01.",
    ),
    click.option("--until", metavar="TIME", type=moment, help="Started before this time."),
)


def filter_options(command: _Command) -> _Command:
    """Add the options that select jobs: the fields of `JobFilter`."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command
