"""Which option of the command line set a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.run.watch.lines.options import option_given, with_options
from epochzero.run.watch.model import SourceLine, TrainingFinding, WatchResult

PROGRAM = """\
parser.add_argument("--lr", "-l", type=float,
                    default=3.0)
parser.add_argument("--epochs", type=int, default=2)
@click.option("--clip/--no-clip", default=True)
def main(clip): pass
rate = 3.0
"""


@pytest.mark.parametrize(
    ("line", "words", "told"),
    [
        (1, "--lr 10", "--lr 10"),
        (2, "-l 10 --epochs 4", "-l 10"),
        (1, "--lr 1 --lr 2", "--lr 2"),
        (1, "--lr -1", "--lr -1"),
        (1, "--epochs 4", ""),
        (1, "--lr", "--lr"),
        (4, "--no-clip --lr 2", "--no-clip"),
        (6, "--lr 10", ""),
        (9, "--lr 10", ""),
    ],
)
def test_the_option_of_a_line_as_it_was_given(
    tmp_path: Path, line: int, words: str, told: str
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    assert option_given(SourceLine(str(path), line), words.split()) == told


def test_a_file_that_is_gone_makes_no_option() -> None:
    assert option_given(SourceLine("/nowhere/train.py", 1), ["--lr", "10"]) == ""


def test_all_findings_of_a_verdict_get_theirs(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    rate = TrainingFinding("learning_rate_too_high", 0, "", place=SourceLine(str(path), 1))
    rises = TrainingFinding("loss_rising", 0, "")
    watched = with_options(WatchResult(3, rate, (rises,), (rate,)), ["--lr", "10"])
    assert [one.option for one in watched.findings] == ["--lr 10", "", "--lr 10"]
