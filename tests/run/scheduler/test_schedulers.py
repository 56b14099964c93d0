"""What the documentation gives to schedulers works as it says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from epochzero.run.reports.end_summary import Notice
from epochzero.run.retry import load_policy
from epochzero.run.retry.advice import EXIT_CODES
from epochzero.run.retry.policy import FailureCondition, Policy, RetryRule
from epochzero.store.schema import Base
from tests.waiting import PATIENCE_S, wait_until

DOCS = Path(__file__).resolve().parents[3] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


BASH = [(page, text) for page in ("run.md", "retry.md") for text in blocks(page, "bash")]
YAML = [(page, text) for page in ("run.md", "retry.md") for text in blocks(page, "yaml")]
MANIFESTS = [(page, text) for page, text in YAML if "kind:" in text]
SKYPILOT = [text for _, text in YAML if "job_recovery:" in text]


@pytest.mark.parametrize(("page", "text"), BASH, ids=str)
def test_scripts_can_be_read_by_bash(page: str, text: str) -> None:
    subprocess.run(["bash", "-n"], input=text.encode(), check=True)


@pytest.mark.parametrize(("page", "text"), MANIFESTS, ids=str)
def test_manifests_start_a_run_that_ends_before_it_is_killed(page: str, text: str) -> None:
    specification: dict[str, Any] = yaml.safe_load(text)["spec"]
    # A TrainJob's pod is described by the runtime that it names.
    pod = specification["template"]["spec"] if "template" in specification else None
    (container,) = pod["containers"] if pod is not None else (specification["trainer"],)
    words = container["command"]
    assert words[:2] == ["epochzero", "run"]
    grace = float(words[words.index("--grace") + 1]) if "--grace" in words else 10.0
    assert grace + 5 <= (pod or {}).get("terminationGracePeriodSeconds", 30)
    if pod is None:
        return
    # Kubernetes refuses a policy where the container itself is started again.
    assert pod["restartPolicy"] == "Never"
    for rule in specification.get("podFailurePolicy", {}).get("rules", ()):
        if "onExitCodes" in rule:
            assert rule["action"] == "FailJob"
            assert rule["onExitCodes"]["values"] == [EXIT_CODES["stop"]]
            assert rule["onExitCodes"]["containerName"] == container["name"]


ADVICE = '{"exclude_nodes": ["node07", "node09"]}'
# The programs of the script: what is said to each comes into a file.
FAKES = {
    "epochzero": "echo $EPOCHZERO_JOB > job; printf '%s' '" + ADVICE + "' > advice.json\n"
    "trap 'exit 76' USR1; touch ready; [ $CODE = wait ] || exit $CODE\n"
    "while :; do sleep 0.05; done",
    "scontrol": 'echo "$@" > scontrol.said',
    "sbatch": 'echo "$EPOCHZERO_JOB $@" > sbatch.said',
}


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """The batch script of the page, with fakes of its programs on the path."""
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (script,) = blocks("retry.md", "bash")
    (tmp_path / "job.sh").write_text(script)
    return tmp_path


def _start(batch: Path, code: str) -> subprocess.Popen[bytes]:
    environment = {"PATH": f"{batch}:{os.environ['PATH']}", "SLURM_JOB_ID": "42", "CODE": code}
    return subprocess.Popen(["bash", "job.sh"], cwd=batch, env=environment)


def _said(batch: Path) -> list[str]:
    return [f"{path.stem} {path.read_text().strip()}" for path in sorted(batch.glob("*.said"))]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, []),
        (EXIT_CODES["retry"], ["scontrol requeue 42"]),
        (EXIT_CODES["retry_elsewhere"], ["sbatch 42 --exclude=node07,node09 job.sh"]),
        (EXIT_CODES["stop"], []),
    ],
)
def test_the_batch_script_does_as_it_is_advised(batch: Path, code: int, said: list[str]) -> None:
    assert _start(batch, str(code)).wait(PATIENCE_S) == code
    assert _said(batch) == said


def test_the_batch_script_passes_a_signal_on_and_waits(batch: Path) -> None:
    process = _start(batch, "wait")
    wait_until((batch / "ready").exists)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(PATIENCE_S) == 76
    assert _said(batch) == ["sbatch 42 --exclude=node07,node09 job.sh"]


def test_the_policy_of_the_guide_is_one_and_the_guide_names_every_field(tmp_path: Path) -> None:
    (text,) = blocks("retry.md", "toml")
    (tmp_path / "mine.toml").write_text(text)
    assert len(load_policy(tmp_path / "mine.toml").rules) == 3
    guide = (DOCS / "retry.md").read_text(encoding="utf-8")
    for field in (*fields(Policy), *fields(RetryRule), *fields(FailureCondition)):
        if field.name not in ("name", "rules"):
            assert f"`{field.name}`" in guide


def test_the_guide_names_every_field_of_a_notice() -> None:
    guide = (DOCS / "run.md").read_text(encoding="utf-8")
    for field in fields(Notice):
        assert f"`{field.name}`" in guide


def test_the_guide_to_the_store_names_every_column() -> None:
    guide = (DOCS / "store.md").read_text(encoding="utf-8")
    for table in Base.metadata.tables.values():
        (row,) = re.findall(rf"(?m)^\| `{table.name}` \|.*", guide)
        for column in table.columns:
            assert f"`{column.name}`" in row or column.name == "rank_id"


def test_skypilot_recovers_a_job_whose_exit_code_advises_a_retry() -> None:
    (text,) = SKYPILOT
    task = yaml.safe_load(text)
    assert "epochzero run --advice-exit-codes --" in task["run"]
    assert set(task["resources"]["job_recovery"]["recover_on_exit_codes"]) == {
        EXIT_CODES["retry"],
        EXIT_CODES["retry_elsewhere"],
    }
