"""``epochzero run``: what it says of a failure, keeps of it, and starts again."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochzero.run.records.model import Conclusion, Decision
from tests.run.conftest import Ask, Kept, command
from tests.waiting import PATIENCE_S

Run = Callable[..., subprocess.CompletedProcess[bytes]]

FAILS = """
import json
def rate(path):
    with open(path) as handle:
        return json.load(handle)["lr"]
print("loading", flush=True)
print(rate("config.json"))
"""
# Fails as a lost connection does, until it was started as often as its argument says.
FLAKY = """
import os, pathlib, sys
tries = pathlib.Path("tries")
count = int(tries.read_text()) + 1 if tries.exists() else 1
tries.write_text(str(count))
print("try", count, os.environ.get("EPOCHZERO_CHECKPOINT", ""), flush=True)
if count == 1:
    pathlib.Path("1.pt").touch()
print(f"Saved checkpoint {count}.pt", flush=True)
if count < int(sys.argv[1]):
    raise ConnectionResetError(104, "Connection reset by peer")
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a job, a git repository."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.py").write_text(FAILS.lstrip())
    (folder / "flaky.py").write_text(FLAKY.lstrip())
    (folder / "config.json").write_text('{"rate": 0.1}')
    (folder / "quick.toml").write_text(
        'title = "Quick."\n[[rules]]\ntitle = "all"\nretries = 3\nreason = "It can pass."\n'
    )
    monkeypatch.chdir(folder)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "A job")):
        subprocess.run((*git, *words), check=True)
    return folder


