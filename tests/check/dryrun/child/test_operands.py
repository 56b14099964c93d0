"""Failures after shortened loops: which of them cannot result from what was left out."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from textwrap import indent

import pytest

from epochzero.check.dryrun.child.frames import Roots
from epochzero.check.dryrun.child.operands import is_comparable


@pytest.mark.parametrize(
    ("source", "comparable"),
    [
        ("history = {8: []}\nhistory[64]", True),
        ("stages, history = {0: 8}, {}\nfor e in range(1): history[stages[e]] = []\nhistory[64]", False),
        ("scores = {}\nfor e in range(1): scores[f'epoch{e}'] = e\nscores['epoch9']", False),
        ("config = {'lr': 1}\nseen = {}\nfor e in range(1): seen[e] = e\nconfig['rate']", True),
        ("best = {}\nif 'x' in best: best['top'] = 1\nbest['top']", False),
    ],
)  # fmt: skip
def test_a_key_that_the_job_computes_may_have_been_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, comparable: bool
) -> None:
    (tmp_path / "job_of_keys.py").write_text(f"def main():\n{indent(source, '    ')}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "job_of_keys", raising=False)
    with pytest.raises(KeyError) as raised:
        importlib.import_module("job_of_keys").main()
    assert is_comparable(raised.value, Roots([str(tmp_path)])) is comparable
