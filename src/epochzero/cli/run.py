"""``epochzero run``: a job, supervised and kept."""

from __future__ import annotations

import getpass
import os
import platform
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import click

from epochzero.cli.home import homes
from epochzero.errors import InputError
from epochzero.run.identity import attempt_folder, name_of
from epochzero.run.journal import Journal
from epochzero.run.launchers import (
    ELASTIC_FOLDER,
    Launch,
    gpus_of,
    job_environment,
    launch_of,
)
from epochzero.run.model import Ended, Started
from epochzero.run.reported import Reported
from epochzero.run.supervise import Options, run_attempt
from epochzero.run.terminal import closed_streams

__all__ = ["command"]


def _size(_: click.Context, __: click.Parameter, text: str) -> int:
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number = text.strip().upper().removesuffix("B").rstrip()
    unit = number[-1:] if number[-1:] in units else ""
    with suppress(ValueError, OverflowError):
        if (size := int(float(number.removesuffix(unit)) * units[unit])) > 0:
            return size
    raise click.BadParameter("must be a size such as 64MB")


@click.command(
    name="run", context_settings={"allow_interspersed_args": False}, no_args_is_help=True
)
@click.argument("job", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...", required=True)
@click.option("--name", metavar="NAME", help="What to call the job.  [default: its script]")
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(min=0),
    help="How many GPUs the job holds in all.  [default: as the scheduler tells]",
)
@click.option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="From SIGINT or SIGTERM until all that is left of the job is killed.",
)
@click.option(
    "--keep-output",
    "keep",
    metavar="SIZE",
    default="64MB",
    show_default=True,
    callback=_size,
    help="How much of each log's head is kept, and again of its tail.",
)
@click.option("--quiet", is_flag=True, help="Say nothing, however the job ends.")
@click.pass_context
def command(
    context: click.Context,
    job: tuple[str, ...],
    name: str | None,
    gpus: int | None,
    grace: float,
    keep: int,
    quiet: bool,
) -> None:
    """Run the job of COMMAND as it would run by itself, and keep what matters.

    Output, input and signals pass through; so does the exit code. Nothing that the job started
    outlives it by more than two seconds. Its output and a journal are kept in EPOCHZERO_HOME
    (~/.local/state/epochzero).

    \b
    epochzero run -- python train.py --epochs 3
    epochzero run --name resnet --gpus 8 -- torchrun --nproc_per_node 8 train.py
    srun epochzero run -- python train.py

    SIGINT and SIGTERM end the job's whole process tree after --grace seconds, a second SIGINT at
    once. Exit code of the job, 128 + n when signal n ended it, 127 when it was not found, 126 when
    it could not be executed.
    """
    closed = closed_streams()
    environment = _environment()
    name = name or name_of(job)
    launch = launch_of(environment, name)
    folder, journal, attempt = _keep(environment, launch)
    started = Started(
        job=launch.job,
        attempt=attempt,
        name=name,
        command=job,
        folder=_folder(environment),
        host=platform.node(),
        user=_user(),
        pid=os.getpid(),
        time=time.time(),
        rank=launch.rank,
        world_size=launch.world_size,
        gpus=gpus_of(environment) if gpus is None else gpus,
        launcher=launch.launcher,
        scheduler=launch.scheduler,
    )
    ended = run_attempt(
        started,
        folder,
        journal,
        environment=job_environment(environment, job=launch.job, attempt=attempt, folder=folder),
        options=Options(grace, keep, closed),
        watchers=(Reported(),),
    )
    if journal is not None:
        journal.close()
    if ended.exit_code and not quiet:
        _say(_closing(started, ended, folder))
    context.exit(ended.exit_code)


def _environment() -> dict[str, str]:
    """The environment that we were given: Python adds a locale where there is none."""
    environment = dict(os.environ)
    with suppress(OSError):
        given = Path("/proc/self/environ").read_bytes()
        if "LC_CTYPE" in environment and not (b"\0" + given).count(b"\0LC_CTYPE="):
            del environment["LC_CTYPE"]
    return environment


def _keep(
    environment: Mapping[str, str], launch: Launch
) -> tuple[Path | None, Journal | None, int]:
    """The attempt's folder, its journal and its number; a job runs also where nothing can be kept."""
    wanted, *others = homes(environment)
    for home in (wanted, *others):
        for attempt in count(launch.attempt):
            folder = attempt_folder(home, launch.job, attempt, launch.rank)
            try:
                folder.mkdir(parents=True, mode=0o700)
                (folder / ELASTIC_FOLDER).mkdir()
                journal = Journal(folder)
            except FileExistsError:
                if folder.is_dir():
                    continue
                break
            except (OSError, InputError):
                break
            if home is not wanted:
                _say(f"{wanted} cannot be written; the job is kept in {home}")
            return folder, journal, attempt
    _say(f"neither {wanted} nor a temporary folder can be written; nothing of the job is kept")
    return None, None, launch.attempt


def _folder(environment: Mapping[str, str]) -> str:
    """The current folder, which may have been removed."""
    with suppress(OSError):
        return os.getcwd()
    return environment.get("PWD", "")


def _user() -> str:
    """Who runs the job; in a container the number need have no name."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return str(os.getuid())


def _closing(started: Started, ended: Ended, folder: Path | None) -> str:
    """The line after a failure."""
    if ended.why == "not_started":
        reason = "command not found" if ended.exit_code == 127 else "cannot be executed"
        return f"{started.command[0]}: {reason}"
    how = (
        f"was ended by {signal.Signals(ended.signal).name}"
        if ended.signal is not None
        else f"failed with exit code {ended.exit_code}"
    )
    where = f"; what it wrote is kept in {folder}" if folder is not None else ""
    return f"{started.name} {how} after {ended.elapsed:.0f} s{where}"


def _say(text: str) -> None:
    """To standard error, where somebody reads it."""
    with suppress(OSError):
        click.echo(f"epochzero: {text}", err=True)
