"""``epochzero record``: records a Slurm job that was not started with ``epochzero run``."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click

from epochzero.cli.destination import send_all, send_option
from epochzero.cli.store_options import opened, store_option
from epochzero.errors import InputError
from epochzero.run.records.home import homes
from epochzero.run.reports.upload import Destination
from epochzero.run.scheduler.slurm import wait_until_completed
from epochzero.run.scheduler.slurm_record import JobCompletingError, record_job, slurm_jobs


@click.command(name="record")
@click.option(
    "--job-id",
    metavar="ID",
    envvar="SLURM_JOB_ID",
    show_envvar=True,
    help="Slurm job ID, such as 4242 or 4242_7; the ID of an array selects all its jobs.",
)
@click.option(
    "--logs",
    metavar="PATH",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Log of the job; repeatable.  [default: the output files that Slurm reports]",
)
@store_option
@send_option
def command(
    job_id: str | None, logs: tuple[Path, ...], store: str | None, send: Destination | None
) -> None:
    """Record a finished Slurm job that was not started with `epochzero run`.

    The final state comes from sacct, and the cause from the job's log. In an EpilogSlurmctld or Epilog
    script of Slurm, SLURM_JOB_ID provides the job ID. The script never waits: if the final state is not
    available yet, a background process records the job when it is complete. A job that is already
    recorded is not changed.

    \b
    epochzero record --job-id 4242
    epochzero record --job-id 4242 --logs slurm-4242.out

    With --send, the job is also sent to the team server, with all jobs that could not be sent earlier.

    Exit code 0 if the job was recorded, 2 if Slurm has no record of it, it has not finished, or it
    cannot be stored.
    """
    if not job_id:
        raise click.UsageError("missing job ID: pass --job-id (epilogs set SLURM_JOB_ID)")
    home = homes(os.environ)[0]
    try:
        jobs = slurm_jobs(job_id, os.environ)
    except JobCompletingError:
        # Slurm completes the job, and requeues it, only when its epilog has returned.
        if not _continue_in_background():
            click.echo(
                f"job {job_id} is completing and will be recorded when it has ended", err=True
            )
            return
        wait_until_completed(job_id, os.environ)
        jobs = slurm_jobs(job_id, os.environ)
    if logs and len(jobs) > 1:
        raise InputError(
            f"{job_id} is an array of {len(jobs)} jobs, and --logs applies to one job: pass the ID of one task, such as {job_id}_1"
        )
    for job in jobs:
        recorded = record_job(job, home, logs=logs)
        outcome = f"recorded; epochzero show {job.identity}" if recorded else "already recorded"
        click.echo(f"job {job.number} ({job.name}): {outcome}", err=True)
    # After an epilog, no other command imports the journal into the store.
    with opened(store):
        pass
    if send is not None:
        send_all(send, home / "runs")


def _continue_in_background() -> bool:
    """Fork; return True in the child, which is in its own session so that it survives the epilog."""
    if os.fork():
        return False
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        # Slurm waits until the pipes of an epilog are closed; messages go to a file instead.
        if not stat.S_ISREG(os.fstat(stream).st_mode):
            os.dup2(null, stream)
    return True
