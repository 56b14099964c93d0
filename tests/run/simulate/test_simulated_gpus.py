"""Programs for GPUs that are not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.torch_jobs import light_torch

pytest.importorskip("torch")

Run = Callable[..., subprocess.CompletedProcess[bytes]]

TRAINS = """
import torch
torch.set_num_threads(1)
assert torch.cuda.is_available() and torch.cuda.device_count() == 2
assert torch.cuda.get_device_name(1) == "Tesla V100" and torch.cuda.get_device_capability() == (7, 0)
assert torch.cuda.get_device_properties(0).total_memory == 16 << 20
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
assert device.type == "cuda" and torch.zeros(1, device=1).get_device() == 1
model = torch.nn.Linear(1000, 10).to(device)
weight = next(model.parameters())
assert weight.is_cuda and str(weight.device) == "cuda:0"
before = torch.cuda.memory_allocated()
assert 40_000 <= before < 44_000, before
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
for _ in range(3):
    batch = torch.ones(8, 1000).pin_memory().cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.float16):
        output = model(batch)
        assert output.dtype is torch.float16
    loss = output.float().sum()
    assert loss.is_cuda and not loss.detach().cpu().is_cuda
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
assert optimizer.state[weight]["exp_avg"].is_cuda
assert torch.cuda.memory_allocated() > before <= torch.cuda.max_memory_allocated()
host = torch.zeros(4)
there = host.to("cuda:1")
there.add_(1)
assert host.sum() == 0 and str(there.device) == "cuda:1" and there.to("cuda:1") is there
with torch.cuda.stream(torch.cuda.Stream()):
    there = there * 2
torch.cuda.synchronize()
assert there.tolist() == [2, 2, 2, 2]
for wrong, kind, words in (
    (lambda: there.numpy(), TypeError, "can't convert cuda:1"),
    (lambda: there + torch.ones(4, device="cuda:0"), RuntimeError, "two devices, cuda:0 and cuda:1!"),
    (lambda: torch.cat([weight[0, :4], there]), RuntimeError, "two devices, cuda:0 and cuda:1!"),
    (lambda: model.to("cuda:0")(torch.ones(2, 1000, device="cuda:1")), RuntimeError, "two devices"),
    (lambda: torch.zeros(1, device="cuda:2"), RuntimeError, "invalid device ordinal"),
    (lambda: torch.autocast("cuda", dtype=torch.bfloat16), RuntimeError, "bfloat16"),
):
    try:
        wrong()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
del batch, output, loss, there
freed = torch.cuda.memory_allocated()
kept = [torch.zeros(1 << 20, device="cuda") for _ in range(3)]
assert torch.cuda.memory_allocated() == freed + (3 << 22)
del kept
assert torch.cuda.memory_allocated() == freed
print("trained", flush=True)
torch.zeros(1 << 23, device="cuda")
"""

GPUS = """format = 1
[[gpus]]
model = "Tesla V100"
memory_bytes = "16 MiB"
capability = "7.0"
count = 2
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    (tmp_path / "gpus.toml").write_text(GPUS)
    monkeypatch.chdir(tmp_path)
    return "--simulate", "--target", "gpus.toml"


def test_a_training_for_gpus_runs_and_ends_where_memory_does(
    run: Run, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(light_torch(TRAINS))
    done = run(*words, "--", sys.executable, "train.py")
    said = done.stderr.decode()
    assert done.stdout == b"trained\n", said
    assert done.returncode == 1
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB" in said
    assert "simulate/child/memory.py" not in said


def test_an_isolated_python_sees_the_gpus(run: Run, words: tuple[str, ...]) -> None:
    code = "import sys, torch; print(torch.cuda.device_count(), sys.flags.isolated, sys.argv)"
    done = run(*words, "--", sys.executable, "-I", "-c", code, "x")
    assert done.stdout == b"2 1 ['-c', 'x']\n", done.stderr.decode()


def test_ranks_talk_through_gloo_where_nccl_is_asked_for(
    run: Run, words: tuple[str, ...], tmp_path: Path
) -> None:
    program = (
        "import os, torch, torch.distributed as dist\n"
        "torch.set_num_threads(1)\n"
        "dist.init_process_group('nccl')\n"
        "rank = int(os.environ['LOCAL_RANK'])\n"
        "torch.cuda.set_device(rank)\n"
        "layer = torch.nn.Linear(4, 2).cuda(rank)\n"
        "model = torch.nn.parallel.DistributedDataParallel(layer, device_ids=[rank])\n"
        "model(torch.ones(3, 4, device=f'cuda:{rank}')).sum().backward()\n"
        "total = torch.ones(1, device='cuda') * (rank + 1)\n"
        "dist.all_reduce(total)\n"
        "assert total.item() == 3 and total.get_device() == rank\n"
        "dist.destroy_process_group()\n"
        "os._exit(0)\n"  # gloo's threads abort a Python that shuts down, now and then
    )
    (tmp_path / "train.py").write_text(light_torch(program))
    launcher = (sys.executable, "-m", "torch.distributed.run")
    done = run(*words, "--ranks", "2", "--", *launcher, "train.py")
    assert done.returncode == 0, done.stderr.decode()
