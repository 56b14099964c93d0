"""Dumps that PyTorch writes for real ranks that hang over Gloo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from epochzero.diagnose import diagnose

pytest.importorskip("torch")

JOB = """
import os, pickle, sys, threading, time
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

# The first rank that exits closes its connections: what the others raise then, or not, is no part of this test.
sys.excepthook = lambda *_: threading.Event().wait()
dist.init_process_group("gloo")
rank = dist.get_rank()
tensor = torch.ones(4)
for _ in range(3):
    dist.all_reduce(tensor)


def recorded():
    # The recorder notes the end of a collective after the call has returned; its state over Gloo stays "scheduled".
    entries = pickle.loads(_dump_fr_trace())["entries"]
    return len(entries) >= (3 if rank == 1 else 4) and all(e["retired"] for e in entries[:3])


def dump():
    # Until the others wait in the fourth; rank 1 never calls it.
    while not recorded():
        time.sleep(0.1)
    with open(f"nccl_trace_rank_{rank}.part", "wb") as file:
        file.write(_dump_fr_trace())
    os.rename(f"nccl_trace_rank_{rank}.part", f"nccl_trace_rank_{rank}")
    while len([name for name in os.listdir() if name.startswith("nccl_trace") and "." not in name]) < 3:
        time.sleep(0.1)
    os._exit(0)


threading.Thread(target=dump).start()
if rank == 1:
    threading.Event().wait()
dist.all_reduce(torch.ones(8))  # the others wait here
"""


FORKED = """
import os, torch
os.environ["RANK"] = "0" if not os.fork() else "1" if not os.fork() else "2"
"""
"""Three ranks that import torch once."""


def test_the_absent_rank_of_a_real_job_is_named(tmp_path: Path) -> None:
    program = FORKED + JOB.replace(
        'init_process_group("gloo")',
        'init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=int(os.environ["RANK"]), world_size=3)',
    )
    script = tmp_path / "job.py"
    script.write_text(program)
    environment = {
        "PATH": "/usr/bin:/bin",
        "TORCH_FR_BUFFER_SIZE": "100",
        "OMP_NUM_THREADS": "1",
        "HOME": str(tmp_path),
    }
    # The output ends with the last of the ranks.
    subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, check=True, capture_output=True
    )

    diagnosis = diagnose(*tmp_path.glob("nccl_trace_rank_?"))

    assert diagnosis.root is not None
    assert diagnosis.root.rank == 1
    assert "ranks 0, 2 wait in all_reduce" in diagnosis.root.text
    line = len(program.splitlines())
    assert diagnosis.user_frame is not None
    assert diagnosis.user_frame.line == line


def test_run_collects_the_dumps_of_a_job_that_failed(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    # One rank exits, and torchrun ends the others: what it reports of several that exit at once varies.
    script.write_text(JOB.replace("os._exit(0)", "os._exit(3) if rank == 0 else time.sleep(3600)"))
    torchrun = Path(sys.executable).with_name("torchrun")
    environment = {
        "PATH": "/usr/bin:/bin",
        "TORCH_FR_BUFFER_SIZE": "100",
        "TORCH_FR_DUMP_TEMP_FILE": "nccl_trace_rank_",
        "OMP_NUM_THREADS": "1",
        "HOME": str(tmp_path / "home"),
    }
    command = [
        *(sys.executable, "-m", "epochzero", "run", "--"),
        *(str(torchrun), "--standalone", "--nproc-per-node", "3", str(script)),
    ]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )

    assert "A rank did not join a collective" in run.stderr
    assert "rank 1" in run.stderr
