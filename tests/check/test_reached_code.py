"""Code that the job does not reach with its arguments fails at most perhaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import Target, check

CHOICE = """\
import argparse

class A:
    def __init__(self):
        self.x = missing

class B:
    def __init__(self):
        self.x = 1

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["a", "b"], default="b")
args = parser.parse_args()
print(A().x if args.model == "a" else B().x)
"""


@pytest.mark.parametrize(("model", "severity"), [("a", "error"), ("b", "warning")])
def test_a_class_that_the_arguments_do_not_choose(
    tmp_path: Path, model: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(CHOICE)
    command = ["python", "train.py", "--model", model]
    found = check(command, Target("there"), folder=tmp_path, select=["undefined-name"])
    assert [(one.place.line, one.severity) for one in found.findings] == [(5, severity)]


@pytest.mark.parametrize(
    ("base", "lines"), [("IterableDataset", []), ("Dataset", [5]), ("Dataset, IterableDataset", [])]
)
@pytest.mark.parametrize("over", ["DataLoader(Items())", "Items()"])
def test_iteration_asks_for_items_by_index_only_without_iter(
    tmp_path: Path, base: str, lines: list[int], over: str
) -> None:
    (tmp_path / "train.py").write_text(
        "from torch.utils.data import DataLoader, Dataset, IterableDataset\n\n"
        f"class Items({base}):\n    def __getitem__(self, index):\n"
        "        raise NotImplementedError('by index')\n"
        "    def __len__(self):\n        return 1\n"
        f"\nfor one in {over}:\n    print(one)\n"
    )
    found = check(["python", "train.py"], Target("there"), folder=tmp_path)
    assert [one.place.line for one in found.findings if one.severity == "error"] == lines


def test_a_refused_argument_is_reported_where_the_parser_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\n\n"
        "parser.add_argument('--model', choices=['a'])\nargs = parser.parse_args()\n"
    )
    (tmp_path / "run.sh").write_text("\npython train.py --model b\n")
    places = [
        (one.place.path, one.place.line)
        for command in ("python train.py --model b", "python train.py --modle a", "bash run.sh")
        for one in check(command.split(), Target("there"), folder=tmp_path).findings
    ]
    assert places == [("train.py", 4), ("train.py", 5), ("run.sh", 2)]


def test_a_program_that_prints_its_help_does_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--data', required=True)\nargs = parser.parse_args()\nprint(1 / 0)\n"
    )
    lines = [
        [
            one.place.line
            for one in check(command.split(), Target("there"), folder=tmp_path).findings
        ]
        for command in ("python train.py --help", "python train.py --data d")
    ]
    assert lines == [[], [5]]
