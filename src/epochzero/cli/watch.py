"""``epochzero watch``: shows and exports the records of a watched training; spectra of neurons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from epochzero.cli import render_watch
from epochzero.cli.group import CommandGroup
from epochzero.cli.output import OutputFile, echo_json, folder_option, format_option
from epochzero.cli.store_options import opened, store_option
from epochzero.cli.watch_spectrum import make_spectrum
from epochzero.errors import InputError, writing

if TYPE_CHECKING:
    from epochzero.run.watch.history import TrainingHistory


@click.group(cls=CommandGroup, name="watch")
def command() -> None:
    """Show the results of a training run that was watched with `epochzero run --watch`.

    \b
    epochzero watch show last --html page.html
    epochzero watch export last --tensorboard runs/last
    epochzero watch spectrum passing.jsonl --failing failing.jsonl
    """


command.add_command(make_spectrum)


@command.command(name="show")
@click.argument("training", metavar="JOB|FILE.jsonl")
@click.option("--html", type=OutputFile(".html"), help="Write an HTML page with the curves.")
@click.option(
    "--method",
    metavar="NAME",
    default="epochzero",
    show_default=True,
    help="Detection method: epochzero, deeplocalize, deepdiagnosis or deepfd.",
)
@format_option("Output format.")
@store_option
def show(training: str, html: Path | None, method: str, form: str, store: str | None) -> None:
    """Report the training faults found in JOB's last attempt, or in a file of records.

    JOB is an ID or a unique prefix of it, a name, or `last`.

    \b
    epochzero watch show last
    epochzero watch show watch.jsonl --html page.html

    Exit code 0, or 2 if the job or the file does not exist or was not watched.
    """
    from epochzero.run.watch.model import to_dict
    from epochzero.study.training_faults import by_name

    conclude = by_name(method)
    file, name = _records(training, store)
    history = _history(file)
    watched = conclude(history)
    if html is not None:
        from epochzero.run.watch.page import page

        with writing(html):
            html.write_text(page(history, watched, name), encoding="utf-8")
    if form == "json":
        echo_json(to_dict(watched))
        return
    for line in render_watch.verdict(watched):
        click.echo(line)


@command.command(name="export")
@click.argument("training", metavar="JOB|FILE.jsonl")
@folder_option(
    "--tensorboard",
    "folder",
    required=True,
    help="Write the event files to DIR, for `tensorboard --logdir DIR`.",
)
@store_option
def export(training: str, folder: Path, store: str | None) -> None:
    """Export the curves of a training run for another tool.

    \b
    epochzero watch export last --tensorboard runs/last

    Exit code 0, or 2 if there is nothing to write or tensorboard is not installed.
    """
    from epochzero.run.watch.export import write_tensorboard

    count = write_tensorboard(_history(_records(training, store)[0]), folder)
    click.echo(f"{folder}: {count:,} curves")


def _records(training: str, store: str | None) -> tuple[Path, str]:
    """Return the file of records, given or of a job's last attempt, and the name of the training."""
    if training.endswith(".jsonl") or Path(training).is_file():
        return Path(training), Path(training).name
    from epochzero.run.watch.live import RECORDS_FILE
    from epochzero.store.job_details import folders, job_details
    from epochzero.store.queries import find_job

    with opened(store) as database:
        identity = find_job(database, training)
        name = job_details(database, identity).summary.name
        found = [folder / RECORDS_FILE for folder in folders(database, identity)]
    there = [path for path in found if path.is_file()]
    if not there:
        raise InputError(
            f"{training}: no watch records exist: its training was not watched, or the records were deleted"
        )
    return there[0], name


def _history(path: Path) -> TrainingHistory:
    from epochzero.run.watch.record_reader import RecordFileReader

    following = RecordFileReader(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    following.read_all()
    history = following.history()
    if not history.count:
        raise InputError(f"{path} contains no training records")
    return history
