"""Hangs of real jobs: ranks that outlive another one, and jobs that stand still."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.injected.companions import with_companions
from epochzero.logs.flight_recorder import read_dump
from epochzero.logs.traceback import Frame
from epochzero.run.observers import hangs as hang
from epochzero.run.observers import stacks
from epochzero.run.observers.child.stacks import FILE_VARIABLE
from epochzero.run.observers.hang_report import HungRank, report_of
from epochzero.run.observers.hangs import (
    HANG_CODE,
    HANG_FILE,
    HUNG,
    STACKS_COMPANION,
    STACKS_FILE,
    HangWatcher,
    with_stacks,
)
from epochzero.run.observers.kernel_waits import waits_for
from epochzero.run.observers.ranks import RankWatcher
from epochzero.run.observers.stacks import Stack, StackReader, kernel_stack
from epochzero.run.process.usage import ProcessTree
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import (
    Conclusion,
    JobEvent,
    JobProgress,
    JobSnapshot,
    Record,
    Sample,
)
from tests.ports import unused_port
from tests.run.conftest import Kept
from tests.run.trees import SLEEPER, job, until
from tests.torch_jobs import light_torch
from tests.waiting import PATIENCE_S

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
import torch
import torch.distributed as dist
from epochzero.run.observers.child.collectives import begin_torch
begin_torch(torch, os.environ)
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


def watch(watcher: Watcher, seconds: float) -> list[JobEvent]:
    """The events of the next seconds, of a look five times a second."""
    found: list[Record] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found += watcher.tick()
        time.sleep(0.2)
    return [record for record in found if isinstance(record, JobEvent)]


def events_of(watcher: Watcher, pid: int, folder: Path, seconds: float) -> list[JobEvent]:
    watcher.started(pid, folder, Clock())
    return watch(watcher, seconds)


def first_events(watcher: Watcher, count: int) -> list[JobEvent]:
    """As many events or more, of a look five times a second."""
    found: list[JobEvent] = []

    def came() -> bool:
        found.extend(watch(watcher, 0.2))
        return len(found) >= count

    until(came)
    return found


def test_ranks_that_outlive_a_failed_one_are_ended(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FAILING)) as child:
        watcher = RankWatcher(1.0)
        watcher.started(child.pid, tmp_path, Clock())
        lost, ended = first_events(watcher, 2)
        assert child.wait(PATIENCE_S) == 0
    assert (lost.what, lost.rank) == ("rank_lost", 1)
    assert ended.what == "ended_hung_ranks"
    assert "rank 0 showed no sign of life" in ended.text


def test_a_rank_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    stubborn = (
        "import signal, subprocess, sys; signal.signal(15, signal.SIG_IGN)\n"
        f"subprocess.run([sys.executable, '-c', {SLEEPER!r}])\n{SLEEPER}"
    )
    with job(launch(stubborn, FAILING)) as child:
        tree = ProcessTree(child.pid)
        watcher = RankWatcher(1.0)
        watcher.started(child.pid, tmp_path, Clock())
        assert len(first_events(watcher, 2)) == 2
        until(lambda: not (watch(watcher, 0.2) or tree.read()))


def test_a_rank_that_has_done_its_work_is_no_loss(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FINISHING)) as child:
        assert events_of(RankWatcher(0.5), child.pid, tmp_path, 4) == []


def test_ranks_that_print_are_left_alone(tmp_path: Path) -> None:
    with job(launch(SLEEPER, FAILING)) as child:
        watcher = RankWatcher(2.0)
        watcher.started(child.pid, tmp_path, Clock())
        events: list[JobEvent] = []

        def prints() -> bool:
            watcher.output("stdout", b"step 7\n")
            events.extend(watch(watcher, 0.5))
            return bool(events)

        until(prints)
        for _ in range(6):
            prints()
        assert [event.what for event in events] == ["rank_lost"]
        assert len(ProcessTree(child.pid).read()) == 2


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
        watcher = RankWatcher(0.5)
        watcher.started(child.pid, tmp_path, Clock())
        events = first_events(watcher, 1) + watch(watcher, 2)
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
        events += first_events(watcher, what - len(events)) if what else watch(watcher, 4)
        assert len(events) == what


def gloo(folder: Path, what: str, then: str) -> tuple[str, dict[str, str]]:
    """A job of two ranks, and its variables."""
    script = light_torch(GLOO.format(what=what, then=then))
    variables = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(unused_port()),
        "READY": f"{folder}/ready",
    }
    return launch(script, script), variables


def test_a_rank_that_waits_for_a_dead_one_in_torch(tmp_path: Path) -> None:
    waits = "dist.distributed_c10d._get_default_store().get('a key that rank 1 would set')"
    script, variables = gloo(tmp_path, "os._exit(3)", waits)
    with job(script, **variables) as child:
        watcher = RankWatcher(1.0)
        watcher.started(child.pid, tmp_path, Clock())
        events = first_events(watcher, 2)
        child.wait(PATIENCE_S)
    assert [event.what for event in events] == ["rank_lost", "ended_hung_ranks"]
    assert events[0].rank == 1


BARRIER = "dist.barrier()"
POLLING = "work = dist.barrier(async_op=True)\nwhile not work.is_completed(): time.sleep(0.01)"
"""Wakes up all the time; only the recorder shows that the barrier is pending."""


@pytest.mark.parametrize(("waits", "line"), [(BARRIER, 12), (POLLING, 13)], ids=["in", "polls"])
def test_a_hang_in_torch_names_each_rank_and_its_line(
    tmp_path: Path, waits: str, line: int
) -> None:
    script, variables = gloo(tmp_path, "import queue; queue.Queue().get()", waits)
    variables[FILE_VARIABLE] = str(tmp_path / STACKS_FILE)
    with job(script, **variables) as child:
        until(lambda: (tmp_path / "ready0").exists() and (tmp_path / "ready1").exists())
        watcher = HangWatcher(4.0, dict(os.environ))
        watcher.started(child.pid, tmp_path, Clock())
        (stall, *_) = first_events(watcher, 1)
    assert stall.what == "stall"
    assert stall.rank == 1
    assert (
        f"rank 1 waits at <string>:11 (`queue.get`); rank 0 waits in barrier at <string>:{line}"
        in stall.text
    )
    assert list(stall.details) == ["rank 1", "rank 0"]
    assert "threading.py" in stall.details["rank 1"]
    assert "JobHung: no progress for" in (tmp_path / HANG_FILE).read_text()
    assert len(list((tmp_path / "stacks").iterdir())) == 2


WAITS = "open({fifo!r}).close()"
"""Blocks until the test opens the pipe, too."""


def test_a_hang_is_reported_again_later_and_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang, "_INTERRUPTED_S", 0.0)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with job(f"{WAITS.format(fifo=str(fifo))}\nwhile True: pass") as child:
        watcher = HangWatcher(1.0, {})
        watcher.started(child.pid, tmp_path, Clock())
        events: list[JobEvent] = []

        def reported(count: int) -> bool:
            nonlocal events
            events += watch(watcher, 0.5)
            return len(events) >= count

        until(lambda: reported(2))
        assert {event.what for event in events} == {"stall"}
        assert not events[1].details, "the same stacks are stored once"
        # What a job prints while it is interrupted does not end a hang.
        assert not list(watcher.output("stdout", b"KeyboardInterrupt\n"))
        fifo.write_bytes(b"")
        until(lambda: reported(3) and any(event.what == "stall_over" for event in events))
        assert not (tmp_path / HANG_FILE).exists()


EVENT_LOOP = """
import asyncio
async def poll():
    while True:
        await asyncio.sleep(0.1)