def test_a_failure_is_one_screen_and_is_kept(run: Run, kept: Kept, job: Path, ask: Ask) -> None:
    done = run("--gpus", "8", "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert done.stdout == b"loading\n"
    said = done.stderr.decode()
    for part in (
        "KeyError: 'lr'",
        "train.py failed with exit code 1",
        "FAILED  Key Not Found",
        "train.py:4 in rate",
        "8 GPUs x",
        "Retry       No. The failure is deterministic",
        "Look at     train.py",
        "epochzero show",
    ):
        assert part in said
    assert said.index("FAILED") < said.index("Look at")
    records = {type(record): record for record in kept.records}
    concluded, decision = records[Conclusion], records[Decision]
    assert concluded.diagnosis["category"] == "key_not_found"
    assert concluded.ranking["items"][0]["path"] == "train.py"
    assert concluded.checked is not None
    assert decision.action == "stop"
    (stored,) = json.loads(ask("jobs", "--format", "json"))
    assert (stored["state"], stored["category"], stored["gpus"]) == ("failed", "key_not_found", 8)
    assert "Key Not Found" in ask("show", "last")
    assert "KeyError: 'lr'" in ask("show", "last", "--log")


def test_what_check_would_have_said_is_said(run: Run, job: Path) -> None:
    (job / "config.json").unlink()
    said = run(sys.executable, "train.py").stderr.decode()
    assert "Path Not Found" in said
    assert "Check       train.py:3  path-not-found" in said


def test_a_job_that_ends_well_says_nothing(run: Run, kept: Kept, job: Path, ask: Ask) -> None:
    done = run(sys.executable, "-c", "print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"fine\n", b"")
    assert "succeeded" in ask("jobs")


def test_quiet_says_nothing_of_a_failure(run: Run, kept: Kept, job: Path) -> None:
    done = run("--quiet", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert (done.returncode, done.stderr) == (3, b"")


def test_advice_is_not_followed_by_itself(run: Run, kept: Kept, job: Path) -> None:
    done = run("--policy", "quick.toml", "--", sys.executable, "flaky.py", "2")
    assert done.returncode == 1
    assert b"advice only: --retries auto would restart it" in done.stderr
    assert (job / "tries").read_text() == "1"


def test_what_can_pass_is_started_again_until_it_does(
    run: Run, kept: Kept, job: Path, ask: Ask
) -> None:
    options = ("--retries", "auto", "--policy", "quick.toml")
    done = run(*options, "--", sys.executable, "flaky.py", "3")
    assert done.returncode == 0
    saved = job / "1.pt"  # Checkpoint 2.pt is only reported.
    tries = [line for line in done.stdout.decode().splitlines() if line.startswith("try")]
    assert tries == ["try 1 ", f"try 2 {saved}", f"try 3 {saved}"]
    assert "can resume from" in done.stderr.decode()
    (stored,) = json.loads(ask("jobs", "--format", "json"))
    assert (stored["attempts"], stored["state"]) == (3, "succeeded")


def test_what_is_deterministic_is_not_started_again(run: Run, kept: Kept, job: Path) -> None:
    done = run("--retries", "auto", "--gpus", "4", "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert len(list(kept.home.glob("runs/*/*"))) == 1
    assert b"deterministic" in done.stderr


def test_one_rank_of_many_is_not_started_again_alone(
    run: Run, kept: Kept, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_NTASKS", "4")
    options = ("--retries", "auto", "--policy", "quick.toml")
    done = run(*options, "--", sys.executable, "flaky.py", "3")
    assert (done.returncode, (job / "tries").read_text()) == (1, "1")
    assert b"a single rank is not restarted" in b" ".join(done.stderr.split())


def test_a_number_starts_again_whatever_failed(run: Run, kept: Kept, job: Path) -> None:
    policy = ("--retries", "1")
    done = run(*policy, "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert sorted(path.name for path in kept.home.glob("runs/*/*")) == ["1", "2"]


def test_no_retries_are_reported_as_such(run: Run, kept: Kept, job: Path) -> None:
    done = run("--retries", "0", "--", sys.executable, "train.py")
    assert b"No failure is retried." in done.stderr
    assert b"restarts a job after any failure" not in done.stderr


def test_a_scheduler_is_told_what_to_do(run: Run, kept: Kept, job: Path) -> None:
    advice = job / "advice.json"
    options = ("--advice-file", str(advice), "--advice-exit-codes")
    assert run(*options, "--", sys.executable, "train.py").returncode == 78
    assert json.loads(advice.read_text())["action"] == "stop"
    assert run(*options, "--", sys.executable, "flaky.py", "2").returncode == 75
    assert json.loads(advice.read_text())["exit_code"] == 1


def test_a_job_that_would_fail_is_not_started(run: Run, kept: Kept, job: Path) -> None:
    (job / "config.json").unlink()
    done = run("--check", "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert b"path-not-found" in done.stdout
    assert b"loading" not in done.stdout
    assert not list(kept.home.glob("runs/*"))


def test_a_wait_for_a_retry_can_be_left(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept, job: Path
) -> None:
    process: Any = start("--retries", "auto", "--", sys.executable, "flaky.py", "9")
    said = b""
    while b"Ctrl-C" not in said:
        said += process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 1
    assert len(list(kept.home.glob("runs/*/*"))) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--retries", "often"), b"advise, auto, never or a number"),
        (("--retries", "auto", "--policy", "bold"), b"unknown retry policy 'bold'"),
        (("--store", "mysql://a@b/c"), b"an SQLite file or postgresql"),
    ],
)
def test_wrong_options_are_told_before_the_start(
    run: Run, job: Path, options: tuple[str, ...], message: bytes
) -> None:
    done = run(*options, "--", sys.executable, "train.py")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == b""


def test_a_store_that_does_not_answer_changes_nothing(
    run: Run, kept: Kept, job: Path, ask: Ask
) -> None:
    address = "postgresql://nobody@127.0.0.1:1/none"
    done = run("--store", address, "--", sys.executable, "train.py")
    assert done.returncode == 1
    assert b"not in the store yet" in done.stderr
    assert b"FAILED  Key Not Found" in done.stderr
    assert "Key Not Found" in ask("show", "last")


def test_a_home_that_is_removed_meanwhile_changes_nothing(run: Run, kept: Kept, job: Path) -> None:
    code = f"import shutil; shutil.rmtree({str(kept.home)!r}); raise SystemExit(5)"
    assert run(sys.executable, "-c", code).returncode == 5


def test_standard_output_comes_before_the_error_that_follows_it(
    run: Run, kept: Kept, job: Path
) -> None:
    code = "import sys\nprint('epoch 3', flush=True)\nsys.stderr.write('Traceback\\n')"
    for _ in range(5):
        run("--quiet", "--", sys.executable, "-c", code)
        assert kept.output == b"epoch 3\nTraceback\n"


def test_a_running_job_is_listed_and_its_log_is_shown(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept, job: Path, ask: Ask
) -> None:
    process = start("sh", "-c", "echo begun; sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    (listed,) = json.loads(ask("jobs", "--format", "json"))
    assert listed["state"] == "running"
    assert ask("show", "last", "--log") == "begun\n"
    process.terminate()
    process.wait(PATIENCE_S)
    (listed,) = json.loads(ask("jobs", "--format", "json"))
    assert listed["state"] == "cancelled"


def test_a_long_line_needs_little_memory(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept
) -> None:
    code = "import os, time\nfor _ in range(50): os.write(1, b'x' * (1 << 20))\nos.write(2, b'!')\ntime.sleep(60)"
    process = start(sys.executable, "-c", code, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    assert process.stderr.read(1) == b"!"
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak) < 200 << 10


def test_a_store_that_is_locked_meanwhile_keeps_nothing_up(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept, ask: Ask
) -> None:
    kept.home.mkdir()
    with sqlite3.connect(kept.home / "epochzero.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        process = start("sh", "-c", "echo begun; sleep 4; echo done")
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == [b"begun\n", b"done\n"]
        other.execute("ROLLBACK")
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout.read() == b""
    assert "succeeded" in ask("jobs")


@pytest.mark.parametrize(
    ("text", "program", "code", "said"),
    [
        ("", "no-such-program", 127, "no-such-program: command not found"),
        ("", "", 127, "'': command not found"),
        ("#!/no/interpreter\n", "./program", 127, "./program: its interpreter was not found"),
        ("", "/tmp", 126, "/tmp: cannot be executed"),
        ("\x7fELF\x02junk\n", "./program", 126, "./program: cannot be executed"),
        ("exit 0 \0\n", "./program", 126, "./program: cannot be executed"),
    ],
)
def test_what_cannot_be_started_says_why(
    run: Run, job: Path, text: str, program: str, code: int, said: str
) -> None:
    (job / "program").write_text(text)
    (job / "program").chmod(0o755)
    done = run("--", program)
    assert (done.returncode, done.stderr.decode()) == (code, f"epochzero: {said}\n")


def test_the_check_after_a_failure_reads_the_packages_of_the_job(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a job in a virtual environment, and EpochZero installed elsewhere (pipx, uv)."""
    venv.create(job / "venv", symlinks=True, with_pip=False)
    (packages,) = job.glob("venv/lib/python*/site-packages")
    (packages / "deepspeed.py").write_text("")
    (packages / "deepspeed-1.0.dist-info").mkdir()
    (packages / "deepspeed-1.0.dist-info/METADATA").write_text("Name: deepspeed\nVersion: 1.0\n")
    (packages / "deepspeed-1.0.dist-info/RECORD").write_text("deepspeed.py,,\n")
    (job / "train.py").write_text("import deepspeed\nrates = {'adam': 0.1}\nrates['sgd']\n")
    monkeypatch.setenv("PATH", f"{job / 'venv/bin'}:{os.environ['PATH']}")
    screen = run("--", "python", "train.py").stderr.decode()
    assert "train.py:3  key-missing" in screen
    assert "module-missing" not in screen


@pytest.mark.parametrize(("program", "code"), [("train.py", 127), ("./train.py", 126)])
def test_a_python_file_that_is_no_command_is_to_be_run_with_python(
    run: Run, job: Path, program: str, code: int
) -> None:
    (job / "train.py").write_text("print('trained')\n")
    done = run("--", program)
    assert done.returncode == code
    assert f"epochzero run -- python {program}\n" in done.stderr.decode()


def test_a_job_that_does_not_end_when_asked_was_not_out_of_memory(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept
) -> None:
    process = start(
        "--grace", "0.5", "--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGKILL
    assert b"interrupted by the user and had to be killed" in error
    assert b"Memory" not in error
    assert kept.ended.why == "user"


def test_output_that_is_no_text_has_no_diagnosis_and_that_is_said(run: Run, kept: Kept) -> None:
    done = run("sh", "-c", "head -c 3000000 /dev/urandom; exit 4")
    assert done.returncode == 4
    assert b"not a readable log" in done.stderr


def test_a_disk_that_is_full_costs_the_job_nothing(run: Run, kept: Kept, job: Path) -> None:
    kept.home.mkdir()
    shell = f"mount -t tmpfs -o size=400k none {kept.home} && exec "
    shell += shlex.join(
        command(sys.executable, "-c", "print('x' * 999999, flush=True); raise SystemExit(4)")
    )
    if subprocess.run(("unshare", "-rm", "true"), check=False).returncode:
        pytest.skip("this system lets nobody mount a small disk")
    done = subprocess.run(("unshare", "-rm", "sh", "-c", shell), capture_output=True, check=False)
    assert done.returncode == 4
    assert len(done.stdout) == 1_000_000
    assert b"FAILED" in done.stderr
    assert b"some records of the job could not be stored; is the disk full?" in done.stderr
