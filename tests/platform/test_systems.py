"""EpochZero on macOS and Windows, emulated on Linux: which interfaces it uses, not whether they work there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from epochzero.platform import linux, macos, windows
from tests.catalogs import every
from tests.ports import unused_port
from tests.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
EMULATE = Path(__file__).with_name("emulate.py")
LOG = REPOSITORY / "lab" / "logs" / "loss_nan_learning_rate"


def run(system: str, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EMULATE, system, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "EPOCHZERO_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@every("system", ["macos", "windows"])
def test_a_log_is_diagnosed(system: str, tmp_path: Path) -> None:
    done = run(system, tmp_path, "diagnose", LOG)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Loss is inf, stopping training" in done.stdout


@every("system", ["macos", "windows"])
def test_a_job_is_checked(system: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import no_such_library\n")
    done = run(system, tmp_path, "check", "--", sys.executable, "train.py")
    # A warning, or an error if the contents of all installed distributions are known.
    assert done.returncode in (0, 1), done.stderr
    assert "imports no_such_library, but no installed distribution" in done.stdout


@every("system", ["macos", "windows"])
def test_the_machine_is_described(system: str, tmp_path: Path) -> None:
    done = run(system, tmp_path, "target", "capture")
    assert done.returncode == 0, done.stderr[-500:]
    assert "cpus = " in done.stdout


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_commands_that_start_no_job_work(system: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("rates = {}\nrates['fox']\n")
    (tmp_path / "report.md").write_text("train.py fails with a KeyError\n")
    for words in (["init"], ["add", "."], ["commit", "--message", "first"]):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        subprocess.run(git, cwd=tmp_path, check=True, capture_output=True)
    commands = (
        ["explain", "loss_nan"],
        ["diagnose", "--each", LOG, LOG],
        ["doctor"],
        ["jobs"],
        ["locate", "report.md"],
        ["study", "failures", LOG, "--out", "report"],
    )
    done = run(system, tmp_path, *(word for command in commands for word in (*command, "---")))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    for printed in ("Loss NaN", "Loss is inf", "usable CPU", "1  train.py", "report.html"):
        assert printed in done.stdout
    assert "No jobs recorded" in done.stderr


def test_the_team_server_starts_on_macos(tmp_path: Path) -> None:
    port = unused_port()
    command = [sys.executable, str(EMULATE), "macos", "serve", "--port", str(port)]
    environment = {**os.environ, "EPOCHZERO_HOME": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:

        def answers() -> bool:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz") as response:
                return bool(response.status == 200)
            return False

        wait_until(answers)
        server.terminate()


@every("command", ["run", "record", "replay", "serve"])
def test_windows_refuses_to_run_jobs_and_names_what_helps(command: str, tmp_path: Path) -> None:
    done = run("windows", tmp_path, command, "--help")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"epochzero {command} does not work on Windows" in done.stderr
    assert "WSL" in done.stderr


def test_windows_refuses_to_run_a_job_from_python_too(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(EMULATE.parent)!r}); import emulate; emulate.emulate('windows')\n"
        "import epochzero\n"
        "try: epochzero.run('python train.py', 'runs', environment={})\n"
        "except epochzero.InputError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "WSL" in done.stdout, done.stderr[-500:]


def test_windows_refuses_a_dry_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    done = run("windows", tmp_path, "check", "--dry", "--", sys.executable, "train.py")
    assert done.returncode == 2
    assert "WSL" in done.stderr


def test_macos_names_the_weaker_isolation_of_a_dry_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('left', 'w').write('x')\nraise ValueError('seen')\n")
    done = run("macos", tmp_path, "check", "--dry", "--", sys.executable, "train.py")
    assert done.returncode == 1, done.stderr[-500:]
    assert "ValueError: seen" in done.stdout
    # Lines are wrapped.
    shown = " ".join(done.stdout.split())
    assert "Isolation interception." in shown
    assert "for each process, not for all processes together" in shown
    assert not (tmp_path / "left").exists()


def test_macos_runs_a_job_and_ends_what_it_leaves(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, subprocess, time\n"
        "left = subprocess.Popen(['sh', '-c', 'sleep 300 & echo $! > new; mv new pid; wait'])\n"
        "while not os.path.exists('pid'): time.sleep(0.05)\n"
        "raise KeyError('rate')\n"
    )
    done = run("macos", tmp_path, "run", "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert "KeyError: 'rate'" in done.stderr
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: linux.process_status(pid) is None)


def test_macos_refuses_to_simulate(tmp_path: Path) -> None:
    done = run(
        "macos", tmp_path, "run", "--simulate", "--target", "T4", "--", sys.executable, "-c", "pass"
    )
    assert done.returncode == 2
    assert done.stderr == "epochzero: --simulate and --inject require Linux; this is macOS\n"


def test_macos_finds_the_processes_that_linux_finds() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        found = {process.pid: process for process in macos.processes()}
        assert found[child.pid].parent == os.getpid()
        # Not the ps that listed them: a job's guard would wait for it to exit.
        children = [pid for pid, process in found.items() if process.parent == os.getpid()]
        assert all(linux.process_status(pid) for pid in children)
        own, other = macos.process_status(os.getpid()), linux.process_status(os.getpid())
        assert own is not None
        assert other is not None
        assert own.memory_bytes == pytest.approx(other.memory_bytes, rel=0.2)
        assert abs(own.started - time.time()) < 86400 * 365
    finally:
        child.kill()
        child.wait()
    assert macos.process_status(child.pid) is None
    assert macos.name_of(os.getpid()) == linux.name_of(os.getpid())


@every(
    "case",
    [("0:00.05", 0.05), ("00:01:02", 62), ("2-03:00:01", 2 * 86400 + 3 * 3600 + 1)],
)
def test_times_of_ps(case: tuple[str, float]) -> None:
    text, seconds = case
    assert macos._seconds(text) == pytest.approx(seconds)


def test_windows_has_the_same_interface() -> None:
    import epochzero.platform as interface

    shared = {"ProcessStatus", "ResourceLimits", "SystemUser", "annotations", "sys"}
    names = {name for name in vars(interface) if not name.startswith("_")} - shared
    modules = {"linux", "macos", "model", "posix", "windows"}
    assert {"limit_process", "lock"} <= names
    assert not [name for name in names - modules if not hasattr(windows, name)]