asyncio.run(poll())
"""
POOL = """
import concurrent.futures, time
def read(_):
    time.sleep(0.2)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(read, range(1000)))
"""


@pytest.mark.parametrize(
    "works",
    ["while True: pass", "import time\nwhile True: time.sleep(0.1)", EVENT_LOOP, POOL],
    ids=["computes", "polls", "polls in an event loop", "waits for threads that read"],
)
def test_a_silent_job_that_works_does_not_hang(tmp_path: Path, works: str) -> None:
    with job(works) as child:
        assert events_of(HangWatcher(1.0, {}), child.pid, tmp_path, 4) == []


DEADLOCK = """
import concurrent.futures, threading, time
def beat():
    while True:
        time.sleep(0.2)
def read():
    return pool.submit(len, "").result()
threading.Thread(target=beat, daemon=True).start()
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    pool.submit(read).result()
"""


def test_a_sign_of_life_of_another_thread_is_no_progress_of_a_pool(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DEADLOCK)
    with job(f"import runpy; runpy.run_path({str(tmp_path / 'train.py')!r})") as child:
        watcher = HangWatcher(1.0, {})
        watcher.started(child.pid, tmp_path, Clock())
        events = first_events(watcher, 1)
    assert (
        "waits at train.py:10 (`_base.result`), while its thread is at train.py:7" in events[0].text
    )


def test_a_job_that_was_stopped_does_not_hang(tmp_path: Path) -> None:
    with job(SLEEPER) as child:
        time.sleep(1)
        os.kill(child.pid, 19)
        assert events_of(HangWatcher(1.0, {}), child.pid, tmp_path, 3) == []


def test_a_hang_without_py_spy_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "find_py_spy", lambda _: None)
    with job(launch(SLEEPER, SLEEPER)) as child:
        watcher = HangWatcher(1.0, {})
        watcher.started(child.pid, tmp_path, Clock())
        (stall, *_) = first_events(watcher, 1)
    assert "ranks 0, 1 wait (Python stack not available)" in stall.text
    assert stall.text.endswith("py-spy is not installed: pip install 'epochzero[stacks]'")
    assert "State:" in stall.details["ranks 0, 1"]


FORKING = """
import multiprocessing, threading
lock = threading.Lock()
def helper():
    with lock:
        with lock:  # line 6
            pass
