"""A job from Python: `epochzero.run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import epochzero
from epochzero import InputError, WatchOptions
from tests.torch_jobs import light_torch

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


WATCHED = """
import json, os, sys
import epochzero
ran = epochzero.run(
    [sys.executable, "train.py"], "kept", environment=os.environ,
    watch=epochzero.WatchOptions(fail_on=frozenset(sys.argv[1:])) if sys.argv[1:] else True,
)
root = ran.watched.root if ran.watched else None
fault = ran.failed.fault if ran.failed else None
print(json.dumps([ran.ended.exit_code, root and root.word, fault and fault.word]))
"""
TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(20):
    torch.nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), [0, "zero_grad_missing", None]),
        (("zero_grad_missing",), [79, "zero_grad_missing", "zero_grad_missing"]),
    ],
)
def test_a_watched_training_comes_back_with_its_verdict(
    tmp_path: Path, words: tuple[str, ...], told: list[object]
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(light_torch(TRAINING))
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words],
        cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == told, done.stderr


def test_a_word_to_watch_for_that_is_none_is_told_before_the_start(tmp_path: Path) -> None:
    options = WatchOptions(fail_on=frozenset({"zero_grad_mising"}))
    with pytest.raises(InputError, match="did you mean zero_grad_missing"):
        epochzero.run(["true"], tmp_path / "kept", environment=os.environ, watch=options)
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("policy", ["bold", "none.toml"])
def test_a_wrong_policy_is_told_before_the_start(tmp_path: Path, policy: str) -> None:
    done = call(tmp_path, "print('started')", policy)
    assert "CatalogError" in done.stderr
    assert done.stdout == ""
