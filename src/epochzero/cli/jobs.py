"""``epochzero jobs``: lists jobs and their status."""

from __future__ import annotations

import os
from typing import Any

import click

from epochzero.cli.formats import formats, names_of
from epochzero.cli.output import format_option
from epochzero.cli.store_options import filter_options, moment, opened, store_option
from epochzero.run.records.home import homes
from epochzero.store.queries import JobFilter, find_jobs
from epochzero.store.retention import prune, prune_folders


@click.group(name="jobs", invoke_without_command=True)
@filter_options
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="List at most this many jobs.",
)
@format_option("Output format.", names_of("jobs"))
@store_option
@click.pass_context
def command(
    context: click.Context, /, limit: int, form: str, store: str | None, **wanted: Any
) -> None:
    """List the jobs started with `epochzero run`, newest first.

    \b
    epochzero jobs --since 7d --state failed
    epochzero jobs --category gpu_out_of_memory --format json
    epochzero jobs --store postgresql://user@host/jobs --user ann
    epochzero jobs prune --older 90d --keep-failed

    Exit code 0, even if no job matches; 2 if the store cannot be used.
    """
    if context.invoked_subcommand:
        context.obj = store
        return
    with opened(store) as database:
        jobs = find_jobs(database, JobFilter(**wanted, limit=limit))
    if jobs or form != "text":
        formats()[form].jobs(jobs)
    else:
        anything = any(value is not None for value in wanted.values())
        click.echo(
            "No matching job."
            if anything
            else "No jobs recorded. Start one with: epochzero run -- COMMAND",
            err=True,
        )


@command.command(name="prune")
@click.option(
    "--older",
    type=moment,
    required=True,
    metavar="TIME",
    help="Select jobs that ended before this time: 90d, 12h, 2026-05-01.",
)
@click.option("--keep-failed", is_flag=True, help="Retain the logs of failed jobs.")
@click.option("--whole", is_flag=True, help="Also delete the jobs and all their records.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted and delete nothing.")
@store_option
@click.pass_obj
def _prune(
    above: str | None,
    older: float,
    keep_failed: bool,
    whole: bool,
    dry_run: bool,
    store: str | None,
) -> None:
    """Delete the logs and samples of old jobs. Diagnoses are retained.

    \b
    epochzero jobs prune --older 90d
    epochzero jobs prune --older 2026-01-01 --whole
    """
    with opened(store or above) as database:
        folders = 0
        if not dry_run:
            for home in homes(os.environ):
                folders += prune_folders(database, home / "runs", before=older)
        pruned = prune(
            database, before=older, keep_failed=keep_failed, whole=whole, pretend=dry_run
        )
    would = "Would delete" if dry_run else "Deleted"
    jobs = f"{pruned.jobs} job{'' if pruned.jobs == 1 else 's'}"
    what = jobs if whole else f"logs and samples of {jobs}"
    click.echo(
        f"{would} {what}: {pruned.log_bytes / 1000000.0:,.1f} MB, {folders} run directories."
    )
