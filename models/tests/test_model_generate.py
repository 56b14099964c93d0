"""``epochzero model generate`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Command

SMALL = ("model", "generate", "--count", 3, "--blocks", 2, "--cells", 1, "--search-steps", 20)


def test_networks_are_written_as_programs(run: Command, tmp_path: Path) -> None:
    result = run(*map(str, SMALL), "--shape", "1x8x8", "--write", tmp_path / "made")
    assert result.code == 0
    assert "3 networks for images of 1 x 8 x 8 and 10 classes" in result.out
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        f"model00{number}.py" for number in (1, 2, 3)
    ]
    answer = json.loads(run(*map(str, SMALL), "--shape", "1x8x8", "--format", "json").out)
    assert answer["mean_distance"] >= answer["mean_distance_of_random_ones"]


def test_a_single_network_has_no_others(run: Command, tmp_path: Path) -> None:
    arguments = ("--count", 1, "--blocks", 1, "--cells", 1, "--shape", "1x8x8", "--write", tmp_path)
    assert "others" not in run("model", "generate", *map(str, arguments)).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--shape'"),
        (["--shape", "8x8"], "is not channels, height and width"),
        (["--shape", "1x8x8", "--depth", "6-2"], "is not a range, such as 2-6"),
        (["--shape", "1x8x8", "--depth", "2-"], "is not a range, such as 2-6"),
    ],
)
def test_an_invalid_argument_is_an_error(arguments: list[str], message: str, run: Command) -> None:
    answer = run(*SMALL[:2], *arguments)
    assert answer.code == 2
    assert message in " ".join(answer.err.split())
