"""A snapshot tells what a job ran in, and no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.run.observers.snapshot import (
    MOST_CHANGES,
    SnapshotWatcher,
    python_of,
    running_python,
    take,
    variables,
)
from epochzero.run.process.usage import ProcessTree
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobSnapshot, Record
from tests.run.trees import SLEEPER, job, until
from tests.waiting import bounded_work

SECRET = "c0rrecth0rsebatterystaple"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("epochs = 1\n")
    git(folder, "init", "--quiet", "--initial-branch", "speedup")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def of(folder: Path, program: Path | None = None, **environment: str) -> JobSnapshot:
    return take(Clock(), folder, environment, program)


def test_the_state_of_the_repository_is_kept(repository: Path) -> None:
    (repository / "train.py").write_text(f"epochs = 2\npassword = '{SECRET}'\n")
    snapshot = of(repository)
    assert snapshot.commit == git(repository, "rev-parse", "HEAD")
    assert snapshot.branch == "speedup"
    assert "-epochs = 1\n+epochs = 2\n" in snapshot.changes
    assert SECRET not in snapshot.changes


def test_large_changes_are_cut(repository: Path) -> None:
    (repository / "train.py").write_text("a line of data\n" * 200_000)
    changes = of(repository).changes
    assert MOST_CHANGES - 20 < len(changes) <= MOST_CHANGES
    assert changes.endswith("data\n")


def test_a_line_of_data_in_the_changes_takes_no_time(repository: Path) -> None:
    (repository / "train.py").write_text("token=" * 100_000 + "\nlast\n")
    with bounded_work():
        assert "+[600002 characters]\n+last\n" in of(repository).changes


def test_without_a_repository_or_a_python_the_rest_is_kept(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "removed"):
        snapshot = of(folder, tmp_path / "python", HOME="/")
        assert (snapshot.commit, snapshot.changes, snapshot.python) == ("", "", "")
        assert snapshot.variables == {"HOME": "/"}
        assert "Linux" in snapshot.system


def test_packages_are_those_of_the_python_of_the_job(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "torchlike-2.1.dist-info").mkdir()
    (site / "torchlike-2.1.dist-info/METADATA").write_text("Name: torchlike\nVersion: 2.1\n")
    snapshot = of(tmp_path, environment / "bin/python")
    assert snapshot.packages == {"torchlike": "2.1"}
    assert snapshot.python == ".".join(map(str, sys.version_info[:3]))


def test_secrets_are_hidden_by_name_and_by_look() -> None:
    found = variables(
        {
            "HF_TOKEN": "anything",
            "WANDB_API_KEY": "0123",
            "DB_PASSWORD": "x",
            "SOME_NUMBER": "hf_" + "a" * 34,
            "PROXY": "http://me:hush@proxy:3128",
            "EMPTY_TOKEN": "",
            "NCCL_DEBUG": "INFO",
        }
    )
    assert found["NCCL_DEBUG"] == "INFO"
    assert found["EMPTY_TOKEN"] == ""
    assert not {"anything", "0123", "x"} & set(found.values())
    assert "a" * 34 not in found["SOME_NUMBER"]
    assert "hush" not in found["PROXY"]


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_any_variables_can_be_kept(environment: dict[str, str]) -> None:
    assert set(variables(environment)) == set(environment)


def test_the_python_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    script = tmp_path / "torchrun"
    script.write_text(f"#!{tmp_path}/python3\n")
    by_search = tmp_path / "launch"
    by_search.write_text("#!/usr/bin/env python3\n")
    shell = tmp_path / "train.sh"
    shell.write_text("#!/bin/sh\npython3 train.py\n")
    for file in (script, by_search, shell):
        file.chmod(0o755)
    environment = {"PATH": str(tmp_path)}
    for name in ("python3", "torchrun", "launch", str(script)):
        assert python_of([name], environment) == tmp_path / "python3"
    for name in ("train.sh", "no-such-program", "/bin/true"):
        assert python_of([name], environment) is None


def test_the_python_of_a_script_is_the_one_that_runs() -> None:
    with job("import subprocess; subprocess.run(['sh', '-c', 'sleep 60; true'])") as child:
        tree = ProcessTree(child.pid)
        until(lambda: running_python(tree) == Path(sys.executable))


def test_a_snapshot_is_taken_once(tmp_path: Path) -> None:
    with job(SLEEPER) as child:
        watcher = SnapshotWatcher([sys.executable], tmp_path, dict(os.environ))
        records: list[Record] = [*watcher.started(child.pid, tmp_path, Clock())]
        for _ in range(3):
            records += watcher.tick()
        records += watcher.ended()
    (snapshot,) = records
    assert isinstance(snapshot, JobSnapshot)
    assert "pytest" in snapshot.packages


def test_a_job_that_ends_at_once_is_not_kept_waiting(tmp_path: Path) -> None:
    with job("pass") as child:
        watcher = SnapshotWatcher(["true"], tmp_path, {})
        watcher.started(child.pid, tmp_path, Clock())
        assert list(watcher.ended()) == []
