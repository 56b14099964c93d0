"""A supervised job is as it is by itself: output, input, exit code, signals; and it is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.run.records.model import Output, Start
from tests.run.conftest import Kept, command, gone
from tests.waiting import PATIENCE_S

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Launch = Callable[..., subprocess.Popen[bytes]]
PYTHON = sys.executable


def _number(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_output_passes_separately_and_is_kept_in_order(run: Run, kept: Kept) -> None:
    done = run("sh", "-c", "echo one; sleep 0.3; echo two >&2; sleep 0.3; printf three; exit 3")
    assert (done.returncode, done.stdout) == (3, b"one\nthree")
    told = done.stderr.decode().splitlines()
    assert told[0] == "two"
    assert told[1].startswith("epochzero: sh failed with exit code 3 after ")
    assert f"epochzero show {kept.folder.parent.name}" in told[-1]
    assert kept.output == b"one\ntwo\nthree"
    assert isinstance(kept.records[0], Start)
    assert kept.ended.exit_code == 3


def test_both_outputs_in_one_file_keep_their_order(run: Run, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo out; echo err >&2; done"
    with open(tmp_path / "log", "wb") as log:
        run("sh", "-c", script, capture_output=False, stdout=log, stderr=subprocess.STDOUT)
    assert (tmp_path / "log").read_bytes() == b"out\nerr\n" * 8


def test_success_says_nothing(run: Run, kept: Kept) -> None:
    done = run("true")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (kept.ended.exit_code, kept.ended.why) == (0, "")


def test_binary_output_and_a_line_without_end_pass_byte_for_byte(run: Run, kept: Kept) -> None:
    program = "import os, sys; sys.stdout.buffer.write(bytes(range(256)) * 40000)"
    done = run("--keep-output", "1MB", "--", PYTHON, "-c", program)
    assert done.stdout == bytes(range(256)) * 40000
    output = next(record for record in kept.records if isinstance(record, Output))
    assert output.size == len(done.stdout)
    assert output.size - output.dropped == len(kept.output) < 2.5 * (1 << 20)
    assert done.stdout.startswith(kept.output[: 1 << 20])
    assert done.stdout.endswith(kept.output[1 << 20 :])


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("no-such-command",), 127, "no-such-command: command not found"),
        (("./missing",), 127, "./missing: command not found"),
        (("/",), 126, "/: cannot be executed"),
        (("/etc/passwd",), 126, "/etc/passwd: cannot be executed"),
    ],
)
def test_what_cannot_be_started_is_told_as_by_a_shell(
    run: Run, kept: Kept, words: tuple[str, ...], code: int, says: str
) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.decode() == f"epochzero: {says}\n"
    assert kept.ended.why == "not_started"


def test_a_directory_that_cannot_be_searched_is_passed_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)  # root may search it
    path = f"{tmp_path}/closed:{os.environ['PATH']}"
    assert run("no-such-command", env={**os.environ, "PATH": path}).returncode == 127


def test_a_script_that_names_no_interpreter_is_one_for_sh(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text('echo "ran $1"\n')
    script.chmod(0o755)
    assert run(str(script), "here").stdout == b"ran here\n"


def test_a_signal_that_ends_the_job_is_in_the_exit_code(run: Run, kept: Kept) -> None:
    done = run("sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert b"was killed by SIGSEGV" in done.stderr
    assert kept.ended.signal == signal.SIGSEGV


def test_quiet_says_nothing_after_a_failure(run: Run) -> None:
    assert run("--quiet", "--", "false").stderr == b""


def test_the_job_reads_its_input_itself(run: Run) -> None:
    assert run("cat", input=b"typed\n").stdout == b"typed\n"
    # What the job does not read stays there for who comes next.
    shell = f"printf 'one\\ntwo\\n' > in; {{ {' '.join(command('head', '-c', '4'))}; cat; }} < in"
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, cwd=os.environ["EPOCHZERO_HOME"] + "/.."
    )
    assert done.stdout == b"one\ntwo\n"


def test_closed_streams_are_closed_for_the_job(run: Run, kept: Kept) -> None:
    program = "import os; [print(i, os.path.exists(f'/proc/self/fd/{i}')) for i in (0, 2)]"
    shell = " ".join(command(PYTHON, "-S", "-c", f'"{program}"'))
    done = subprocess.run(["sh", "-c", f"{shell} <&- 2>&-"], capture_output=True)
    assert done.stdout == b"0 False\n2 False\n"
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(command('echo', 'x'))} >&-"], capture_output=True
    )
    assert done.returncode == 1
    assert b"write error" in done.stderr


def test_files_of_the_shell_are_the_jobs_too(run: Run, kept: Kept) -> None:
    shell = f"{' '.join(command('cat', '<(echo substituted)'))}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True)
    assert done.stdout == b"substituted\n"


def test_the_job_has_no_descriptor_of_ours(run: Run) -> None:
    done = run("sh", "-c", "ls /proc/self/fd")
    # The last is the folder that is listed.
    assert done.stdout.split() == [b"0", b"1", b"2", b"3"]


def test_the_environment_is_ours_with_the_job_added(run: Run, kept: Kept) -> None:
    given = {
        "PATH": os.environ["PATH"],
        "HOME": "/",
        "EPOCHZERO_HOME": str(kept.home),
        "A": "\udcff",
    }
    given |= {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = run("env", "-0", env=given)
    told = dict(entry.split(b"=", 1) for entry in done.stdout.split(b"\0") if entry)
    added = {key.decode() for key in told} - set(given)
    assert added == {
        "EPOCHZERO_JOB",
        "EPOCHZERO_ATTEMPT",
        "EPOCHZERO_PROGRESS",
        "PET_LOG_DIR",
        "TORCHELASTIC_ERROR_FILE",
        # Companions: stacks of a job that hangs, and the time of each rank's steps.
        "EPOCHZERO_COMPANIONS",
        "EPOCHZERO_COMPANIONS_NOTES",
        "EPOCHZERO_LAUNCHERS",
        "EPOCHZERO_RANK_VARIABLES",
        "EPOCHZERO_STACKS_FILE",
        "EPOCHZERO_STEPS_FOLDER",
    }
    assert told[b"A"] == b"\xff"
    assert told[b"EPOCHZERO_JOB"].decode() == kept.folder.parent.name
    assert told[b"PET_LOG_DIR"].decode() == str(kept.folder / "elastic")


def test_a_reader_that_goes_away_ends_the_job_as_without_us(start: Launch) -> None:
    process = start("yes")
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 128 + signal.SIGPIPE


def test_a_slow_reader_gets_all_of_it(start: Launch) -> None:
    process = start("head", "-c", "3000000", "/dev/zero")
    time.sleep(3.0)
    assert process.stdout is not None
    assert process.poll() is None
    assert len(process.stdout.read()) == 3_000_000
    assert process.wait(PATIENCE_S) == 0


def test_a_full_disk_outside_does_not_end_the_job(run: Run, kept: Kept) -> None:
    with open("/dev/full", "wb") as full:
        done = run("sh", "-c", "echo a; echo b; exit 5", capture_output=False, stdout=full)
    assert done.returncode == 5
    assert kept.output == b"a\nb\n"
    assert "No space left" in kept.events["output_not_passed_on"].text


def test_a_home_that_cannot_be_written_has_a_substitute(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("tmp", "none"):
        (tmp_path / name).mkdir()
    home = {"EPOCHZERO_HOME": str(tmp_path / "file" / "home"), "TMPDIR": str(tmp_path / "tmp")}
    done = run("echo", "x", env={**os.environ, **home})
    assert (done.returncode, done.stdout) == (0, b"x\n")
    assert b"the job is stored in" in done.stderr
    (tmp_path / "none" / f"epochzero-{os.getuid()}").write_text("")
    done = run("echo", "x", env={**os.environ, **home, "TMPDIR": str(tmp_path / "none")})
    assert (done.returncode, done.stdout) == (0, b"x\n")
    assert b"the job is not stored" in done.stderr


def test_a_full_disk_for_logs_does_not_touch_the_job(run: Run, kept: Kept) -> None:
    limited = f"ulimit -f 8; exec {' '.join(command('head', '-c', '100000', '/dev/zero'))}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True)
    assert (done.returncode, len(done.stdout)) == (0, 100_000)
    assert len(kept.output) == 8192


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on_once(start: Launch, kept: Kept, number: signal.Signals) -> None:
    program = (
        "import os, signal, sys, time; heard = []\n"
        f"signal.signal({int(number)}, lambda n, _: heard.append(n))\n"
        "print(os.getpid(), flush=True)\n"
        "while not heard: time.sleep(0.05)\n"
        "time.sleep(0.3); print(len(heard)); sys.exit(7)"
    )
    process = start(PYTHON, "-c", program)
    _number(process)
    os.killpg(process.pid, number)
    assert process.communicate(timeout=PATIENCE_S)[0] == b"1\n"
    assert process.returncode == 7
    assert kept.events["signal"].details == {"signal": number.name, "who": "user"}


def test_sigterm_of_a_scheduler_is_told_apart(
    start: Launch, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    process = start("sh", "-c", "echo $$; exec sleep 60")
    _number(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert kept.ended.why == "scheduler"


def test_what_is_ignored_outside_is_ignored_by_the_job(start: Launch, kept: Kept) -> None:
    process = start("sh", "-c", "echo $$; sleep 0.5; echo lived", preexec_fn=_ignore_hangup)
    _number(process)
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=PATIENCE_S)[0] == b"lived\n"


def _ignore_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


DEAF = "trap '' TERM INT; echo $$; while :; do sleep 0.2; done"


def test_a_job_that_ignores_sigterm_is_killed_after_the_grace(start: Launch, kept: Kept) -> None:
    process = start("--grace", "0.5", "--", "sh", "-c", DEAF)
    job = _number(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert gone(job)
    assert kept.ended.why == "user"


def test_a_second_interrupt_ends_at_once(start: Launch) -> None:
    process = start("--grace", "1000", "--", "sh", "-c", DEAF.replace("''", "'echo again'", 1))
    _number(process)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == b"again\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGKILL


# Forks twice, changes its session, closes everything, and ignores requests to end.
DAEMON = """
import os, signal, sys, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.write(write, str(os.getpid()).encode())
        for stream in (0, 1, 2):
            os.close(stream)
        time.sleep(600)
    os._exit(0)
