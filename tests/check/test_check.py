"""What `check` makes of the answers of its rules."""

from __future__ import annotations

import gc
import importlib
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.check import check
from epochzero.check.program.modules import LARGEST_BYTES
from epochzero.check.rule import Claims
from epochzero.check.rules import find
from epochzero.check.target.model import Distribution, Target
from epochzero.check.view.job import JobView
from tests.waiting import count_calls


def test_what_two_jobs_of_a_script_share_is_told_once_and_as_the_worse(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nif len(sys.argv) > 1:\n    print(undefined)\n")
    launch = "python train.py\npython train.py last\npython train.py first\n"
    (tmp_path / "launch.sh").write_text(launch)
    checked = check(["bash", "launch.sh"], Target("a platform"), folder=tmp_path)
    assert len(checked.jobs) == 3
    found = [(one.rule, one.place.line, one.severity) for one in checked.findings]
    assert found == [("undefined-name", 3, "error")]


@pytest.mark.parametrize("command", [["train.py"], ["-m", "table"]])
def test_a_module_that_is_too_large_is_unknown_and_not_missing(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "train.py").write_text("from table import ROWS\nprint(ROWS[0])\n")
    (tmp_path / "table.py").write_text(f"ROWS = [{'1, ' * (LARGEST_BYTES // 3)}]\n")
    installed = Target("a platform", distributions={})
    checked = check(["python", *command], installed, folder=tmp_path)
    assert not checked.findings
    assert ["is larger than 1 MB" in one.reason for one in checked.unknowns] == [True]


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    for was_on in (True, False):
        (gc.enable if was_on else gc.disable)()
        try:
            check(["python", "train.py"], Target("a platform"), folder=tmp_path)
            assert gc.isenabled() is was_on
            assert not gc.get_freeze_count()
        finally:
            gc.enable()


def test_the_collector_is_off_while_rules_are_asked_and_what_was_frozen_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def look(_: JobView) -> Claims:
        seen.append(gc.isenabled())
        yield from ()

    rule = replace(find("syntax-error"), check=look)
    monkeypatch.setattr(
        importlib.import_module("epochzero.check.pipeline"), "choose", lambda *_: (rule,)
    )
    (tmp_path / "train.py").write_text("print(1)\n")
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        check(["python", "train.py"], Target("a platform"), folder=tmp_path)
        assert seen == [False]
        assert gc.get_freeze_count() > frozen // 2
    finally:
        gc.unfreeze()


def test_a_module_of_many_classes_and_calls_takes_work_by_its_size(tmp_path: Path) -> None:
    """Eight times the code may take about eight times the calls, not 64 times."""

    def work(count: int) -> int:
        folder = tmp_path / str(count)
        folder.mkdir()
        part = (
            "class C{0}:\n    def run{0}(self, x):\n        import os as system\n"
            "        y = self.step{0}(x)\n        z = helper(y)\n        return z[0]\n\n"
            "    def step{0}(self, x):\n        return x if x else None\n\n"
        )
        text = "def helper(x):\n    return x\n\n" + "".join(map(part.format, range(count)))
        (folder / "train.py").write_text(text)
        return count_calls(
            lambda: check(["python", "train.py"], Target("a platform"), folder=folder)
        )

    work(10)
    assert work(400) < 12 * work(50)


def test_many_errors_of_a_module_take_work_by_their_number(tmp_path: Path) -> None:
    def work(count: int) -> int:
        text = "".join(f"print(missing{number})\n" for number in range(count))
        (tmp_path / "train.py").write_text(text)
        findings = 0

        def run() -> None:
            nonlocal findings
            found = check(
                ["python", "train.py"], Target("p"), folder=tmp_path, select=["undefined-name"]
            )
            findings = len(found.findings)

        calls = count_calls(run)
        assert findings == count
        return calls

    work(10)
    assert work(1600) < 12 * work(200)


def test_arguments_that_are_missing_together_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('data')\n"
        "parser.add_argument('--rate', required=True)\nprint(parser.parse_args())\n"
    )
    checked = check(["python", "train.py"], Target("a platform"), folder=tmp_path)
    (found,) = [one for one in checked.findings if one.rule == "argument-missing"]
    assert "data" in found.message
    assert "--rate" in found.message


def test_a_hint_ends_in_one_mark(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.sh").write_text("python trian.py\n")
    (found,) = check(["bash", "run.sh"], Target("a platform"), folder=tmp_path).findings
    assert found.message.endswith("did you mean train.py?")


def test_a_port_that_is_taken_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as server:
        option = f"--master_port={server.getsockname()[1]}"
        for launcher, expected in ((["torchrun"], 1), (["srun", "torchrun"], 0)):
            checked = check(
                [*launcher, option, "train.py"], folder=tmp_path, select=["port-taken-or-fixed"]
            )
            assert len(checked.findings) == expected


def test_a_script_without_a_program_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("if true; then\necho 1\n")
    found = check(["bash", "run.sh"], Target("there"), folder=tmp_path)
    assert [(one.rule, one.severity) for one in found.findings] == [("shell-syntax", "error")]
    assert found.unknowns == ()


def test_what_is_added_to_the_search_path_lies_in_the_directory_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "train.py").write_text("import sys\nsys.path.append('parts')\nimport yaml\n")
    target = Target("there", distributions={"numpy": Distribution("numpy", "2.1.0", ("numpy",))})
    found = check(
        ["python", "train.py"], target, folder=tmp_path, environment={"PYTHONPATH": "parts"}
    )
    assert [(one.rule, one.severity) for one in found.findings] == [("module-missing", "error")]
