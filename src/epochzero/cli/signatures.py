"""``epochzero signatures``: list and check failure signatures."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from epochzero.cli.group import CommandGroup
from epochzero.cli.layout import counted


@click.group(cls=CommandGroup, name="signatures")
def command() -> None:
    """List and check failure signatures."""


@command.command(name="list")
@click.option("--category", help="List only signatures of this category.")
@click.option("--role", help="List only signatures with this role (cause, cascade, wrapper, ...).")
def list_(category: str | None, role: str | None) -> None:
    """List the built-in signatures."""
    from epochzero.diagnose import builtin

    for signature in sorted(builtin(), key=lambda s: s.name):
        if category in (None, signature.category) and role in (None, signature.role):
            word = signature.category or signature.role
            click.echo(f"{signature.name:<48}{word:<24}{signature.title}")


@command.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False, exists=True)
)
def check(folder: Path) -> None:
    """Validate the signatures in DIR: fields, terms, examples and counter-examples.

    Exit code 1 if a signature is invalid.
    """
    from epochzero.diagnose.check import check_folder

    problems, count = check_folder(folder)
    for problem in problems:
        click.secho(problem, fg="red", err=True)
    click.echo(f"{counted(count, 'signature')}, {counted(len(problems), 'problem')}")
    sys.exit(1 if problems else 0)
