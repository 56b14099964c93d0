"""``epochzero diagnose --out``: many logs into one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from epochzero import taxonomy
from epochzero.cli.engine import engine_options, quiet_ray
from epochzero.cli.layout import counted, wrapped
from epochzero.cli.line import line
from epochzero.cli.output import echo_json
from epochzero.logs.source import STDIN

if TYPE_CHECKING:
    from epochzero.diagnose import Signature
    from epochzero.scale import Diagnosed


FORMATS = ("text", "json")
_OF_ONE_JOB = (
    "each",
    "top",
    "exit_code",
    "signal_number",
    "state",
    "start",
    "end",
    "gpus",
    "facts_file",
)
_OF_MANY = ("engine", "workers", "address")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def many_options(command: _Command) -> _Command:
    """``--out`` and what belongs to it."""
    out = click.option("-o", "--out", metavar="RESULT",
                       help="Diagnose many jobs and write the results to this directory or s3://...")  # fmt: skip
    return out(engine_options("With --out")(command))


def check_many(context: click.Context, paths: Sequence[str], out: str | None) -> None:
    """Refuses options that do not go together.

    Raises:
        click.UsageError: they do not.
    """
    given = [name for name in context.params if _is_given(context, name)]
    if out is None:
        if lone := [name for name in given if name in _OF_MANY]:
            raise click.UsageError(f"--{lone[0]} requires --out", context)
        return
    if wrong := [name for name in given if name in _OF_ONE_JOB]:
        option = next(param for param in context.command.params if param.name == wrong[0])
        raise click.UsageError(
            f"{option.opts[0]} applies to one job and cannot be used with --out", context
        )
    if len(paths) != 1 or paths[0] == str(STDIN):
        raise click.UsageError(
            "--out requires exactly one SOURCE: a directory, an archive, a Parquet file or s3://...",
            context,
        )
    if context.params["form"] not in FORMATS:
        raise click.UsageError("with --out, the summary format must be text or json", context)
    if context.params["address"] and context.params["engine"] != "ray":
        raise click.UsageError("--address requires --engine ray", context)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def diagnose_many(
    source: str,
    out: str,
    form: str,
    *,
    engine: str,
    workers: int | None,
    address: str | None,
    signatures: Iterable[Signature],
    redact: bool,
) -> None:
    """Diagnoses the logs of SOURCE into RESULT, and prints what there is."""
    from epochzero.scale import diagnose_all

    quiet_ray()
    with line() as shown:
        done = diagnose_all(
            source, out, engine=engine, workers=workers, address=address, signatures=signatures,
            redact=redact, on_progress=partial(shown.show, "logs diagnosed"),
        )  # fmt: skip
    if form == "json":
        echo_json(done.to_dict())
    else:
        _write_text(done)


def _write_text(done: Diagnosed) -> None:
    outcomes = (f"{count:,} {name.replace('_', ' ')}" for name, count in done.outcomes.items())
    click.echo(wrapped("Logs", f"{done.logs:,}: {', '.join(outcomes)}"))
    failures = sum(done.categories.values())
    titles = taxonomy.categories()
    shares = [
        f"{titles[name].title} {100 * n / failures:.1f}\xa0%"
        for name, n in list(done.categories.items())[:5]
    ]
    if shares:
        click.echo(wrapped("Categories", ", ".join(shares)))
    before = f", {done.parts_before:,} of them by an earlier run" if done.parts_before else ""
    click.echo(wrapped("Result", f"{done.out}: {counted(done.parts, 'part')}{before}"))
