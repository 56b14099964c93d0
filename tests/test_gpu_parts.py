"""``make gpu``: what it prints without a GPU, and which processes and results remain if a part is cut off or interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from epochzero.platform import process_status
from tests.waiting import wait_until

BENCH = Path(__file__).resolve().parents[1] / "bench"
# A job that runs in its own session and whose parent has exited.
PART = """
import subprocess, sys, time
job = [sys.executable, "-c", "import os, time; open('job', 'w').write(str(os.getpid())); time.sleep(600)"]
subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.Popen({job}, start_new_session=True)"])
print("the job runs")
time.sleep(600)
"""
# The clock of the measurement advances by an hour when the job runs.
DRIVER = """
import os, sys, time
from types import SimpleNamespace
sys.path.insert(0, sys.argv.pop(1))
import gpu

def monotonic():
    late = os.path.exists("out-work/job") and os.path.getsize("out-work/job") > 0
    return time.monotonic() + 3600 * late

gpu.time = SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
limit = float(sys.argv.pop(1))
gpu.PARTS = (
    gpu.Part("long", (sys.argv.pop(1),), limit),
    gpu.Part("lacking", ("none.py",), 5, needs=("no_such_module",)),
    gpu.Part("broken", ("no_such_script.py",), 3600),
)
gpu.main()
"""


def started(folder: Path, limit: float) -> subprocess.Popen[str]:
    (folder / "part.py").write_text(PART)
    (folder / "driver.py").write_text(DRIVER)
    command = [sys.executable, "driver.py", str(BENCH), str(limit), str(folder / "part.py"), "--out=out", "--seconds=90000"]  # fmt: skip
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


def ends(folder: Path) -> dict[str, str]:
    text = (folder / "out-work" / "results" / "parts.json").read_text()
    return {name: end["end"] for name, end in json.loads(text).items()}


def job_of(folder: Path) -> int:
    written = folder / "out-work" / "job"
    wait_until(lambda: written.exists() and written.read_text() != "")
    return int(written.read_text())


def test_a_part_at_its_limit_leaves_no_process_and_the_others_run(tmp_path: Path) -> None:
    with started(tmp_path, 3000) as driver:
        job = job_of(tmp_path)
        assert driver.stdout
        output = driver.stdout.read()
    assert process_status(job) is None
    assert ends(tmp_path) == {"long": "cut off", "lacking": "skipped", "broken": "failed"}
    summary = {line.split()[0]: line for line in output.splitlines()[-3:]}
    assert "limit of 3000 s" in summary["long"]
    assert "not installed: no_such_module" in summary["lacking"]
    assert "can't open file" in summary["broken"]
    assert driver.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_leaves_no_process_but_its_results(
    tmp_path: Path, number: signal.Signals
) -> None:
    with started(tmp_path, 90000) as driver:
        job = job_of(tmp_path)
        driver.send_signal(number)
    assert process_status(job) is None
    assert ends(tmp_path) == {"long": "cut off", "lacking": "not started", "broken": "not started"}
    with tarfile.open(tmp_path / "out" / "gpu.tar.gz") as archive:
        assert "results/parts.json" in archive.getnames()
    assert driver.returncode == 1


def test_without_a_gpu_nothing_is_installed(tmp_path: Path) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    command = [sys.executable, str(BENCH / "gpu" / "install.py"), "environment", "--out=out"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "GPU_PYTHON": "/bin/false"}, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 77
    assert "No GPU" in done.stdout
    assert "--stand-in" in done.stdout
    assert list(tmp_path.iterdir()) == []
