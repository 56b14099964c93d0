"""What a launch script and its earlier programs have made is there for the later ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.check import Target, check

TRAIN = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--out")
args = parser.parse_args()
torch.save({}, args.out)
"""
EVALUATE = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint")
args = parser.parse_args()
torch.load(args.checkpoint)
"""


def errors(folder: Path, launch: str) -> list[str]:
    """The rules of the errors that are found in a launch script's programs."""
    (folder / "train.py").write_text(TRAIN)
    (folder / "evaluate.py").write_text(EVALUATE)
    (folder / "run.sh").write_text(launch)
    found = check(["bash", "run.sh"], Target("there"), folder=folder, environment={})
    return [one.rule for one in found.findings if one.severity == "error"]


def test_what_an_earlier_program_saves_is_there(tmp_path: Path) -> None:
    launch = "python train.py --out last.pt\npython evaluate.py --checkpoint last.pt\n"
    assert errors(tmp_path, launch) == []


def test_what_nobody_saves_is_not(tmp_path: Path) -> None:
    launch = "python train.py --out last.pt\npython evaluate.py --checkpoint best.pt\n"
    assert errors(tmp_path, launch) == ["resume-missing"]


def test_what_a_later_program_saves_is_not(tmp_path: Path) -> None:
    launch = "python evaluate.py --checkpoint last.pt\npython train.py --out last.pt\n"
    assert errors(tmp_path, launch) == ["resume-missing"]


def test_folders_that_the_script_makes_are_there(tmp_path: Path) -> None:
    assert errors(tmp_path, "mkdir -p runs/a\npython train.py --out runs/a/last.pt\n") == []
    assert errors(tmp_path, "python train.py --out runs/a/last.pt\nmkdir -p runs/a\n") == [
        "path-parent-missing"
    ]


@pytest.mark.parametrize(
    "made",
    [
        "mkdir -p runs/a && ",
        "[ -d runs ] || mkdir -p runs/a\n",
        "for one in runs/a; do [[ -d $one ]] || mkdir -p $one; done\n",
        "if [ ! -e runs ]; then mkdir runs runs/a; fi\n",
    ],
)
def test_folders_that_the_script_makes_in_a_condition_or_the_same_line(
    made: str, tmp_path: Path
) -> None:
    assert errors(tmp_path, f"{made}python train.py --out runs/a/last.pt\n") == []


def test_a_program_that_is_a_condition_may_fail(tmp_path: Path) -> None:
    asked = "if python evaluate.py --checkpoint best.pt; then echo ready; fi\n"
    assert errors(tmp_path, f"{asked}python train.py --out last.pt\n") == []


def test_files_that_the_script_copies_are_there(tmp_path: Path) -> None:
    assert errors(tmp_path, "cp a last.pt\npython evaluate.py --checkpoint last.pt\n") == []
    assert (
        errors(tmp_path, "gunzip -c a > last.pt\npython evaluate.py --checkpoint last.pt\n") == []
    )
