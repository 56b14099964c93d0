"""Libraries' modules are adjusted once they are imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from epochzero.check.dryrun.child.frames import Roots
from epochzero.check.dryrun.child.imports import Finder


def test_all_that_name_a_module_adjust_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library_to_adjust.py").write_text("steps = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = {"library_to_adjust": lambda module: module.steps.append("memory")}
    second = {"library_to_adjust": lambda module: module.steps.append("phases"), "other": print}
    finder = Finder(Roots([]), lambda *_: None, {}, first, second)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert importlib.import_module("library_to_adjust").steps == ["memory", "phases"]
