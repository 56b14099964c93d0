"""Arguments stand where they are written, and what is not known of them is not known."""

from __future__ import annotations

from pathlib import Path

from epochzero.check.findings import SourceLocation
from epochzero.check.launch import read_job
from epochzero.check.program.interpreter import read_program
from epochzero.check.program.values import Anything, Constant
from epochzero.check.target.model import Target

SCRIPT = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
parser.add_argument("--lr", type=float, default=1.0)
parser.add_argument("--steps", type=int, default=1)
args = parser.parse_args()
"""


def options(folder: Path, launch: str) -> dict[str, object]:
    """The options of a launch script's job, as far as they are known; ``?`` otherwise."""
    (folder / "train.py").write_text(SCRIPT)
    (folder / "run.sh").write_text(launch)
    (job,) = read_job(["bash", "run.sh"], folder, {}).jobs
    found = read_program(job, Target("there")).options
    return {name: "?" if isinstance(value, Anything) else value for name, value in found.items()}


def test_a_value_stands_in_the_line_of_the_launch_script(tmp_path: Path) -> None:
    found = options(tmp_path, "python train.py \\\n  --lr 0.5 \\\n  --steps=3\n")
    lr, steps, out = found["lr"], found["steps"], found["out"]
    assert isinstance(lr, Constant)
    assert isinstance(steps, Constant)
    assert isinstance(out, Constant)
    assert [lr.origin and (lr.origin.path, lr.origin.line)] == [("run.sh", 2)]
    assert [steps.origin and (steps.origin.path, steps.origin.line)] == [("run.sh", 3)]
    assert isinstance(out.origin, SourceLocation)
    assert out.origin.path == "train.py"


def test_what_the_run_fills_in_is_not_known(tmp_path: Path) -> None:
    launch = 'python train.py --out "$(mktemp -d)/run" --lr 0.5\n'
    found = options(tmp_path, launch)
    assert found["out"] == "?"
    assert found["lr"] != "?"
    assert options(tmp_path, "python train.py --out=$(date)/run\n")["out"] == "?"


def test_arguments_that_may_be_missing_leave_defaults_open(tmp_path: Path) -> None:
    found = options(tmp_path, "python train.py --lr 0.5 $(cat more)\n")
    assert found["steps"] == found["out"] == "?"
    assert isinstance(found["lr"], Constant)
