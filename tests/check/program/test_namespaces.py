"""Names that a program binds under a computed name: nothing is claimed from their earlier values."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import Target, check
from tests.check.program.conftest import Read

CONFIGURATOR = """\
import sys
from ast import literal_eval

for arg in sys.argv[1:]:
    if "=" not in arg:
        exec(open(arg).read())
    else:
        key, value = arg[2:].split("=")
        if key in globals():
            try:
                globals()[key] = literal_eval(value)
            except (SyntaxError, ValueError):
                globals()[key] = value
"""
TRAIN = """\
dtype = "float16"
batch = 3
exec(open("configurator.py").read())
print({"float32": 1, "bfloat16": 2}[dtype])
assert batch % 2 == 0, batch
"""


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ((), [4, 5]),
        (("--dtype=float32", "--batch=4"), []),
        (("--dtype=float64", "--batch=4"), [4]),
        (("small.py",), []),
        (("small.py", "--dtype=float16"), [4]),
    ],
)
def test_a_file_that_is_executed_sets_the_names_of_its_caller(
    tmp_path: Path, arguments: tuple[str, ...], lines: list[int]
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "configurator.py").write_text(CONFIGURATOR)
    (tmp_path / "small.py").write_text("dtype = 'bfloat16'\nbatch = 2\n")
    found = check(["python", "train.py", *arguments], Target("there"), folder=tmp_path)
    assert sorted(one.place.line for one in found.findings) == lines


@pytest.mark.parametrize(
    "change",
    [
        "exec(input())",
        "exec(compile(input(), 'more', 'exec'))",
        "globals()[input()] = 3",
        "globals().update(read())",
        "vars()[input()] = 3",
    ],
)
def test_any_name_of_the_module_may_be_bound(tmp_path: Path, change: str) -> None:
    known = "from lib import read\nn = 0\nprint(n)\n"
    (tmp_path / "lib.py").write_text("import json\ndef read():\n    return json.loads(input())\n")
    for text, count in ((f"{known}print(1 / n)\n", 1), (f"{known}{change}\nprint(1 / n)\n", 0)):
        (tmp_path / "train.py").write_text(text)
        found = check(["python", "train.py"], Target("there"), folder=tmp_path)
        assert len(found.findings) == count


@pytest.mark.parametrize(
    "change",
    [
        "setattr(c, input(), 3)",
        "vars(c).update(json.loads(input()))",
        "c.__dict__[input()] = 3",
        "c.__dict__ = json.loads(input())",
        "c.__dict__.update(n=2)",
        "vars(c)['n'] = 2",
    ],
)
@pytest.mark.parametrize("made", ["C()", "argparse.Namespace(n=0)"])
def test_any_attribute_of_an_object_may_be_set(tmp_path: Path, change: str, made: str) -> None:
    start = f"import argparse, json\nclass C:\n    n = 0\nc = {made}\n"
    for text, count in ((f"{start}print(1 / c.n)\n", 1), (f"{start}{change}\nprint(1 / c.n)\n", 0)):
        (tmp_path / "train.py").write_text(text)
        found = check(["python", "train.py"], Target("there"), folder=tmp_path)
        assert len(found.findings) == count, change


def test_a_part_of_a_known_text_is_known(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print({'lr': 1}['--rate'[2:]])\n")
    found = check(["python", "train.py"], Target("there"), folder=tmp_path)
    assert [one.message for one in found.findings] == [
        "The key 'rate' does not exist; the keys are lr."
    ]


@pytest.mark.parametrize(
    ("given", "names", "count"),
    [
        ("", "a,", 0),
        ("", "a, b", 1),
        ("return_remaining_strings=True", "a, rest", 0),
        ("return_remaining_strings=True", "a,", 1),
        ("return_remaining_strings=bool(input())", "a, rest", 0),
    ],
)
def test_how_many_values_the_parser_of_data_classes_returns(
    read: Read, given: str, names: str, count: int
) -> None:
    program = read(
        "from dataclasses import dataclass\nfrom transformers import HfArgumentParser\n"
        "@dataclass\nclass A:\n    lr: float = 0.1\n"
        f"{names} = HfArgumentParser((A,)).parse_args_into_dataclasses({given})\n"
    )
    assert [failure.kind for failure in program.failures] == ["unpack"] * count


def test_data_classes_are_filled_from_the_arguments_that_their_parser_is_given(read: Read) -> None:
    program = read(
        "import sys\nfrom dataclasses import dataclass\nfrom transformers import HfArgumentParser\n"
        "@dataclass\nclass A:\n    lr: float = 0.1\n"
        "HfArgumentParser((A,)).parse_args_into_dataclasses(args=sys.argv[2:])\n"
        "HfArgumentParser((A,)).parse_args_into_dataclasses(return_remaining_strings=True)\n",
        "a.yaml",
        "--lr",
        "1",
    )
    assert not [problem for parsed in program.parsed for problem in parsed.problems]
