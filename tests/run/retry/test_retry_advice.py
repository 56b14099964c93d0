"""What schedulers read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochzero.errors import InputError
from epochzero.run.records.model import Decision
from epochzero.run.retry.advice import EXIT_CODES, advice, write_advice

ELSEWHERE = Decision(0.0, 0.0, "retry_elsewhere", 30.0, "A GPU failed.", "auto", avoid=("node7",))


def test_the_file_says_what_to_do_and_where_not_to(tmp_path: Path) -> None:
    path = tmp_path / "advice.json"
    path.write_text("old")
    write_advice(path, advice(ELSEWHERE, job="j", attempt=2, exit_code=134))
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["action"] == "retry_elsewhere"
    assert told["exclude_nodes"] == ["node7"]
    assert (told["job"], told["attempt"], told["exit_code"], told["after_seconds"]) == (
        "j",
        2,
        134,
        30,
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["advice.json"]


def test_each_action_has_an_exit_code_of_its_own_that_no_signal_has() -> None:
    assert set(EXIT_CODES) == {"retry", "retry_elsewhere", "stop"}
    assert len(set(EXIT_CODES.values())) == 3
    assert all(64 <= code <= 78 for code in EXIT_CODES.values())


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_advice(tmp_path / "folder", {})
    with pytest.raises(InputError, match="cannot be written"):
        write_advice(tmp_path / "none" / "advice.json", {})
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
