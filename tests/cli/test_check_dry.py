"""``epochzero check --dry`` on programs that no one should run: it survives, explains and cleans up."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from epochzero.check.dryrun.records import VisitRecord
from epochzero.cli.progress import DryRunProgress

if TYPE_CHECKING:
    from conftest import Command

STRANGE = {
    "never trains": ("print('hello')", 0, "no phase of a training job"),
    "loops": ("import time\nwhile True:\n    time.sleep(0.01)", 0, "the dry run reached its time limit"),
    "waits": ("import time\ntime.sleep(1000)", 0, "time limit of 4 s"),
    "forks": ("import os\nwhile True:\n    os.fork()", 0, "more than 256 processes"),
    "reads": ("input('go on?')", 0, "reads standard input, which is empty"),
    "leaves": ("import os\nos._exit(3)", 1, "exit status 3"),
    "leaves well": ("import os\nos._exit(0)", 0, "exited before its script ended"),
    "allocates": ("x = bytearray(100 << 40)", 0, "more memory than a dry run has"),
    "deletes": ("import os, shutil\nshutil.rmtree(os.getcwd())", 0, "Deletes"),
    "crashes": ("import ctypes\nctypes.string_at(0)", 1, "SIGSEGV"),
    "kills": ("import os\nos.kill(os.getpid(), 9)", 0, "SIGKILL"),
    "window": ("raise Exception('cannot open display: ')", 1, "cannot open display"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_strange_programs(run: Command, tmp_path: Path, name: str) -> None:
    script, code, said = STRANGE[name]
    # The others end before, however busy the machine is.
    seconds = "4" if "time limit" in said else "60"
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "data.txt").write_text("kept")
    options = ["--dry", "--dry-time", seconds, "--select", "dry-run-failed,dry-run-crashed"]
    ran = run("check", *options, "--chdir", str(tmp_path), "--", sys.executable, "train.py")
    assert ran.code == code
    assert said in " ".join(ran.out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.txt", "train.py"]


def test_a_job_that_deletes_its_own_script_is_warned_of(run: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, shutil\nshutil.rmtree(os.getcwd())")
    (tmp_path / "clean.py").write_text(
        "import os, shutil\nos.mkdir('old')\nshutil.rmtree('old')\nos.remove('data.txt')"
    )
    (tmp_path / "data.txt").write_text("kept")
    options = ["--dry", "--chdir", str(tmp_path), "--", sys.executable]
    ran = run("check", *options, "train.py")
    assert ran.code == 0
    assert "dry-run-deletes" in ran.out
    assert "completed" in ran.out or "cannot delete" in " ".join(ran.out.split())
    assert "dry-run-deletes" not in run("check", *options, "clean.py").out


def test_what_a_job_would_have_done(run: Command, tmp_path: Path) -> None:
    script = """
    import os, socket, subprocess
    os.makedirs("outputs")
    open("outputs/model.bin", "wb").write(b"0" * 5_000_000)
    subprocess.run(["true"])
    try:
        socket.create_connection(("192.0.2.1", 80), 1)
    except OSError:
        pass
    """
    (tmp_path / "train.py").write_text(dedent(script))
    ran = run("check", "--dry", "--chdir", str(tmp_path), "--", sys.executable, "train.py")
    assert "Writes      5 MB to outputs/\n" in ran.out
    assert "Connects to 192.0.2.1:80\n" in ran.out
    assert "Starts      true\n" in ran.out
    assert not (tmp_path / "outputs").exists()


def test_progress_is_shown_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return self.is_terminal

        is_terminal = True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with DryRunProgress() as progress:
        progress.on_record(VisitRecord(how="backward"))
        while "backward" not in shown.getvalue():
            pass
    assert shown.getvalue().endswith("\r\x1b[K")
    piped = Terminal()
    piped.is_terminal = False
    monkeypatch.setattr(sys, "stderr", piped)
    with DryRunProgress() as progress:
        progress.on_record(VisitRecord(how="backward"))
    assert piped.getvalue() == ""
