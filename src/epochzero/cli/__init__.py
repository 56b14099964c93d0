"""The command line: each command parses, calls the library and prints; none has logic of its own.

A command's module is imported when the command is used, so that ``epochzero --help`` stays fast.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys

import click

from epochzero import __version__
from epochzero.cli.group import Group
from epochzero.errors import EpochZeroError

__all__ = ["main"]

# Command -> its line in `epochzero --help`. The module epochzero.cli.<command> has `command`.
_COMMANDS = {
    "check": "Say what will go wrong when a job runs, before it is submitted.",
    "run": "Run a job as it would run by itself, and keep what matters.",
    "replay": "Run the failing step of a captured job again.",
    "record": "Keep a job of Slurm's that was not run so, after its end.",
    "diagnose": "Find the first cause of a failed job in its logs.",
    "jobs": "List the jobs that were run, and how they are.",
    "show": "Show everything that is known of one job.",
    "export": "Write what is known of jobs as plain tables.",
    "send": "Send the jobs of this machine to a service.",
    "serve": "Keep the failures of a team in one place, with pages.",
    "watch": "Show what was seen of a training that was watched.",
    "locate": "Rank the places in a git repository where the bug of a report may be.",
    "study": "Make a report of many failures: tables, figures, statistics.",
    "label": "Label failures or bugs by hand, and say how far people agree.",
    "model": "Test a trained model itself: guard it, evaluate it.",
    "data": "Profile, validate, synthesize and sample data sets.",
    "target": "Describe the platform that jobs are checked against.",
    "github": "Comment on a pull request or an issue on GitHub.",
    "mcp": "Serve the same answers to coding agents.",
    "explain": "Say what a category, phase, fault, signature or rule means.",
    "signatures": "List and check failure signatures.",
}


class _Commands(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"epochzero.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="epochzero")
def _epochzero() -> None:
    """Find failures of deep-learning jobs, and what caused them."""
    from epochzero import compiled
    from epochzero.cli.cache import cache_folder

    if (folder := cache_folder()) is not None:
        compiled.use(folder / "compiled")


def main() -> None:
    """Runs the command line; exit code 2 for anything that the user has to correct."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A log may hold characters that the terminal does not have.
        sys.stdout.reconfigure(errors="replace")
    try:
        _epochzero.main(prog_name="epochzero", color=False if os.environ.get("NO_COLOR") else None)
    except EpochZeroError as error:
        click.echo(f"epochzero: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; nothing more can be said to it.
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        click.echo(f"epochzero: the answer cannot be written: {error.strerror}", err=True)
        # What Python still holds of it would fail once more at the end.
        os._exit(2)
