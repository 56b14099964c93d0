"""The lines of `docs/integrations.md` for launchers, with the real libraries and a job that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochzero.diagnose import diagnose

FAILS = "def train(rate=0.1):\n    return {'rate': rate}['fox']\n"
PROGRAM = f"{FAILS}\nif __name__ == '__main__':\n    train()\n"
EPOCHZERO = [sys.executable, "-m", "epochzero", "run", "--", sys.executable]


def _start(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    home = {"EPOCHZERO_HOME": str(folder / "home"), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **home}, capture_output=True, text=True, check=False
    )


def test_accelerate(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="its launcher is started")
    (tmp_path / "train.py").write_text(PROGRAM)
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "train.py"]
    done = _start(tmp_path, *EPOCHZERO, *launch)
    assert done.returncode == 1
    assert "train.py:2 in train" in done.stderr


@pytest.mark.parametrize("how", ["function", "command"])
def test_submitit(tmp_path: Path, how: str) -> None:
    pytest.importorskip("submitit", reason="its local executor starts the job")
    (tmp_path / "train.py").write_text(PROGRAM)
    python = " ".join(EPOCHZERO)
    submitted = {
        "function": "train.train",
        "command": f"submitit.helpers.CommandFunction({[*EPOCHZERO, 'train.py']})",
    }
    (tmp_path / "submit.py").write_text(
        "import submitit, train\n"
        f"given = {python!r} if {how == 'function'} else None\n"
        "executor = submitit.AutoExecutor(folder='logs', cluster='local', local_python=given)\n"
        f"print(executor.submit({submitted[how]}).exception())\n"
    )
    done = _start(tmp_path, sys.executable, "submit.py")
    assert "fox" in done.stdout, done.stderr
    found = diagnose(tmp_path / "logs")
    assert found.user_frame is not None
    assert (Path(found.user_frame.file).name, found.user_frame.line) == ("train.py", 2)
    assert "train.py:2 in train" in "".join(
        f.read_text() for f in (tmp_path / "logs").iterdir() if f.suffix != ".pkl"
    )


def test_torchx(tmp_path: Path) -> None:
    pytest.importorskip("torchx", reason="its local scheduler starts the job")
    (tmp_path / "train.py").write_text(PROGRAM)
    start = "import sys; sys.argv[0] = 'torchx'; from torchx.cli.main import main; main()"
    command = ["run", "--scheduler", "local_cwd", "--wait", "utils.sh", *EPOCHZERO, "train.py"]
    done = _start(tmp_path, sys.executable, "-c", start, *command)
    assert "train.py:2 in train" in done.stdout + done.stderr


def test_hydra_with_submitit(tmp_path: Path) -> None:
    """Hydra drops the stack of the job's error: only its message is left."""
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="it starts the jobs")
    main = "@hydra.main(version_base=None)\ndef main(config):\n    train(config.rate)\n\nmain()\n"
    (tmp_path / "train.py").write_text(f"import hydra\n{FAILS}\n{main}")
    sweep = ["train.py", "--multirun", "hydra/launcher=submitit_local", "+rate=1"]
    done = _start(tmp_path, *EPOCHZERO, *sweep)
    assert done.returncode == 1
    assert "FAILED  Key Not Found" in done.stderr