worker = multiprocessing.get_context("fork").Process(target=helper)
worker.start()
worker.join()  # line 10
"""


def test_without_py_spy_the_processes_write_their_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "find_py_spy", lambda _: None)
    (tmp_path / "train.py").write_text(FORKING)
    variables = with_companions(with_stacks({}, tmp_path), [STACKS_COMPANION], tmp_path)
    script = f"import runpy; runpy.run_path({str(tmp_path / 'train.py')!r})"
    with job(script, **variables) as child:
        watcher = HangWatcher(1.0, {})
        watcher.started(child.pid, tmp_path, Clock())
        (stall, *_) = first_events(watcher, 1)
        assert child.poll() is None
    assert "waits at train.py:10 (`process.join`), for its process" in stall.text
    assert "at train.py:6 (`with lock:`)" in stall.text


def test_a_process_that_has_no_handler_is_not_signaled(tmp_path: Path) -> None:
    (tmp_path / STACKS_FILE).touch()
    with job(SLEEPER) as child:
        reader = StackReader({}, tmp_path / STACKS_FILE)
        reader._py_spy = None
        time.sleep(0.5)
        assert reader.read(child.pid).frames == ()
        assert child.poll() is None


def test_a_sleep_gets_four_times_the_limit(tmp_path: Path) -> None:
    with job(SLEEPER) as child:
        watcher = HangWatcher(1.0, {})
        assert events_of(watcher, child.pid, tmp_path, 3) == []
        assert [event.what for event in first_events(watcher, 1)] == ["stall"]


STEPS = """
import queue
def train(last):
    for epoch, _ in enumerate("ab"):
        done = 0
        while done < 9:
            done += 1
            if epoch == 1 and done == last:
                queue.Queue().get()
