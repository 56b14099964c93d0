"""`%load_ext epochzero`: in a notebook, the diagnosis of a failed cell appears under its traceback."""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import Any

import click

from epochzero.cli.render_diagnosis import lines
from epochzero.diagnose.diagnoser import Diagnoser
from epochzero.diagnose.facts import Facts
from epochzero.logs.source import Log

FIXES = 2


def load_ipython_extension(shell: Any) -> None:
    """Diagnose each cell that fails from now on.

    Args:
        shell: an IPython ``InteractiveShell``.
    """
    unload_ipython_extension(shell)  # A second `%load_ext` must not print everything twice.
    shell.events.register("post_run_cell", _diagnose_cell)


def unload_ipython_extension(shell: Any) -> None:
    """Stop diagnosing cells; does nothing if they are not diagnosed."""
    if _diagnose_cell in shell.events.callbacks["post_run_cell"]:
        shell.events.unregister("post_run_cell", _diagnose_cell)


def _diagnose_cell(result: Any) -> None:
    error = result.error_in_exec
    if not isinstance(error, Exception) or error.__traceback__ is None:
        return  # It ran, was interrupted, or does not parse.
    # The first frame is IPython's own.
    frames = error.__traceback__.tb_next or error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, frames))
    found = Diagnoser().diagnose(
        [Log("cell", text=text.encode("utf-8", "replace"))], Facts(exit_code=1)
    )
    cells = _cells(error)
    click.echo()
    # The error stands in the traceback, and nothing else has the cell's fingerprint.
    for line in lines(replace(found, root=None, fingerprint=""), FIXES, advice=False):
        for file, cell in cells.items():
            line = line.replace(file, cell)
        click.echo(line)


def _cells(error: BaseException) -> dict[str, str]:
    """The cells of a traceback as IPython's own traceback names them (`Cell In[3]`), by the names of their files."""
    from IPython.core.interactiveshell import InteractiveShell

    compiler = InteractiveShell.instance().compile
    files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    named = ((file, compiler.format_code_name(file)) for file in files)
    return {file: " ".join(name) for file, name in named if name is not None}
