"""Options for commands that process many items: local processes, or a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def engine_options(only: str = "", *, also: str = "") -> Callable[[_Command], _Command]:
    """Add ``--engine``, ``--workers`` and ``--address``.

    Args:
        only: condition for these options, prepended to their help.
        also: alternative name of ``--workers``.
    """
    when = f"{only}. " if only else ""
    names = ("--workers", *also.split())
    options = (
        click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True,
                     help=f"{when}Use local processes or a Ray cluster."),
        click.option(*names, "workers", metavar="N", type=click.IntRange(1),
                     help=f"{when}Number of workers.  [default: one per core]"),
        click.option("--address", help="Address of the Ray cluster for --engine ray. If it is omitted, EpochZero starts a local Ray cluster."),
    )  # fmt: skip

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def quiet_ray() -> None:
    """Disable Ray's usage statistics: our users were not asked."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
