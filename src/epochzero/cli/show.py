"""``epochzero show``: shows all details of one job."""

from __future__ import annotations

import sys
import time

import click

from epochzero.cli.output import echo_json, format_option
from epochzero.cli.render_job import describe
from epochzero.cli.store_options import opened, store_option
from epochzero.store.job_details import job_details, read_log, usage
from epochzero.store.queries import find_job

_LOG = "output"


@click.command(name="show")
@click.argument("job", metavar="[JOB]", default="last")
@click.option("--log", is_flag=True, help="Print the log of the job instead.")
@click.option("--rank", type=click.IntRange(0), help="With --log: the log of this rank.")
@click.option(
    "--attempt",
    type=click.IntRange(1),
    help="With --log: the log of this attempt.  [default: the last]",
)
@format_option("Output format.")
@store_option
def command(
    job: str, log: bool, rank: int | None, attempt: int | None, form: str, store: str | None
) -> None:
    """Show the details of JOB: an ID, a unique prefix of an ID, a name, or `last` (the default).

    \b
    epochzero show
    epochzero show 68e5d1 --format json
    epochzero show resnet --log | less -R

    Exit code 0, or 2 if the job or the log does not exist.
    """
    with opened(store) as database:
        identity = find_job(database, job)
        if log or rank is not None:
            name = _LOG if rank is None else f"rank{rank}"
            for part in read_log(database, identity, attempt=attempt, name=name):
                sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            return
        details = job_details(database, identity)
        if form == "json":
            echo_json(details.to_dict())
            return
        for line in describe(
            details, now=time.time(), usage_of=lambda rank: usage(database, rank.id)
        ):
            click.echo(line)
