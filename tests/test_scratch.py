"""Temporary directories are removed, also those of processes that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochzero import scratch
from epochzero.file_access import FileAccess, confined
from epochzero.scratch import scratch_directory

HOLDS = """
import sys
from epochzero import cli
from epochzero.file_access import FileAccess, confined
from epochzero.scratch import scratch_directory

def hold(*_, **__):
    with scratch_directory():
        print("holds", flush=True)
        sys.stdin.read()

cli.commands.main = hold
cli.run_command()
"""
LONG_AGO = 1_000_000_000


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    scratch._remove_abandoned.cache_clear()
    yield tmp_path
    scratch._remove_abandoned.cache_clear()


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """A process of the command line that has a temporary directory."""
    command = [sys.executable, "-c", HOLDS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "holds\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_asked_to_exit_removes_its_directory(
    temporary: Path, holder: subprocess.Popen[str], number: signal.Signals
) -> None:
    holder.send_signal(number)
    assert holder.wait() == 128 + number
    assert list(temporary.iterdir()) == []


def test_the_next_command_removes_what_a_killed_one_left(
    temporary: Path, holder: subprocess.Popen[str]
) -> None:
    (left,) = temporary.iterdir()
    (left / "copy.py").touch()
    os.utime(left, (LONG_AGO, LONG_AGO))
    with scratch_directory():
        assert left.is_dir(), "its process is alive"
    scratch._remove_abandoned.cache_clear()
    holder.kill()
    holder.wait()
    with scratch_directory() as new:
        assert [*map(str, temporary.iterdir())] == [new]


def test_what_is_new_or_of_others_stays(temporary: Path) -> None:
    new = temporary / "epochzero-scratch-new"
    new.mkdir()
    other = temporary / "other"
    other.mkdir()
    link = temporary / "epochzero-scratch-link"
    link.symlink_to(other)
    for path in (other, link):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    with scratch_directory():
        pass
    assert {*temporary.iterdir()} == {new, other, link}


def test_a_check_that_may_read_little_has_a_directory_and_removes_it(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with confined(FileAccess.within([tmp_path_factory.mktemp("checkout")])):
        with scratch_directory() as directory:
            assert Path(directory).is_relative_to(temporary)
        assert not os.path.lexists(directory)
