"""What is asked of ruff, and what becomes of its answers."""

from __future__ import annotations

import ast
import importlib
import json
import tempfile
from pathlib import Path

import pytest

from epochzero.check import check
from epochzero.check.program.model import Module
from epochzero.check.rules import ruff
from epochzero.check.target.model import Target

WRONG = {
    "F404": "import os\nfrom __future__ import annotations\n",
    "F406": "def f():\n    from os import *\n",
    "F407": "from __future__ import braces_at_last\n",
    "F501": "'%(x' % {'x': 1}\n",
    "F502": "'%(x)s' % (1,)\n",
    "F505": "'%(x)s' % {'y': 1}\n",
    "F506": "'%(x)s %s' % {'x': 1}\n",
    "F507": "'%s %s' % (1,)\n",
    "F509": "'%y' % 1\n",
    "F521": "'{'.format(1)\n",
    "F524": "'{} {}'.format(1)\n",
    "F525": "'{0} {}'.format(1, 2)\n",
    "F622": "*a, *b = [1]\n",
    "F701": "break\n",
    "F702": "continue\n",
    "F704": "yield 1\n",
    "F706": "return\n",
    "F707": "try:\n    pass\nexcept:\n    pass\nexcept ValueError:\n    pass\n",
    "F821": "print(missing)\n",
    "F823": "x = 1\n\ndef f():\n    print(x)\n    x = 2\n",
}


def _module(text: str, name: str = "train.py") -> Module:
    return Module("__main__", name, Path("/job") / name, text, ast.Module([], []))


def _codes(text: str) -> set[str]:
    return {one.code for one in ruff.RuffProcess([_module(text)], (3, 12)).messages()}


@pytest.mark.parametrize("code", sorted(ruff.CODES))
def test_each_code_is_found_and_its_words_are_known(code: str) -> None:
    assert code in _codes(WRONG[code])


def test_no_comment_and_no_settings_of_the_job_silence_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ruff.toml").write_text("exclude = ['*']\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUFF_OUTPUT_FILE", str(tmp_path / "written"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    text = "# ruff: noqa\n# flake8: noqa\nprint(missing)  # noqa: F821\n"
    assert _codes(text) == {"F821"}
    assert not (tmp_path / "written").exists()


def test_names_of_files_and_encodings_of_the_job_do_not_matter() -> None:
    modules = [
        _module("# -*- coding: latin-1 -*-\nname = 'é'; print(missing)\n", "--fix\n.ipynb"),
        _module("pass\r\nprint(__path__, other)\r\n", "__init__.py"),
    ]
    found = ruff.RuffProcess(modules, (3, 12)).messages()
    assert [(one.module, one.line, one.values) for one in found] == [
        (modules[0], 2, ("missing",)),
        (modules[1], 2, ("other",)),
    ]
    # Bytes, as ast counts: é has two.
    line = modules[0].lines[1].encode()
    assert line[found[0].column :].startswith(b"missing")


@pytest.mark.parametrize("python", [None, (2, 7), (3, 7, 9), (3, 13), (4, 0)])
def test_every_version_of_python_can_be_asked_for(python: tuple[int, ...] | None) -> None:
    assert [
        one.code for one in ruff.RuffProcess([_module("print(missing)\n")], python).messages()
    ] == ["F821"]


def test_built_in_names_are_those_of_the_target() -> None:
    modules = [_module("raise ExceptionGroup('', [])\n")]
    assert [one.code for one in ruff.RuffProcess(modules, (3, 10)).messages()] == ["F821"]
    assert not ruff.RuffProcess(modules, (3, 11)).messages()


def test_a_program_that_is_not_there_or_fails_is_unknown_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("print(missing)\n")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no such luck >&2\nexit 2\n")
    broken.chmod(0o755)
    for program, reason in (
        (str(tmp_path / "absent"), "No such file"),
        (str(broken), "no such luck"),
        ("/bin/echo", "Expecting value"),
    ):
        monkeypatch.setattr(ruff, "find_ruff_bin", lambda program=program: program)
        found = check(["python", "train.py"], Target("a platform"), folder=tmp_path)
        told = {one.what: one.reason for one in found.unknowns}
        assert reason in told["undefined-name"]
        assert told.keys() == {"undefined-name", "format-arguments", "syntax-error"}


def test_it_is_ended_where_nobody_asks_for_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(ruff, "find_ruff_bin", lambda: str(slow))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "train.py").write_text("print(1)\n")
    monkeypatch.setattr(importlib.import_module("epochzero.check.rules.engine"), "RULES_S", 0.0)
    found = check(
        ["python", "train.py"], Target("a platform"), folder=tmp_path, select=["undefined-name"]
    )
    assert [one.what for one in found.unknowns] == ["undefined-name"]
    assert not list(tmp_path.glob("epochzero-*"))


def test_its_answer_may_be_asked_for_again() -> None:
    asked = ruff.RuffProcess([_module("print(missing)\n")], (3, 12))
    assert asked.messages() == asked.messages() != []


def test_words_that_are_not_known_are_not_guessed() -> None:
    said = {"code": "F507", "message": "something else", "filename": "0.py"}
    with pytest.raises(ValueError, match="something else"):
        ruff._message({**said, "location": json.loads('{"row": 1, "column": 1}')}, [_module("")])
