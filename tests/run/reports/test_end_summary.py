"""What others are told of a job's end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from epochzero.run.records.model import Decision, End, Start
from epochzero.run.reports.end_summary import notice_of, write_termination_log
from epochzero.run.watch.model import SourceLine, TrainingFinding

STARTED = Start("j1", 2, "resnet", ("python", "train.py"), "/job", "node7", "ann", 1, 0.0, gpus=8)
ENDED = End(9000.0, 9000.0, 1)
DIAGNOSIS: dict[str, Any] = {
    "category": "key_not_found",
    "title": "Key Not Found",
    "root": {"file": "output.log", "line": 3, "text": "KeyError: 'lr'", "rank": 1},
    "user_frame": {"file": "train.py", "line": 12, "function": "main", "code": ""},
    "fixes": ["Add 'lr' to the configuration."],
    "retry_reason": "The same lines run again.",
}


def test_a_failure_is_told_in_a_few_lines() -> None:
    decision = Decision(0.0, 0.0, "stop", reason="It fails again.")
    assert notice_of(STARTED, ENDED, DIAGNOSIS, decision).lines() == [
        "resnet failed on node7 after 2 h 30 min (exit code 1)",
        "why: Key Not Found (key_not_found)",
        "line: rank 1: KeyError: 'lr'",
        "code: train.py:12",
        "fix: Add 'lr' to the configuration.",
        "retry: stop: It fails again.",
        "cost: 8 GPUs, 20.0 GPU hours",
        "more: epochzero show j1",
    ]


def test_a_job_that_was_ended_for_its_training_names_the_fault() -> None:
    fault = TrainingFinding(
        "zero_grad_missing",
        1,
        "Each step adds up.",
        place=SourceLine("/job/train.py", 16),
        fix="Clear them.",
    )
    notice = notice_of(STARTED, End(9.0, 9.0, 79, None, "watch"), fault=fault)
    assert (notice.state, notice.category) == ("failed", "zero_grad_missing")
    assert notice.lines()[1:5] == [
        "why: Gradients are not cleared (zero_grad_missing)",
        "line: Each step adds up.",
        "code: /job/train.py:16",
        "fix: Clear them.",
    ]


def test_without_a_diagnosis_it_says_how_the_job_ended() -> None:
    notice = notice_of(STARTED, End(1.0, 60.0, 137, 9, "user"))
    assert notice.state == "cancelled"
    assert notice.lines()[0] == "resnet cancelled on node7 after 1 min 00 s (SIGKILL)"
    assert notice.to_dict()["schema"] == "epochzero.notice/1"


def test_secrets_and_line_ends_of_a_log_are_not_told() -> None:
    root = {"text": "login failed\n\x1b with password=hunter2x " + "a" * 9999, "rank": None}
    notice = notice_of(STARTED, ENDED, DIAGNOSIS | {"root": root})
    assert "hunter2x" not in str(notice.to_dict())
    assert "\n" not in notice.root
    assert len(notice.root) == 500


def test_the_termination_log_is_overwritten_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    notice = notice_of(STARTED, ENDED, DIAGNOSIS)
    write_termination_log(notice, path)
    assert not path.exists()
    path.write_text("x" * 9999)
    write_termination_log(notice, path)
    assert path.read_text().splitlines() == notice.lines()


def test_the_termination_log_is_cut_between_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "termination-log"
    path.touch()
    started = Start("j", 1, "é" * 500, (), "", "é" * 9000, "", 1, 0.0)
    write_termination_log(notice_of(started, ENDED), path)
    assert 4090 < len(path.read_bytes()) <= 4096
    path.read_text(encoding="utf-8")


def test_a_termination_log_that_is_no_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write_termination_log(notice_of(STARTED, ENDED), tmp_path / "pipe")
    write_termination_log(notice_of(STARTED, ENDED), tmp_path)