os.wait()
print(os.read(read, 20).decode(), flush=True)
"""


def test_a_daemon_does_not_outlive_the_job(run: Run, kept: Kept) -> None:
    done = run(PYTHON, "-c", DAEMON)
    assert done.returncode == 0
    assert gone(int(done.stdout))
    assert "python" in kept.events["killed_leftovers"].text


def test_a_child_in_the_background_may_end_by_itself(run: Run, kept: Kept) -> None:
    done = run("sh", "-c", "(sleep 0.1; echo late) & echo early")
    assert done.stdout == b"early\nlate\n"
    assert "killed_leftovers" not in kept.events


def test_a_tree_that_forks_while_it_is_killed_ends(start: Launch) -> None:
    program = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True)\n"
        "while True:\n"
        "    if os.fork(): time.sleep(0.01); os._exit(0)\n"
    )
    process = start("--grace", "0.3", "--", PYTHON, "-c", program)
    _number(process)
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)
    assert not _running(program)


def _running(text: str) -> list[str]:
    return [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists() and text.encode() in _read(path) and b"epochzero" not in _read(path)
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_job_ends_with_a_killed_supervisor(start: Launch) -> None:
    process = start("--grace", "0.3", "--", PYTHON, "-c", DAEMON + "time.sleep(600)")
    daemon = _number(process)
    process.kill()
    assert gone(daemon)


def test_the_job_of_a_killed_supervisor_has_its_grace(start: Launch, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    # Nobody reads any more what it writes to its streams.
    script = f"exec 2> /dev/null; trap 'sleep 1.6; echo > {saved}; exit' TERM; echo $$; while :; do sleep 0.1; done"
    process = start("--grace", "60", "--", "sh", "-c", script)
    job = _number(process)
    process.kill()
    assert gone(job)
    assert saved.exists()


def test_the_job_ends_with_a_killed_guard(start: Launch, kept: Kept) -> None:
    process = start("--grace", "0.3", "--", PYTHON, "-c", DAEMON + "time.sleep(600)")
    daemon = _number(process)
    guard = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(guard[0]), signal.SIGKILL)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert gone(daemon)
    assert "guard_lost" in kept.events


def test_ranks_of_torchrun_have_logs_of_their_own(run: Run, kept: Kept) -> None:
    script = "printf '[default0]:a\\nboth\\n[default1]:b\\n[default0]:c\\n'; printf '[rank1]: d'"
    run("sh", "-c", script)
    assert kept.log("rank0") == b"[default0]:a\n[default0]:c\n"
    assert kept.log("rank1") == b"[default1]:b\n[rank1]: d"
    assert kept.output == b"[default0]:a\nboth\n[default1]:b\n[default0]:c\n[rank1]: d"


def test_attempts_of_one_job_lie_side_by_side(run: Run, kept: Kept) -> None:
    given = {**os.environ, "EPOCHZERO_JOB": "mine"}
    run("true", env=given)
    run("true", env={**given, "EPOCHZERO_ATTEMPT": "1"})
    run("true", env={**given, "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"})
    assert sorted(path.name for path in (kept.home / "runs" / "mine").iterdir()) == [
        "1",
        "1-r3",
        "2",
    ]
