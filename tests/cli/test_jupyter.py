"""`%load_ext epochzero` in a real IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def shell() -> Iterator[Any]:
    IPython = pytest.importorskip("IPython.core.interactiveshell")  # noqa: N806
    made = IPython.InteractiveShell.instance()
    made.run_line_magic("load_ext", "epochzero")
    yield made
    made.run_line_magic("unload_ext", "epochzero")
    IPython.InteractiveShell.clear_instance()


def test_a_cell_that_fails_is_diagnosed_under_its_traceback(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("def read():\n    return open('absent.csv')", store_history=True)
    shell.run_cell("read()", store_history=True)
    traceback, _, diagnosis = capsys.readouterr().out.partition("FAILED  Path Not Found")
    assert "FileNotFoundError" in traceback
    assert "Your code   Cell In[1]:2 in read" in diagnosis
    assert "Make sure that 'absent.csv' exists" in diagnosis


@pytest.mark.parametrize("cell", ["1 + 1", "raise KeyboardInterrupt", "def ("])
def test_nothing_is_printed_of_other_cells(
    shell: Any, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    shell.run_cell(cell)
    assert "FAILED" not in capsys.readouterr().out


def test_a_cell_is_diagnosed_once_and_no_more_after_unloading(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_line_magic("reload_ext", "epochzero")
    shell.run_cell("{}['fox']")
    assert capsys.readouterr().out.count("FAILED") == 1
    shell.run_line_magic("unload_ext", "epochzero")
    shell.run_cell("{}['fox']")
    assert "FAILED" not in capsys.readouterr().out
