"""``epochzero replay``: reruns the failing step of a captured job."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli.output import OutputFile, format_option
from epochzero.cli.store_options import opened, store_option
from epochzero.errors import InputError

if TYPE_CHECKING:
    from epochzero.run.replay.model import ReplayResult


@click.command(name="replay")
@click.argument("job", metavar="JOB|DIR")
@click.option(
    "--step",
    metavar="N",
    type=click.IntRange(min=1),
    help="Stop after optimizer step N.  [default: the step that failed]",
)
@click.option(
    "--inspect",
    is_flag=True,
    help="Show the batch, weights, gradients and RNG states at the last step.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="Trace the operators of the step and find the one that causes the failure.",
)
@click.option(
    "--program",
    type=OutputFile(".py"),
    help="Write a minimal program that reproduces the failure; implies --bisect.",
)
@click.option(
    "--from",
    "way",
    type=click.Choice(("auto", "start", "snapshot")),
    default="auto",
    show_default=True,
    help="Run the whole program, or resume from the last snapshot.",
)
@click.option(
    "--python",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Python interpreter to use.  [default: that of the job]",
)
@click.option("--write", is_flag=True, help="Allow the program to write files and use the network.")
@click.option(
    "--gpu",
    is_flag=True,
    help="Run GPU code on the GPU of this machine; requires --write.  [default: on the CPU]",
)
@click.option(
    "--seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Time limit.  [default: ten times the job's run time, at least 120]",
)
@format_option("Output format.")
@store_option
@click.pass_context
def command(
    context: click.Context,
    job: str,
    step: int | None,
    inspect: bool,
    bisect: bool,
    program: Path | None,
    way: str,
    python: Path | None,
    write: bool,
    gpu: bool,
    seconds: float | None,
    form: str,
    store: str | None,
) -> None:
    """Rerun the failing step of JOB, which ran with `epochzero run --capture`.

    JOB is an ID or a unique prefix of it, a name, `last`, or the directory of an attempt. The program
    of the job runs with the captured random states, seeds and batches. Its writes are discarded, it has
    no network access, and GPU code runs on the CPU. Losses can only agree bit for bit on the same GPU, with
    `torch.use_deterministic_algorithms`.

    \b
    epochzero replay last
    epochzero replay last --step 40 --inspect
    epochzero replay last --bisect --program failure.py
    epochzero replay resnet --from snapshot --format json

    Exit code 0 if the failure was reproduced or the step was reached, 1 if not, 2 if the capture is
    missing or damaged.
    """
    replayed = _replay(
        _folder(job, store),
        environment=dict(os.environ),
        step=step,
        way=way,
        inspect=inspect,
        python=python,
        write=write,
        gpu=gpu,
        seconds=seconds,
        bisect=bisect or program is not None,
        on_differences=_print_differences,
    )
    if form == "json":
        click.echo(json.dumps(replayed.to_dict(), indent=2, ensure_ascii=False, default=str))
    else:
        from epochzero.cli.render_replay import replayed_lines

        for line in replayed_lines(replayed, step):
            click.echo(line)
        if bisect or program:
            from epochzero.cli.render_walk import walked_lines

            for line in walked_lines(replayed.walked):
                click.echo(line)
    if program is not None:
        _write(replayed, program, python, quiet=form == "json")
    context.exit(0 if replayed.reproduced else 1)


def _print_differences(differences: Sequence[str]) -> None:
    """Print them before the replay, which may take long, so that they can be fixed first."""
    from epochzero.cli import layout

    for line in layout.listed("Since then", differences):
        click.echo(line, err=True)


def _replay(folder: Path, **how: object) -> ReplayResult:
    from epochzero.cli.progress import DryRunProgress
    from epochzero.run.replay import replay

    with DryRunProgress("the job runs again"):
        return replay(folder, **how)  # type: ignore[arg-type]


def _write(replayed: ReplayResult, path: Path, python: Path | None, *, quiet: bool) -> None:
    from epochzero.cli.render_walk import program_lines
    from epochzero.run.replay.program import write_program

    if replayed.walked is None:
        raise InputError("the failing step was not reached, so no program can be written")
    written = write_program(replayed.walked, path, python)
    for line in program_lines(written) if not quiet else ():
        click.echo(line)


def _folder(job: str, store: str | None) -> Path:
    """Return the directory of a job's last attempt: of several ranks, the one with a capture."""
    if Path(job).is_dir():
        return Path(job)
    from epochzero.run.replay.capture import has_capture
    from epochzero.store.job_details import folders
    from epochzero.store.queries import find_job

    with opened(store) as database:
        found = folders(database, find_job(database, job))
    there = [folder for folder in found if has_capture(folder)]
    if not there:
        raise InputError(
            f"{job}: no capture exists; run it with `epochzero run --capture`, which stores one "
            "when the job fails"
        )
    return there[0]
