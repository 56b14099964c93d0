"""The batch scripts and the commands of the guides in a real Slurm; what is replaced are sizes and paths."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

if "TEST_SLURM" not in os.environ:
    pytest.skip("needs a Slurm: make test-slurm", allow_module_level=True)

from tests.guides.test_guide_commands import BLOCK, ROOT
from tests.slurm.test_allocations import Submitted, recorded

TRAIN = """
import pathlib, sys

tried = pathlib.Path("tried")
if not tried.exists():
    tried.write_text("")
    raise ConnectionResetError(104, "Connection reset by peer")
print({"rate": 0.1}["fox"])
"""
JOBS: list[str] = []


@pytest.fixture(autouse=True)
def _no_job_is_left() -> Iterator[None]:
    yield
    for number in JOBS:
        subprocess.run(["scancel", number], check=False)


def blocks(page: str, *, language: str) -> list[str]:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    return [block[2] for block in BLOCK.finditer(text) if block[1] == language]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a user whose `python`, `epochzero`, `ray` and `torchrun` are these."""
    monkeypatch.chdir(tmp_path)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", programs)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def submitted(folder: Path, page: str, *sizes: tuple[str, str]) -> Submitted:
    (script,) = blocks(page, language="bash")
    for written, here in sizes:
        assert written in script
        script = script.replace(written, here)
    job = Submitted(folder, script.removeprefix("#!/bin/bash\n"))
    JOBS.append(job.number)
    return job


def test_a_run_instead_of_the_batch_script(folder: Path) -> None:
    (folder / "tried").write_text("")
    sizes = ("--gres=gpu:8 ", ""), ("nproc_per_node 8", "nproc_per_node 2")
    job = submitted(folder, "run", *sizes)
    job.wait_for("FAILED  Key Not Found")


def test_a_job_is_requeued_if_a_retry_may_help(folder: Path) -> None:
    job = submitted(folder, "retry")
    job.wait_for("ConnectionResetError")
    job.wait_for("FAILED  Key Not Found")
    job.until(lambda: len(recorded(job)) == 2, 400)
    assert [state for _, state, _ in recorded(job)] == ["REQUEUED", "FAILED"]


def test_many_logs_are_diagnosed_on_a_ray_cluster_of_a_job(folder: Path) -> None:
    (folder / "logs").mkdir()
    for number in range(3):
        (folder / f"logs/{number}.log").write_text(f"Traceback:\nKeyError: {number}\n")
    sizes = (
        ("--nodes=4", "--nodes=2"),
        ("--cpus-per-task=16", "--cpus-per-task=1"),
        ("--num-cpus=15", "--num-cpus=1"),
        ("02:00:00", "01:00:00"),
        ("$head:6379", "127.0.0.1:6379"),  # the two nodes are one machine
        ("/shared", str(folder)),
    )
    job = submitted(folder, "scale", *sizes)
    job.until(lambda: "Logs        3" in job.printed, 400)


def test_an_administrator_installs_the_files(folder: Path) -> None:
    (script,) = blocks("slurm", language="bash")
    for written, here in {
        "/path/to/epochzero": str(ROOT),
        "/opt/epochzero": f"{folder}/opt",
        "/var/lib/epochzero": f"{folder}/state",
    }.items():
        assert written in script
        script = script.replace(written, here)
    (folder / "slurm.conf").touch()
    # Without a network: what the build and the store need is that of the tests.
    variables = {
        "PIP_NO_BUILD_ISOLATION": "false",
        "PIP_NO_DEPS": "true",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "SLURM_CONF": str(folder / "slurm.conf"),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "state").owner() == "slurm"
    assert (folder / "cli_filter.lua").is_file()
    installed = folder / "opt/slurm"
    assert {path.name for path in installed.iterdir()} == {"epilog.sh", "srun", "task_prolog.sh"}
    assert all(os.access(path, os.X_OK) for path in installed.iterdir())
    version = [folder / "opt/bin/epochzero", "--version"]
    assert subprocess.run(version, env={**os.environ, **variables}, check=False).returncode == 0


def test_the_settings_are_those_of_the_guide() -> None:
    written = blocks("slurm", language="")[0].split()
    settings = Path(os.environ["SLURM_CONF"]).read_text(encoding="utf-8").splitlines()
    here = {line.partition("=")[0]: Path(line).name for line in settings if line}
    for line in written:
        assert here[line.partition("=")[0]].rpartition("=")[2] == Path(line).name.rpartition("=")[2]


def test_a_user_submits_a_job_with_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = next(text for text in blocks("slurm", language="") if text.startswith("$ "))
    lines = session.splitlines()
    monkeypatch.setenv("EPOCHZERO_CHECK", "refuse")
    commands = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    done = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=False)
    assert done.returncode
    printed = " ".join((done.stdout + done.stderr).split())
    shown = " ".join(line for line in lines if not line.startswith("$ "))
    for part in re.split(r"\.\.\.|<command>", " ".join(shown.split())):
        assert part.strip() in printed, shlex.quote(printed)
