"""Hangs of real jobs: ranks that outlive another one, and jobs that stand still."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.run.hang import HangWatcher as StallWatcher
from epochzero.run.ranks import RankWatcher
from epochzero.run.model import Event, Progress, Record, Sample, Snapshot
from epochzero.run.stacks import kernel_stack
from epochzero.run.usage import Tree
from epochzero.run.watcher import Clock, Watcher
from tests.run.conftest import Kept
from tests.run.trees import SLEEPER, job, until

Run = Callable[..., subprocess.CompletedProcess[bytes]]

LAUNCHER = """
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, "-c", script], env=dict(os.environ, RANK=str(n), WORLD_SIZE="2"))
    for n, script in enumerate(sys.argv[1:])
]
for rank in ranks:
    rank.wait()
"""
FAILING = "import time; time.sleep(1.5); raise SystemExit(1)"
FINISHING = "import time; time.sleep(1.5)"
GLOO = """
import os, sys, time
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
open(os.environ["READY"] + os.environ["RANK"], "w").close()
if dist.get_rank() == 1:
    {what}
{then}
"""


def launch(*scripts: str) -> str:
    """A script that starts ranks and waits for the first before the others."""
    return f"import sys; sys.argv[1:] = {scripts!r}\n{LAUNCHER}"


def watch(watcher: Watcher, seconds: float) -> list[Event]:
    """The events of the next seconds, of a look five times a second."""
    found: list[Record] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found += watcher.tick()
        time.sleep(0.2)
    return [record for record in found if isinstance(record, Event)]


def events_of(watcher: Watcher, pid: int, folder: Path, seconds: float) -> list[Event]:
    watcher.started(pid, folder, Clock())
    return watch(watcher, seconds)


def test_ranks_that_outlive_a_failed_one_are_ended(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FAILING)) as child:
        lost, ended = events_of(RankWatcher(1.0), child.pid, tmp_path, 5)
        assert child.wait(10) == 0
    assert (lost.what, lost.rank) == ("rank_lost", 1)
    assert ended.what == "ended_hung_ranks"
    assert "rank 0 showed no sign of life" in ended.text


def test_a_rank_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    stubborn = (
        "import signal, subprocess, sys; signal.signal(15, signal.SIG_IGN)\n"
        f"subprocess.run([sys.executable, '-c', {SLEEPER!r}])\n{SLEEPER}"
    )
    with job(launch(stubborn, FAILING)) as child:
        tree = Tree(child.pid)
        events = events_of(RankWatcher(1.0), child.pid, tmp_path, 6)
        assert len(events) == 2
        until(lambda: not tree.read())


def test_a_rank_that_has_done_its_work_is_no_loss(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FINISHING)) as child:
        assert events_of(RankWatcher(0.5), child.pid, tmp_path, 4) == []


def test_ranks_that_print_are_left_alone(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FAILING)) as child:
        watcher = RankWatcher(1.0)
        watcher.started(child.pid, tmp_path, Clock())
        events = []
        for _ in range(8):
            watcher.output("stdout", b"step 7\n")
            events += watch(watcher, 0.5)
        assert [event.what for event in events] == ["rank_lost"]
        assert len(Tree(child.pid).read()) == 2


def test_independent_processes_are_no_ranks(tmp_path: Path) -> None:
    script = launch(SLEEPER, FAILING).replace('WORLD_SIZE="2"', 'WORLD_SIZE="1"')
    with job(script) as child:
        assert events_of(RankWatcher(0.5), child.pid, tmp_path, 4) == []


def test_a_helper_that_a_rank_left_is_no_rank(tmp_path: Path) -> None:
    leaving = (
        "import subprocess, sys\n"
        f"subprocess.run(['sh', '-c', sys.executable + ' -c \"{FAILING}\" &'])\n{SLEEPER}"
    )
    with job(launch(SLEEPER, leaving)) as child:
        assert events_of(RankWatcher(0.5), child.pid, tmp_path, 5) == []


def test_what_torchrun_started_is_left_to_it(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FAILING), TORCHELASTIC_RUN_ID="none") as child:
        events = events_of(RankWatcher(0.5), child.pid, tmp_path, 4)
        assert [event.what for event in events] == ["rank_lost"]


@pytest.mark.parametrize(("said", "what"), [(b"Traceback (most recent call last)\n", 2), (b"", 0)])
def test_a_rank_whose_shell_took_its_status(tmp_path: Path, said: bytes, what: int) -> None:
    shell = (
        f"RANK=0 {sys.executable} -c '{SLEEPER}' & RANK=1 {sys.executable} -c '{FAILING}' & wait"
    )
    with job(
        f"import subprocess; subprocess.run(['bash', '-c', {shell!r}])", WORLD_SIZE="2"
    ) as child:
        watcher = RankWatcher(1.0)
        watcher.started(child.pid, tmp_path, Clock())
        events = watch(watcher, 1)
        if said:
            watcher.output("stderr", said)
        assert len(events + watch(watcher, 4)) == what


def gloo(folder: Path, what: str, then: str) -> tuple[str, dict[str, str]]:
    """A job of two ranks, and its variables."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = GLOO.format(what=what, then=then)
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "READY": f"{folder}/ready"}
    return launch(script, script), variables