train(5)
"""


def test_a_stack_has_the_counters_of_the_loops_around_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEPS)
    with job(f"import runpy; runpy.run_path({str(tmp_path / 'train.py')!r})") as child:
        reader = StackReader(dict(os.environ))
        # On a busy machine py-spy misses a process now and then.
        expected = {("train", "epoch"): 1, ("train", "done"): 5}
        until(lambda: reader.read(child.pid).counters == expected)


def waiting(tmp_path: Path, number: int, step: int, peer: int | None = None) -> HungRank:
    """A rank that waits in a collective at line 3, or for a message of a peer."""
    file = tmp_path / "ring.py"
    file.write_text("def main():\n    for step in range(9):\n        exchange()\n")
    call = "recv" if peer is not None else "all_reduce"
    frames = (
        Frame(str(file), 3, "main", "exchange()"),
        Frame("/x/torch/distributed/distributed_c10d.py", 9, call, "work.wait()"),
    )
    values = ({"step": str(step)}, {"src": str(peer)})
    return HungRank(number, 100 + number, Stack(frames, "", values), {}, {})


@pytest.mark.parametrize(
    ("steps", "rank", "text"),
    [
        ((30, 31, 30, 30), 1, "rank 1 is at step=31, the others at step=30"),
        ((30, 31), None, "rank 0 is at step=30, rank 1 is at step=31"),
        ((7, 7, 7), None, ""),
        # A variable with the rank in it says nothing.
        ((0, 1, 2, 3), None, ""),
    ],
)
def test_of_ranks_that_all_wait_for_each_other_the_one_out_of_step_is_named(
    tmp_path: Path, steps: tuple[int, ...], rank: int | None, text: str
) -> None:
    report = report_of([waiting(tmp_path, n, step) for n, step in enumerate(steps)])
    assert report.rank == rank
    assert report.text.endswith(text or "wait in all_reduce at ring.py:3")


def test_of_ranks_in_collectives_the_recorders_name_the_one_that_left_one_out(
    tmp_path: Path,
) -> None:
    ranks = []
    for number, calls in enumerate((3, 2, 3)):
        entries = [
            {"process_group": ["0", "default_pg"], "collective_seq_id": n, "profiling_name": "gloo:all_reduce", "retired": n < 3}
            for n in range(1, calls + 1)
        ]  # fmt: skip
        dump = tmp_path / f"trace_{number}.json"
        dump.write_text(json.dumps({"entries": entries}))
        ranks.append(replace(waiting(tmp_path, number, 4), dump=read_dump(dump)))
    report = report_of(ranks)
    assert report.rank == 1
    assert "collective 3 of default_pg was not called by rank 1" in report.text


def test_the_thread_that_a_rank_waits_for_is_named(tmp_path: Path) -> None:
    def stack(*calls: tuple[str, int, str], helpers: tuple[Stack, ...] = ()) -> Stack:
        frames = tuple(Frame(file, line, name, "") for file, line, name in calls)
        return Stack(frames, "", helpers=helpers)

    locked = stack(("/job/read.py", 7, "read"), ("/usr/lib/python3.11/queue.py", 9, "get"))
    asleep = Stack((Frame("/job/beat.py", 3, "beat", "time.sleep(5)"),), "")
    future = ("/usr/lib/python3.11/concurrent/futures/_base.py", 451, "result")
    waits = stack(("/job/train.py", 12, "main"), future, helpers=(asleep, locked))
    rank = replace(waiting(tmp_path, 1, 4), stack=waits)
    report = report_of([waiting(tmp_path, 0, 4), rank])
    assert report.rank == 1
    assert (
        "rank 1 waits at train.py:12 (`_base.result`), while its thread is at read.py:7 (`queue.get`)"
        in report.text
    )
    assert rank.culprit is locked
    alone = replace(rank, stack=replace(waits, helpers=(asleep,)))
    assert alone.culprit is alone.stack
    assert "thread" not in alone.what


@pytest.mark.parametrize(
    ("others", "seconds", "gpus", "moves"),
    [
        pytest.param("waits", 0.0, 0, False, id="all wait for it"),
        pytest.param("waits", 0.0, 2, False, id="all wait for it on their GPUs"),
        pytest.param("waits", 0.0, 3, True, id="its GPU computes"),
        pytest.param("waits", 2.0, 0, True, id="it computes"),
        pytest.param("blocks", 0.0, 0, True, id="another one blocks elsewhere"),
        pytest.param("none", 0.0, 0, True, id="a job without ranks"),
    ],
)
def test_a_rank_that_polls_does_not_move_if_all_others_wait_for_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: str,
    seconds: float,
    gpus: int,
    moves: bool,
) -> None:
    polling = Stack((Frame("/job/train.py", 2, "main", "time.sleep(1)"),), "")

    def sampled(rank: HungRank, wakes: bool) -> tuple[hang._RankSample, hang._RankSample]:
        before = hang._RankUsage(0.0, 0, {rank.pid: 1})
        after = hang._RankUsage(seconds * wakes, 0, {rank.pid: 1 + wakes})
        fields = (rank.number, rank.pid, rank.stack, {}, {})
        return (
            hang._RankSample(*fields, before, before, False, False, {}),
            hang._RankSample(*fields, after, after, False, False, {}),
        )

    ranks = [sampled(replace(waiting(tmp_path, 0, 4), stack=polling), True)]
    if others != "none":
        ranks.append(sampled(waiting(tmp_path, 1, 4), False))
        third = waiting(tmp_path, 2, 4)
        third = third if others == "waits" else replace(third, stack=polling)
        ranks.append(sampled(third, False))
    watcher = HangWatcher(1.0, {})
    watcher.started(os.getpid(), tmp_path, Clock())
    blocked = hang._BlockedSamples(0.0, 0.0, [before for before, _ in ranks])
    processes = ProcessTree(os.getpid()).read()
    monkeypatch.setattr(watcher, "_busy_gpus", lambda: gpus)
    assert watcher._moves(blocked, processes, [after for _, after in ranks], 10.0) is moves
    assert blocked.polls is not moves


def test_ranks_that_wait_for_messages_of_each_other_are_a_ring(tmp_path: Path) -> None:
    report = report_of([waiting(tmp_path, n, 4, peer=(n + 2) % 3) for n in range(3)])
    assert report.rank is None
    assert "rank 0 for 2 for 1 for 0: they wait for each other" in report.text


def test_the_kernel_tells_what_a_tool_of_a_rank_waits_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = f"import subprocess; subprocess.run(['sh', '-c', 'cat {tmp_path}/pipe; true'])"
    with job(script) as child:
        tree = ProcessTree(child.pid)
        until(lambda: "named pipe" in waits_for(child.pid, [p.pid for p in tree.read()]))
        found = waits_for(child.pid, [p.pid for p in tree.read()])
    assert re.fullmatch(
        r"waits for sh \(process \d+\), which waits for cat \(process \d+\), "
        r"which opens a named pipe whose other end is not open",
        found,
    )


def test_the_kernel_tells_whose_answer_a_process_waits_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reads = f"import socket; socket.create_connection(('127.0.0.1', {port})).recv(1)"
        with job(reads) as child:
            until(lambda: bool(waits_for(child.pid)))
            assert waits_for(child.pid) == f"reads from the TCP connection to 127.0.0.1:{port}"


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
    assert {JobSnapshot, Sample, JobProgress} <= kinds
    assert {"rank_lost", "ended_hung_ranks"} <= set(kept.events)
    samples = [record for record in kept.records if isinstance(record, Sample)]
    assert max(sample.processes for sample in samples) == 3


HANGS = """
import os, sys
print("step 1", flush=True)
os.mkfifo("pipe")
open("pipe").read()  # line 5
"""


@pytest.mark.parametrize("on_hang", ["kill", "restart"])
def test_a_run_ends_a_job_that_hangs(run: Run, kept: Kept, tmp_path: Path, on_hang: str) -> None:
    (tmp_path / "hangs.py").write_text(HANGS.replace("mkfifo", "path.exists('pipe') or os.mkfifo"))
    options = ("--stall", "2", "--grace", "1", "--on-hang", on_hang)
    done = run(*options, "--", sys.executable, "hangs.py", cwd=tmp_path)
    assert done.returncode == HANG_CODE
    assert b'at hangs.py:5 (`open("pipe").read()`)' in done.stderr
    assert b"The job made no progress" in done.stderr
    assert kept.ended.why == HUNG
    assert list((kept.folder / "stacks").iterdir())
    attempts = len(list(kept.home.glob("runs/*/*")))
    assert attempts == {"kill": 1, "restart": 2}[on_hang]
    concluded = next(record for record in kept.records if isinstance(record, Conclusion))
    assert concluded.diagnosis is not None
    assert concluded.diagnosis["user_frame"]["line"] == 5


def test_a_hang_that_its_user_interrupts_is_a_hang(
    start: Callable[..., subprocess.Popen[bytes]], kept: Kept, tmp_path: Path
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    process = start("--stall", "2", "--", sys.executable, "hangs.py", cwd=tmp_path)
    assert process.stderr is not None
    assert b"No progress" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    told = process.stderr.read()
    assert b"The job made no progress" in told
    assert b"progress again" not in told
    assert kept.ended.why == "user"
