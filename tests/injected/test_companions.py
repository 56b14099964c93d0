"""Companions begin in a job's own process, and never keep it from running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from epochzero.injected.companions import AT_START, Companion, noted, with_companions

SAYS = "epochzero.injected.identity:ByIdentity"
"""A function of ours that can be called with two arguments must fail to be one: it takes none."""


def _run(tmp_path: Path, companions: list[Companion], program: str) -> str:
    environment = with_companions(os.environ, companions, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_what_waits_for_a_module_begins_when_it_was_imported(tmp_path: Path) -> None:
    companions = [Companion(AT_START, "epochzero.nothing:begin"), Companion("colorsys", SAYS)]
    assert (
        _run(tmp_path, companions, "import colorsys; print(colorsys.rgb_to_yiq(0, 0, 0)[0])")
        == "0.0\n"
    )
    told = noted(tmp_path)
    assert told.reached >= {AT_START, "colorsys"}
    assert [one.partition(" ")[0] for one in told.failed] == ["epochzero.nothing:begin", SAYS]


def test_a_module_that_is_never_imported_begins_nothing(tmp_path: Path) -> None:
    _run(tmp_path, [Companion("colorsys", SAYS)], "pass")
    told = noted(tmp_path)
    assert AT_START in told.reached
    assert "colorsys" not in told.reached
    assert not told.failed


def test_nothing_is_noted_where_no_python_began(tmp_path: Path) -> None:
    assert with_companions({"A": "1"}, [], tmp_path) == {"A": "1"}
    assert not noted(tmp_path).reached


def test_a_module_that_is_not_there_stays_away(tmp_path: Path) -> None:
    program = "try:\n import no_such_module\nexcept ImportError as error: print(error.name)"
    assert _run(tmp_path, [Companion("no_such_module", SAYS)], program) == "no_such_module\n"
