"""``epochzero model generate`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Command

SMALL = ("model", "generate", "--count", 3, "--blocks", 2, "--cells", 1, "--search-steps", 20)


def test_networks_are_written_as_programs(run: Command, tmp_path: Path) -> None:
    told = run(*map(str, SMALL), "--shape", "1x8x8", "--write", tmp_path / "made")
    assert told.code == 0
    assert "3 networks for images of 1 x 8 x 8 and 10 classes" in told.out
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        f"model00{number}.py" for number in (1, 2, 3)
    ]
    answer = json.loads(run(*map(str, SMALL), "--shape", "1x8x8", "--format", "json").out)
    assert answer["mean_distance"] >= answer["mean_distance_of_random_ones"]


def test_networks_are_trained_on_data_and_measured_on_others(run: Command, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = (draw.random((60, 1, 6, 6)) + y[:, None, None, None]).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    data = tmp_path / "data.npz"
    told = run(
        *map(str, SMALL), data, "--test", data, "--epochs", "2",
        "--out", tmp_path / "report", "--write", tmp_path / "made",
    )  # fmt: skip
    assert told.code == 0, told.err
    said = " ".join(told.out.split())
    assert "of 60 test examples" in said
    assert (tmp_path / "report" / "report.html").is_file()
    best = said.partition(" Written ")[2].partition(".py and ")[0].rpartition(" ")[2]
    named = [f"{tmp_path}/made/{best}.py:build", data, "--weights", f"{tmp_path}/made/{best}.pt"]
    assert run("model", "evaluate", *named, "--no-attacks").code == 0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([], "pass either DATA or --shape"),
        (["--shape", "8x8"], "is not channels, height and width"),
        (["--shape", "1x8x8", "--test", "t.npz"], "requires DATA"),
        (["table.csv"], "networks are generated for images"),
    ],
)
def test_what_is_missing_is_said(asked: list[str], told: str, run: Command, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b,label\n1,2,0\n3,4,1\n")
    answer = run(*SMALL[:2], *(tmp_path / one if one.endswith(".csv") else one for one in asked))
    assert answer.code == 2
    assert told in " ".join(answer.err.split())
