"""Every refusal of the table is one of the library's own, and what is told is what the library does."""

from __future__ import annotations

import importlib
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import epochzero
from epochzero.check import check

TABLE = tomllib.loads(files("epochzero.check.rules").joinpath("arguments_refused.toml").read_text())
REFUSALS = [(call, refusal) for call in TABLE["call"] for refusal in call["refuses"]]
WRITTEN = [(call, refusal) for call, refusal in REFUSALS if "bad" in refusal]
NAMES = [f"{call['names'][0]}-{refusal['when']}" for call, refusal in REFUSALS]
NAMES_WRITTEN = [f"{call['names'][0]}-{refusal['when']}" for call, refusal in WRITTEN]


def evaluated(code: str) -> Any:
    top = code.partition(".")[0]
    library = pytest.importorskip(top)
    if top == "sklearn":
        importlib.import_module("sklearn.model_selection")
    return eval(code, {top: library})


@pytest.mark.parametrize(("call", "refusal"), WRITTEN, ids=NAMES_WRITTEN)
@pytest.mark.filterwarnings("ignore")
def test_the_library_refuses_the_one_and_takes_the_other(call: Any, refusal: Any) -> None:
    kind = refusal["error"].partition(":")[0]
    evaluated(refusal["good"])
    with pytest.raises(Exception) as refused:  # noqa: PT011
        evaluated(refusal["bad"])
    assert type(refused.value).__name__ in (kind, "InvalidParameterError")


@pytest.mark.parametrize(("call", "refusal"), WRITTEN, ids=NAMES_WRITTEN)
def test_the_one_is_told_and_the_other_is_not(call: Any, refusal: Any, tmp_path: Path) -> None:
    for code, count in ((refusal["bad"], 1), (refusal["good"], 0)):
        top = code.partition(".")[0]
        (tmp_path / "train.py").write_text(
            f"import {top}\nimport {code.partition('(')[0].rpartition('.')[0]}\n{code}\n"
        )
        (tmp_path / "target.toml").write_text("format = 1\n")
        found = check(["python", "train.py"], tmp_path / "target.toml", folder=tmp_path,
                      select=["arguments-refused"], environment={})  # fmt: skip
        assert [one.severity for one in found.findings] == ["error"] * count


@pytest.mark.parametrize(("call", "refusal"), REFUSALS, ids=NAMES)
def test_diagnose_says_the_same_category_of_the_error(
    call: Any, refusal: Any, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
        f"{refusal['error']}\n"
    )
    assert epochzero.diagnose(log).category == refusal.get("category", "illegal_argument")


def test_what_is_refused_is_report_once(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\ntorch.nn.Conv2d(6, 8, 3, groups=4)\n")
    (tmp_path / "target.toml").write_text("format = 1\n")
    found = check(["python", "train.py"], tmp_path / "target.toml", folder=tmp_path)
    assert [one.rule for one in found.findings] == ["arguments-refused"]
