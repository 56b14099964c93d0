"""``epochzero diagnose``: finds the first cause of a failed job in its logs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click

from epochzero.cli.diagnose_many import check_many, diagnose_many, many_options
from epochzero.cli.formats import formats, names_of
from epochzero.cli.output import folder_option, format_option
from epochzero.cli.render_diagnosis import progress
from epochzero.diagnose import (
    Catalog,
    Diagnoser,
    Diagnosis,
    Facts,
    builtin,
    find_facts,
    load_folder,
    read_facts,
)
from epochzero.errors import InputError
from epochzero.logs.source import STDIN, find_logs


def _time(text: str) -> float:
    if re.fullmatch(r"\d{9,11}(\.\d+)?", text):
        return float(text)
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError as error:
        hint = "write 2024-05-01T12:00:00 or seconds since 1970"
        raise click.BadParameter(f"{text!r} is not a time; {hint}") from error
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


@click.command(name="diagnose")
# An unreadable file is reported by this package, in the same words everywhere.
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True, readable=False))
@click.option("--each", is_flag=True, help="Treat each path as a separate job.")
@format_option("Output format.", names_of("diagnoses"))
@click.option(
    "--top",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Show at most this many fixes, and this many consequences per rank.",
)
@click.option("--no-redact", is_flag=True, help="Do not redact tokens, keys and passwords.")
@folder_option(
    "--signatures",
    "folders",
    multiple=True,
    help="Directory of your own signatures; repeatable.",
    exists=True,
)
@click.option("--exit-code", type=int, help="Exit code of the job.")
@click.option(
    "--signal",
    "signal_number",
    type=click.IntRange(1, 64),
    help="Signal that killed the job.",
)
@click.option("--state", help="Scheduler state, such as OUT_OF_MEMORY or TIMEOUT.")
@click.option("--start", metavar="TIME", type=_time, help="Start time of the job.")
@click.option("--end", metavar="TIME", type=_time, help="End time of the job.")
@click.option(
    "--gpus", type=click.IntRange(0), help="Number of allocated GPUs, used to calculate the cost."
)
@click.option(
    "--facts",
    "facts_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with job facts: facts.json, or the output of sacct or kubectl.",
)
@many_options
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    each: bool,
    form: str,
    top: int,
    no_redact: bool,
    folders: tuple[Path, ...],
    exit_code: int | None,
    signal_number: int | None,
    state: str | None,
    start: float | None,
    end: float | None,
    gpus: int | None,
    facts_file: Path | None,
    out: str | None,
    engine: str,
    workers: int | None,
    address: str | None,
) -> None:
    """Find the root cause of a failed job in its logs.

    PATHS are log files (plain, .gz or .zst), directories of rank files, or - for standard input. Without
    --each, all paths belong to one job. The exit code, scheduler state and times come from the options, or
    from facts.json, sacct or kubectl output next to the logs.

    With --out, PATHS is one source of many jobs: a directory (each subdirectory and each log in it is a
    job), an archive, a Parquet file with a column `log`, or s3://bucket/prefix. RESULT receives Parquet
    files with one row per job. To resume an interrupted run, repeat the command.

    \b
    epochzero diagnose train.log
    epochzero diagnose slurm-4242.out --exit-code 137 --gpus 8
    epochzero diagnose logs/ --format json
    kubectl logs trainer-0 | epochzero diagnose -
    epochzero diagnose all-logs/ --out diagnoses/
    epochzero diagnose s3://bucket/logs --out s3://bucket/diagnoses --engine ray

    Exit code 0 if a diagnosis was made, 2 if the input is invalid.
    """
    check_many(context, paths, out)
    own = Catalog(())
    for folder in folders:
        own = own | Catalog(load_folder(folder))
    if out is not None:
        diagnose_many(
            paths[0], out, form, engine=engine, workers=workers, address=address, signatures=own,
            redact=not no_redact,
        )  # fmt: skip
        return
    catalog = builtin() | own
    diagnoser = Diagnoser(catalog, redact=not no_redact, look_around=True)
    given = Facts(exit_code, signal_number, state, start, end, gpus)
    if facts_file is not None:
        given = given | read_facts(facts_file)
    if not each:
        diagnosis = _diagnosis(diagnoser, [Path(path) for path in paths], given, find_facts)
        formats()[form].diagnoses([diagnosis], top=top, many=False)
        return
    failed: list[InputError] = []
    found = _each(diagnoser, map(Path, paths), given, failed)
    formats()[form].diagnoses(found, top=top, many=True)
    if failed:
        sys.exit(2)


def _each(
    diagnoser: Diagnoser, paths: Iterable[Path], given: Facts, failed: list[InputError]
) -> Iterator[Diagnosis]:
    """Yield a diagnosis for each usable path; report each unusable one and continue."""
    # A directory of many logs is searched for facts once.
    facts_in = cache(lambda folder: find_facts([folder]))

    def search(files: Iterable[Path]) -> Facts:
        return next((facts_in(f if f.is_dir() else f.parent) for f in files), Facts())

    for path in paths:
        try:
            yield _diagnosis(diagnoser, [path], given, search)
        except InputError as error:
            click.echo(f"epochzero: {error}", err=True)
            failed.append(error)


def _diagnosis(
    diagnoser: Diagnoser,
    paths: list[Path],
    given: Facts,
    search: Callable[[Iterable[Path]], Facts],
) -> Diagnosis:
    logs = find_logs(paths)
    files = [path for path in paths if path != STDIN]
    with progress(logs) as counted:
        return diagnoser.diagnose(counted, given | search(files))