def test_a_rank_that_waits_for_a_dead_one_in_torch(tmp_path: Path) -> None:
    waits = "dist.distributed_c10d._get_default_store().get('a key that rank 1 would set')"
    script, variables = gloo(tmp_path, "os._exit(3)", waits)
    with job(script, **variables) as child:
        watcher = RankWatcher(1.0)
        watcher.started(child.pid, tmp_path, Clock())
        events: list[Event] = []

        def over() -> bool:
            nonlocal events
            events += watch(watcher, 0.2)
            return child.poll() is not None

        until(over, 90)
    assert [event.what for event in events] == ["rank_lost", "ended_hung_ranks"]
    assert events[0].rank == 1


def test_a_rank_that_hangs_in_torch_is_a_stall_with_the_stacks_of_all(tmp_path: Path) -> None:
    script, variables = gloo(tmp_path, "time.sleep(600)", "dist.barrier()")
    with job(script, **variables) as child:
        until(lambda: (tmp_path / "ready0").exists() and (tmp_path / "ready1").exists(), 90)
        watcher = StallWatcher(2.0, dict(os.environ))
        watcher.started(child.pid, tmp_path, Clock())
        events: list[Event] = []

        def stalled() -> bool:
            nonlocal events
            events += watch(watcher, 1.0)
            return bool(events)

        until(stalled, 60)
    (stall, *_) = events
    assert stall.what == "stall"
    assert len(stall.details) == 3
    kept = [file.read_text() for file in (tmp_path / "stacks").iterdir()]
    assert len(kept) >= 3
    if shutil.which("py-spy", path=f"{os.environ['PATH']}:{Path(sys.executable).parent}"):
        assert any("barrier" in text for text in kept)


def test_a_stall_is_reported_again_later_and_when_it_is_over(tmp_path: Path) -> None:
    with job(SLEEPER) as child:
        watcher = StallWatcher(1.0, {})
        watcher.started(child.pid, tmp_path, Clock())
        events = watch(watcher, 6)
        assert 2 <= len(events) <= 3
        assert {event.what for event in events} == {"stall"}
        (over,) = watcher.output("stdout", b"step 8\n")
        assert isinstance(over, Event)
        assert over.what == "stall_over"
        assert list(watcher.output("stdout", b"step 9\n")) == []


def test_a_job_that_computes_does_not_stall(tmp_path: Path) -> None:
    with job("while True: pass") as child:
        assert events_of(StallWatcher(1.0, {}), child.pid, tmp_path, 3) == []


def test_a_job_that_was_stopped_does_not_stall(tmp_path: Path) -> None:
    with job(SLEEPER) as child:
        time.sleep(1)
        os.kill(child.pid, 19)
        assert events_of(StallWatcher(1.0, {}), child.pid, tmp_path, 3) == []


def test_without_py_spy_the_kernel_tells_where_a_process_waits() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        until(lambda: "sleeping" in kernel_stack(child.pid))
        assert "Name:\tsleep" in kernel_stack(child.pid)
        child.kill()
    assert kernel_stack(child.pid) == ""


def test_a_run_measures_and_ends_hung_ranks(run: Run, kept: Kept) -> None:
    failing = f"print('step 3 of 9, loss 0.5', flush=True); import time; time.sleep(2); {FAILING}"
    done = run("--grace", "1", "--", sys.executable, "-c", launch(SLEEPER, failing))
    assert done.returncode == 0
    kinds = {type(record) for record in kept.records}
    assert {Snapshot, Sample, Progress} <= kinds
    assert {"rank_lost", "ended_hung_ranks"} <= set(kept.events)
    samples = [record for record in kept.records if isinstance(record, Sample)]
    assert max(sample.processes for sample in samples) == 3


def test_a_run_reports_a_stall(run: Run, kept: Kept) -> None:
    run("--stall", "1", "--", sys.executable, "-c", "import time; time.sleep(4)")
    assert kept.events["stall"].details
    assert list((kept.folder / "stacks").iterdir())
