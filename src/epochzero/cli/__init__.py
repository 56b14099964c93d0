"""The command line: each command parses, calls the library and prints; none has logic of its own.

A command's module is imported when the command is used, so that ``epochzero --help`` stays fast.
A distribution of its own adds a command by an entry point of the group ``epochzero.commands``.
"""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from epochzero import __version__, platform
from epochzero.cli.group import CommandGroup
from epochzero.errors import EpochZeroError, InputError

# Command -> its line in `epochzero --help`. The module epochzero.cli.<command> has `command`, unless
# another distribution adds it.
_COMMANDS = {
    "check": "Predict failures of a job before it is submitted.",
    "run": "Run a job, record it, and diagnose it if it fails.",
    "replay": "Rerun the failing step of a captured job.",
    "record": "Record a finished Slurm job that was not started with `epochzero run`.",
    "diagnose": "Find the root cause of a failed job in its logs.",
    "jobs": "List jobs and their status.",
    "show": "Show the details of one job.",
    "export": "Export jobs as JSON Lines, CSV or Parquet tables.",
    "send": "Send the jobs of this machine to a team server.",
    "serve": "Run a team server that collects failures and serves a web UI.",
    "watch": "Show the results of a watched training run.",
    "locate": "Rank the files, functions or lines that may contain a reported bug.",
    "study": "Generate a report of many failures: tables, figures, statistics.",
    "label": "Label failures or bugs by hand and measure agreement.",
    "model": "Test a trained model: robustness, fairness, out-of-scope inputs.",
    "data": "Profile, validate, synthesize and sample data sets.",
    "target": "Describe the platform that jobs are checked against.",
    "github": "Comment on GitHub pull requests and issues.",
    "mcp": "Start an MCP server for coding agents.",
    "doctor": "Report what works on this machine, and what to install.",
    "explain": "Explain a category, phase, fault, signature or rule.",
    "signatures": "List and check failure signatures.",
}

# Commands of other distributions.
_ADDED = ("model",)
# Command -> the extra that installs what it needs.
_EXTRAS = {
    "check": "data",
    "data": "data",
    "export": "store",
    "github": "locate",
    "jobs": "store",
    "label": "study",
    "locate": "locate",
    "model": "models",
    "record": "store",
    "replay": "store",
    "show": "store",
    "study": "study",
    "watch": "watch",
}
# Commands that work only where jobs can be started and processes forked.
_OF_POSIX = ("run", "record", "replay", "serve")


class _Commands(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name in _ADDED:
            return _added(cmd_name)
        if cmd_name in _OF_POSIX and platform.WHY_NO_JOBS:
            raise InputError(platform.WHY_NO_JOBS.replace("run", cmd_name, 1))
        module = importlib.import_module(f"epochzero.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _added(name: str) -> click.Command:
    """Return a command of another distribution.

    Raises:
        InputError: it is not installed.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group="epochzero.commands", name=name):
        command: click.Command = entry.load()
        return command
    raise InputError(_needs(name, "another package"))


def for_this_install(text: str) -> str:
    """Return a text with its `pip install` of an extra as pipx or uv spell it, if one of them installed this."""
    folders = Path(sys.prefix).parts
    pip = "pip install 'epochzero["
    if "pipx" in folders:
        return text.replace(pip, f"pipx install --force {pip[12:]}")
    if {"uv", "tools"} <= {*folders}:
        return text.replace(pip, f"uv tool install {pip[12:]}")
    return text


def _needs(command: str, package: str) -> str:
    extra = _EXTRAS[command]
    return f"`epochzero {command}` requires {package}: pip install 'epochzero[{extra}]'"


_FIRST_COMMANDS = """\
EpochZero predicts, detects and diagnoses failures of deep-learning jobs.

  A job failed. Why?                       epochzero diagnose train.log
  Will this job fail?                      epochzero check -- python train.py
  Run it, and diagnose it if it fails:     epochzero run -- python train.py

`epochzero --help` lists all commands, `epochzero doctor` what works on this machine."""


@click.command(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="epochzero")
@click.pass_context
def commands(context: click.Context) -> None:
    """Predict, detect and diagnose failures of deep-learning jobs."""
    if context.invoked_subcommand is None:
        click.echo(_FIRST_COMMANDS)
        return
    from epochzero import compiled
    from epochzero.cli.cache import cache_folder

    if (folder := cache_folder()) is not None:
        compiled.use(folder / "compiled")


def main() -> None:
    """Runs the command line; exit code 2 for anything that the user has to correct."""
    if sys.argv[1:2] == ["check"]:
        from epochzero.cli.check_client import exit_code

        # A check server has loaded what this process would load now.
        if (code := exit_code(sys.argv[1:])) is not None:
            sys.exit(code)
    run_command()


def run_command() -> None:
    """Runs the command line in this process."""
    # Imports make many objects and no garbage: looking for it takes a sixth of the time of `epochzero jobs`.
    gc.set_threshold(20_000, 20, 20)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A log may hold characters that the terminal does not have.
        sys.stdout.reconfigure(errors="replace")
    try:
        with _exiting_on_signals():
            commands.main(
                prog_name="epochzero", color=False if os.environ.get("NO_COLOR") else None
            )
    except EpochZeroError as error:
        click.echo(for_this_install(f"epochzero: {error}"), err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        command = next((word for word in sys.argv[1:] if word in _COMMANDS), "")
        if package == "epochzero" or command not in _EXTRAS:
            raise
        click.echo(for_this_install(f"epochzero: {_needs(command, package)}"), err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output (head, less) has exited.
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        click.echo(f"epochzero: cannot write the output: {error.strerror}", err=True)
        # What Python still holds of it would fail once more at the end.
        os._exit(2)
    finally:
        _drop_output_of_closed_terminals()


@contextmanager
def _exiting_on_signals() -> Iterator[None]:
    """Exit after a signal as after Ctrl-C: temporary directories are removed, child processes killed."""
    numbers = [signal.SIGTERM, *([] if sys.platform == "win32" else [signal.SIGHUP])]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _drop_output_of_closed_terminals() -> None:
    """Drops what a terminal that is gone cannot show: Python would exit with 120 in place of our code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError as error:
            if error.errno == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
