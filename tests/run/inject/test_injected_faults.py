"""Faults that the platform is made to have: what the job meets, and what the end says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import epochzero
from epochzero.run.inject.outcome import EVENT
from epochzero.run.records.model import Conclusion, JobEvent
from tests.run.conftest import Kept
from tests.torch_jobs import light_torch
from tests.waiting import PATIENCE_S

Run = Callable[..., CompletedProcess[bytes]]

TRAINING = """
import sys, time
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 7):
    try:
        loss = model(torch.ones(2, 4)).sum()
    except torch.OutOfMemoryError:
        if "survives" not in sys.argv:
            raise
        print("smaller", flush=True)
        continue
    loss.backward()
    optimizer.step()
    print(f"step {step}/6 loss {loss.item():.3f}", flush=True)
    if step == 3:
        torch.save(model.state_dict(), "early.pt")
        print("saved checkpoint to early.pt", flush=True)
torch.save(model.state_dict(), "late.pt")
"""
"""Six steps, and a checkpoint after the third and the last."""


def outcomes(kept: Kept) -> dict[str, tuple[str, str]]:
    """The verdict on each fault, and its sentences."""
    return {
        event.details["fault"]: (event.details["verdict"], event.text)
        for event in kept.records
        if isinstance(event, JobEvent) and event.what == EVENT
    }


@pytest.fixture
def train(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the training with options of a run and words of its own."""
    (tmp_path / "train.py").write_text(light_torch(TRAINING))
    monkeypatch.chdir(tmp_path)

    def call(*options: str, words: tuple[str, ...] = ()) -> CompletedProcess[bytes]:
        command = (sys.executable, "train.py", *words)
        return run(*options, "--", *command, timeout=PATIENCE_S)

    return call


