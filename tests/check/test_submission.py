"""What a scheduler answers about a submission; `tests/slurm` asks a real one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochzero.check import CheckRequest, CheckResult, run_check

ANSWERS = {
    "accepts": ("echo 'sbatch: Job 7 to start at 2026-10-01T10:00:00 using 1 processors' >&2", []),
    "refuses": (
        "echo 'sbatch: error: invalid partition specified: gpu' >&2; "
        "echo 'allocation failure: Invalid partition name specified' >&2; exit 1",
        ["invalid partition specified: gpu; Invalid partition name specified"],
    ),
    "does not answer": (
        "echo 'allocation failure: Unable to contact slurm controller (connect failure)' >&2; exit 1",
        [],
    ),
}


def checked(folder: Path, answer: str, *, ask: bool = True) -> CheckResult:
    """A check of a submission with programs that answer so."""
    programs = folder / "bin"
    programs.mkdir()
    sinfo = "echo 'partition low: 1 nodes of 8 CPUs, 500 MB, (null), limit 1:00:00'"
    for name, text in {"sbatch": f'echo "$@" >> {folder}/asked\n{answer}', "sinfo": sinfo}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (folder / "job.sh").write_text("#!/bin/bash\n#SBATCH --partition=gpu\npython train.py\n")
    (folder / "train.py").write_text("print(1)\n")
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return run_check(
        CheckRequest(
            command=("sbatch", "job.sh"), folder=folder, environment=environment, ask_scheduler=ask
        )
    )


@pytest.mark.parametrize(("answer", "messages"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_of_the_scheduler(tmp_path: Path, answer: str, messages: list[str]) -> None:
    found = checked(tmp_path, answer)
    refused = [finding for finding in found.findings if finding.rule == "submission-refused"]
    assert [finding.message.partition(": ")[2] for finding in refused] == messages
    assert all("partition low: 1 node of 8 CPUs" in finding.fix for finding in refused)
    unknown = [unknown.reason for unknown in found.unknowns if "accepts" in unknown.what]
    assert len(unknown) == ("Unable to contact" in answer)
    assert (tmp_path / "asked").read_text() == "--test-only job.sh\n"


def test_nothing_is_executed_unless_that_is_asked_for(tmp_path: Path) -> None:
    found = checked(tmp_path, "exit 1", ask=False)
    assert "submission-refused" not in found.rules
    assert not (tmp_path / "asked").exists()
