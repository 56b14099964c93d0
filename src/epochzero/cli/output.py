"""Options that several commands have. Output that cannot be written is rejected before the work starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epochzero.cli.layout import wrapped

if TYPE_CHECKING:
    from epochzero.reports import StudyResult

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(
    help: str, choices: Sequence[str] = ("text", "json")
) -> Callable[[_Command], _Command]:
    """``--format``, for every command whose result other programs may read."""
    return click.option(
        "-f",
        "--format",
        "form",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=help,
    )


def seed_option(help: str = "Random seed.") -> Callable[[_Command], _Command]:
    """``--seed``, for every command that draws random numbers."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help=help
    )


def out_option(*, required: bool = True) -> Callable[[_Command], _Command]:
    """``--out``, for every command that writes a report."""
    return click.option(
        "-o",
        "--out",
        metavar="DIR",
        type=OutputFolder(),
        required=required,
        help="Output directory; existing files with the same names are overwritten.",
    )


def file_option(
    *names: str, help: str, exists: bool = False, **attributes: Any
) -> Callable[[_Command], _Command]:
    """An option whose value is a file to read."""
    kind = click.Path(path_type=Path, dir_okay=False, exists=exists)
    return click.option(*names, metavar="FILE", type=kind, help=help, **attributes)


def folder_option(
    *names: str, help: str, exists: bool = False, **attributes: Any
) -> Callable[[_Command], _Command]:
    """An option whose value is a directory."""
    kind = click.Path(path_type=Path, file_okay=False, exists=exists)
    return click.option(*names, metavar="DIR", type=kind, help=help, **attributes)


def write_study(
    studied: StudyResult, out: Path, form: str, write_text: Callable[[Mapping[str, Any]], None]
) -> None:
    """Write the report of a study to a directory, and print its summary: as JSON, or by ``write_text``."""
    from epochzero.reports import write_report

    files = write_report(studied.report, out)
    if form == "json":
        paths = [path.relative_to(out).as_posix() for path in files]
        echo_json({**studied.summary, "folder": str(out), "files": paths})
        return
    write_text(studied.summary)
    click.echo(wrapped("Report", str(out / "report.html")))


def echo_json(value: object, *, indent: int | None = 2) -> None:
    """Print JSON; without ``indent`` on one line."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    # A path may contain bytes that are not text; escapes preserve them.
    click.echo(text.encode("utf-8", "backslashreplace").decode())


class OutputFile(click.Path):
    """A file that can be written: its directory exists, and its name has the required suffix.

    Args:
        suffix: required suffix (``.svg``); empty for any.
    """

    def __init__(self, suffix: str = "") -> None:
        super().__init__(path_type=Path, dir_okay=False, writable=True)
        self.suffix = suffix

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path.

        Raises:
            click.BadParameter: it cannot be written.
        """
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder, problem = path.parent, ""
        if self.suffix and path.suffix != self.suffix:
            kind, better = self.suffix[1:].upper(), path.with_suffix(self.suffix)
            self.fail(f"{path}: the output is {kind}; name it {better}", param, ctx)
        if not folder.is_dir():
            problem = f"directory {folder} does not exist"
        elif not path.exists() and not os.access(folder, os.W_OK):
            problem = f"directory {folder} is not writable"
        if problem:
            self.fail(f"{path} cannot be written: {problem}", param, ctx)
        return path


class OutputFolder(click.Path):
    """A writable directory, which need not exist yet."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path.

        Raises:
            click.BadParameter: it cannot be written to.
        """
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            self.fail(
                f"{path} cannot be written: {there} is not a writable directory",
                param,
                ctx,
            )
        return path