@pytest.fixture
def python(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a program with options of a run."""
    monkeypatch.chdir(tmp_path)

    def call(program: str, *options: str) -> CompletedProcess[bytes]:
        return run(*options, "--", sys.executable, "-c", program, timeout=PATIENCE_S)

    return call


class TestMemory:
    def test_the_step_fails_in_torchs_own_words_at_the_jobs_own_line(
        self, train: Run, kept: Kept
    ) -> None:
        done = train("--inject", "oom@step:5")
        assert done.returncode == 1
        assert b"step 4/6" in done.stdout
        assert b"step 5/6" not in done.stdout
        assert b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in done.stderr
        concluded = next(one for one in kept.records if isinstance(one, Conclusion))
        assert concluded.diagnosis is not None
        assert concluded.diagnosis["category"] == "gpu_out_of_memory"
        frame = concluded.diagnosis["user_frame"]
        assert (Path(frame["file"]).name, frame["line"]) == ("train.py", 9)
        verdict, text = outcomes(kept)["oom@step:5"]
        assert verdict == "lost"
        assert "in step 5" in text

    def test_a_job_that_catches_it_survives(self, train: Run, kept: Kept) -> None:
        done = train("--inject", "oom@step:2", words=("survives",))
        assert done.returncode == 0
        assert done.stdout.count(b"smaller") == 1
        assert outcomes(kept)["oom@step:2"][0] == "survived"
        assert b"oom@step:2: survived" in done.stderr


class TestRanks:
    def test_a_job_that_is_killed_in_a_step_can_go_on_from_its_checkpoint(
        self, train: Run, kept: Kept
    ) -> None:
        done = train("--inject", "kill-rank@step:5")
        assert done.returncode == 137
        assert b"step 4/6" in done.stdout
        assert b"step 5/6" not in done.stdout
        verdict, text = outcomes(kept)["kill-rank@step:5"]
        assert verdict == "starts_again"
        assert "from early.pt" in text
        assert "injected" in kept.events

    def test_a_fault_comes_once_and_the_next_attempt_is_left_alone(
        self, train: Run, tmp_path: Path
    ) -> None:
        (tmp_path / "quick.toml").write_text(
            'title = "Q"\n[[rules]]\ntitle = "all"\nretries = 3\nreason = "So."\n'
        )
        done = train("--retries", "auto", "--policy", "quick.toml", "--inject", "kill-rank@step:2")
        assert done.returncode == 0
        assert done.stdout.count(b"step 1/6") == 2
        assert done.stderr.count(b"kill-rank@step:2: terminated, for a restart") == 1

    def test_the_rank_that_is_named_is_killed(self, run: Run, kept: Kept) -> None:
        script = (
            "for rank in 0 1; do RANK=$rank WORLD_SIZE=2"
            " sh -c 'sleep 4; echo rank $RANK is through' & done; wait"
        )
        done = run("--inject", "kill-rank=1@2s", "--", "sh", "-c", script)
        assert done.stdout == b"rank 0 is through\n"
        assert outcomes(kept)["kill-rank=1@2s"][0] == "survived"

    def test_a_rank_that_is_not_there_is_told(self, run: Run, kept: Kept) -> None:
        run("--inject", "kill-rank=7@0s", "--", "sleep", "2")
        verdict, text = outcomes(kept)["kill-rank=7@0s"]
        assert verdict == "not_possible"
        assert "is rank 7" in text


class TestDisk:
    def test_a_checkpoint_does_not_fit(self, train: Run, kept: Kept, tmp_path: Path) -> None:
        done = train("--inject", "disk-full@step:5")
        assert done.returncode == 1
        assert (tmp_path / "early.pt").stat().st_size
        assert b"No space left on device" in done.stderr
        concluded = next(one for one in kept.records if isinstance(one, Conclusion))
        assert concluded.diagnosis is not None
        assert concluded.diagnosis["category"] == "storage_full"
        assert "late.pt" in outcomes(kept)["disk-full@step:5"][1]

    def test_there_is_room_again_after_its_time(self, python: Run, kept: Kept) -> None:
        program = (
            "import time\n"
            "for _ in range(100):\n"
            "    try:\n"
            "        with open('file', 'w') as file:\n"
            "            file.write('data')\n"
            "        break\n"
            "    except OSError as error:\n"
            "        print(error)\n"
            "        time.sleep(0.1)\n"
        )
        done = python(program, "--inject", "disk-full@0s:for=2s")
        assert done.returncode == 0
        assert b"No space left on device" in done.stdout
        assert Path("file").read_text() == "data"
        assert outcomes(kept)["disk-full@0s:for=2s"][0] == "survived"

    def test_files_are_as_pythons_own_until_then(self, python: Run) -> None:
        program = (
            "import os, shutil\n"
            "with open('text', 'w', encoding='utf-8', newline='\\n') as file:\n"
            "    print(file.mode, type(file).__name__, file.name); file.write('ä\\n')\n"
            "with open('text', 'rb') as file: print(type(file).__name__, file.read())\n"
            "with open('text', 'r+b') as file: print(type(file).__name__)\n"
            "with open('text', 'ab', 0) as file: print(type(file).__name__, file.write(b'x'))\n"
            "shutil.copyfile('text', 'copy'); print(os.path.getsize('copy'))\n"
            "for wrong in (('none',), ('text', 'q'), ('text', 'rb', 1, 'utf-8'), ('.',)):\n"
            "    try: open(*wrong)\n"
            "    except Exception as error: print(type(error).__name__, error)\n"
            "print(open('/dev/null').read() == '', open(1, 'w', closefd=False).fileno())\n"
        )
        plain = python(program)
        assert plain.returncode == 0
        faults = ("--inject", "disk-full@1h", "--inject", "slow-storage=1s@1h")
        assert python(program, *faults).stdout == plain.stdout


class TestStorage:
    def test_each_read_takes_longer(self, python: Run) -> None:
        program = (
            "import time; open('file', 'w').write('data'); begin = time.time()\n"
            "assert open('file').read() == 'data'; print(time.time() - begin)\n"
        )
        done = python(program, "--inject", "slow-storage=300ms@0s")
        assert float(done.stdout) >= 0.3
        assert b"slow-storage=300ms@0s: survived" in done.stderr


class TestNetwork:
    PROGRAM = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
begin = time.time()
for what in (
    lambda: socket.create_connection(("192.0.2.1", 9), timeout=0.5),
    lambda: socket.getaddrinfo("example.invalid", 80),
):
    try:
        what()
    except OSError as error:
        print(type(error).__name__, error)
"""

    def test_other_hosts_cannot_be_reached_and_this_one_can(self, python: Run, kept: Kept) -> None:
        done = python(self.PROGRAM, "--inject", "network-drop@0s")
        assert done.stdout.decode().splitlines() == [
            "OSError [Errno 101] Network is unreachable",
            "gaierror [Errno -3] Temporary failure in name resolution",
        ]
        assert "192.0.2.1 could not be reached" in outcomes(kept)["network-drop@0s"][1]

    def test_it_may_hang_until_a_timeout(self, python: Run) -> None:
        done = python(self.PROGRAM, "--inject", "network-drop=hang@0s:for=3s")
        assert b"TimeoutError timed out" in done.stdout


class TestPreemption:
    PROGRAM = """
import signal, sys, time
def save(*_):
    print("saved checkpoint to last.pt", flush=True)
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
if "{deaf}": signal.signal(signal.SIGTERM, signal.SIG_IGN)
else: signal.signal(signal.SIGTERM, save)
time.sleep(600)
"""

    def test_a_job_has_its_notice(self, python: Run, kept: Kept) -> None:
        done = python(self.PROGRAM.format(deaf=""), "--inject", "preempt@1s:notice=9s")
        assert done.returncode == 3
        assert kept.ended.why == "scheduler"
        verdict, text = outcomes(kept)["preempt@1s:notice=9s"]
        assert verdict == "starts_again"
        assert "from last.pt" in text

    def test_after_its_notice_it_is_killed(self, python: Run, kept: Kept) -> None:
        done = python(self.PROGRAM.format(deaf="yes"), "--inject", "preempt@1s:notice=1s")
        assert done.returncode == 137


def test_memory_of_the_host_takes_the_largest_process(run: Run, kept: Kept) -> None:
    program = "import time; data = bytes(80 << 20); time.sleep(600)"
    script = f"{sys.executable} -c '{program}'; echo ended with $?; sleep 1"
    done = run("--inject", "host-oom@3s", "--", "sh", "-c", script, timeout=PATIENCE_S)
    assert done.stdout == b"ended with 137\n"
    assert outcomes(kept)["host-oom@3s"][0] == "survived"


class TestWhatCannotBe:
    def test_a_step_that_never_comes_is_told(self, run: Run, kept: Kept) -> None:
        script = "for step in 1 2 3; do echo step $step/3; sleep 0.5; done"
        done = run("--inject", "kill-rank@step:9", "--", "sh", "-c", script)
        assert done.returncode == 0
        verdict, text = outcomes(kept)["kill-rank@step:9"]
        assert verdict == "not_reached"
        assert "in the log is 3" in text

    def test_steps_of_any_program_are_known_from_its_log(self, run: Run, kept: Kept) -> None:
        script = "for step in 1 2 3 4 5 6 7 8; do echo step $step/8; sleep 0.5; done"
        assert run("--inject", "kill-rank@step:3", "--", "sh", "-c", script).returncode == 137
        assert outcomes(kept)["kill-rank@step:3"][0] == "starts_again"

    def test_within_another_program_than_python_nothing_fails(self, run: Run, kept: Kept) -> None:
        assert run("--inject", "disk-full@0s", "--", "sleep", "1.5").returncode == 0
        verdict, text = outcomes(kept)["disk-full@0s"]
        assert verdict == "not_possible"
        assert "the job's Python, but no Python was started" in text

    def test_a_job_that_ends_before_is_told(self, python: Run, kept: Kept) -> None:
        python("pass", "--inject", "disk-full@1h")
        assert outcomes(kept)["disk-full@1h"][0] == "not_reached"

    def test_a_fault_that_nothing_meets_is_told(self, python: Run, kept: Kept) -> None:
        python("import time; time.sleep(1.5)", "--inject", "disk-full@0s")
        assert outcomes(kept)["disk-full@0s"][0] == "no_effect"

    def test_a_wrong_fault_starts_nothing(self, run: Run) -> None:
        done = run("--inject", "kil-rank@3s", "--", "echo", "started")
        assert done.returncode == 2
        assert done.stdout == b""
        assert b"did you mean kill-rank?" in done.stderr


def test_from_python(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import os; os.write(os.open('f', os.O_CREAT | os.O_RDWR), b'x')",
    ]
    ran = epochzero.run(
        ["env", f"--chdir={tmp_path}", *command],
        tmp_path / "home",
        environment=os.environ,
        inject=("disk-full@0s",),
    )
    assert [outcome.verdict for outcome in ran.injected] == ["lost"]


def test_a_simulated_platform_fails_as_well(train: Run, kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "target.toml").write_text('format = 1\n[environment]\nLANG = "C.UTF-8"\n')
    done = train("--simulate", "--target", "target.toml", "--inject", "oom@step:5")
    assert done.returncode == 1
    assert b"step 4/6" in done.stdout
    assert outcomes(kept)["oom@step:5"][0] == "lost"
