"""A job from Python: `epochzero.run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CALL = """
import json, os, sys
import epochzero
ran = epochzero.run(
    [sys.executable, "-c", sys.argv[1]], "kept", environment=os.environ, name="it", policy=sys.argv[2]
)
failed = ran.failed
print(json.dumps([
    ran.ended.exit_code, len(ran.folders), failed and failed.diagnosis.category,
    failed and failed.decision.action,
]))
"""


def call(folder: Path, code: str, policy: str = "never") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CALL, code, policy],
        cwd=folder, capture_output=True, text=True, env=dict(os.environ),
    )  # fmt: skip


def test_a_failure_comes_back_as_a_value(tmp_path: Path) -> None:
    done = call(tmp_path, "print('so far'); {}['lr']")
    *said, told = done.stdout.splitlines()
    assert said == ["so far"]
    assert json.loads(told) == [1, 1, "key_not_found", "stop"]
    assert "KeyError" in done.stderr
    assert "FAILED" not in done.stderr
    assert list((tmp_path / "kept" / "runs").glob("*/1/journal.jsonl"))


def test_a_job_that_ends_well_has_no_failure(tmp_path: Path) -> None:
    assert json.loads(call(tmp_path, "pass").stdout) == [0, 1, None, None]


def test_a_policy_starts_it_again(tmp_path: Path) -> None:
    policy = tmp_path / "twice.toml"
    policy.write_text('title = "Twice."\n[[rules]]\ntitle = "all"\nretries = 1\nreason = "So."\n')
    assert json.loads(call(tmp_path, "1/0", str(policy)).stdout)[:2] == [1, 2]


@pytest.mark.parametrize("policy", ["bold", "none.toml"])
def test_a_wrong_policy_is_told_before_the_start(tmp_path: Path, policy: str) -> None:
    done = call(tmp_path, "print('started')", policy)
    assert "CatalogError" in done.stderr
    assert done.stdout == ""
