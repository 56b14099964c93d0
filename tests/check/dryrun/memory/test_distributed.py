"""The memory of one of several processes, by hand: buckets, gathered parameters, sharded states."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from epochzero.check.dryrun.memory.estimate import Memory, estimate
from epochzero.check.dryrun.memory.trace import read
from epochzero.check.target.gpus import presets

pytest.importorskip("torch", reason="the scripts train with torch")

TRACER = Path(__file__).parents[4] / "bench" / "memory" / "trace.py"
MIB = 1 << 20
A100 = presets()["A100 80GB"]
PROCESSES = 8
Run = Callable[..., subprocess.CompletedProcess[str]]
Trace = Callable[[str], Memory]
HEAD = """\
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("nccl")
"""
TRAIN = """
for _ in range(2):
    model(torch.randn(4, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PARALLEL = """
model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(16))).cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[0], gradient_as_bucket_view=VIEW)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
BLOCKS = """
blocks = (
    nn.Sequential(nn.Linear(1024, 4096, bias=False), nn.Linear(4096, 1024, bias=False))
    for _ in range(6)
)
model = nn.Sequential(*blocks)
"""
FSDP2 = """
from torch.distributed.fsdp import fully_shard
for block in model:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
"""
FSDP1 = """
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
policy = ModuleWrapPolicy({type(model)})
model = FullyShardedDataParallel(model, device_id=0, auto_wrap_policy=policy)
optimizer = torch.optim.AdamW(model.parameters())
"""
SHARDED = (BLOCKS + FSDP2.replace("for block", "model.cuda()\nfor block"), BLOCKS + FSDP1)


@pytest.fixture
def traced(run_preloaded: Run, tmp_path: Path) -> Trace:
    """Estimates the memory of a script."""

    def trace(script: str) -> Memory:
        (tmp_path / "train.py").write_text(HEAD + script + TRAIN, encoding="utf-8")
        gpu = {
            "model": A100.model,
            "memory_bytes": A100.memory_bytes,
            "capability": A100.capability,
        }
        spec = {"gpu": gpu, "processes": PROCESSES, "trace": str(tmp_path / "trace")}
        ran = run_preloaded(str(TRACER), json.dumps(spec), str(tmp_path / "train.py"))
        assert ran.returncode == 0, ran.stderr[-2000:]
        return estimate(read(tmp_path / "trace"), A100, processes=PROCESSES)

    return trace


def mebibytes(sizes: Mapping[str, int]) -> Mapping[str, float]:
    return {kind: round(size / MIB) for kind, size in sizes.items() if size > MIB}


def test_gradients_are_copied_to_the_buckets_of_ddp(traced: Trace) -> None:
    memory = traced(PARALLEL.replace("VIEW", "False"))
    # 16 weights of 4 MiB, their gradients, and the buckets of these.
    expected = {"parameter": 64, "gradient": 64, "communication": 64, "workspace": 16}
    assert mebibytes(memory.by_kind) == expected


def test_gradients_may_be_views_of_buckets(traced: Trace) -> None:
    memory = traced(PARALLEL.replace("VIEW", "True"))
    # One gradient at a time lies beside the buckets.
    expected = {"parameter": 64, "gradient": 64, "temporary": 4, "workspace": 16}
    assert mebibytes(memory.by_kind) == expected


@pytest.mark.parametrize("script", SHARDED, ids=("FSDP2", "FSDP1"))
def test_a_process_has_its_shards_and_what_is_gathered_of_two_blocks(
    script: str, traced: Trace
) -> None:
    memory = traced(script)
    # An eighth of 192 MiB of weights, and Adam's two states for each; gradients of four of the six
    # blocks, sharded. Of a block, 32 MiB: its weights gathered, those of the next in the buffer of the
    # gathering, its gradients, and the buffer of those that are scattered.
    assert mebibytes(memory.by_kind) == {
        "parameter": 24,
        "optimizer": 48,
        "gradient": 16,
        "communication": 96,
        "temporary": 32,
        "workspace": 16,
    }
    assert memory.moment == "in backward, step 2"


OPTIONS = """
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.device_mesh import init_device_mesh
options = {options}
for block in model:
    fully_shard(block, **options)
fully_shard(model, **options)
optimizer = torch.optim.AdamW(model.parameters())
"""


@pytest.mark.parametrize(
    ("options", "moment", "expected"),
    [
        # Gathered in half precision, twice 16 MiB, and scattered in single; the gradients of a block in half.
        (
            "{'mp_policy': MixedPrecisionPolicy(torch.bfloat16, torch.float32)}",
            "in backward, step 2",
            {
                "parameter": 24,
                "optimizer": 48,
                "gradient": 16,
                "communication": 64,
                "temporary": 16,
            },
        ),
        # Shards, their gradients and the optimizer's states lie on the CPU: what is gathered is the same.
        (
            "{'offload_policy': CPUOffloadPolicy()}",
            "in backward, step 1",
            {"communication": 96, "temporary": 32},
        ),
        # A quarter of all, not an eighth: shards are held twice.
        (
            "{'mesh': init_device_mesh('cuda', (2, 4), mesh_dim_names=('replicate', 'shard'))}",
            "in backward, step 2",
            {
                "parameter": 48,
                "optimizer": 96,
                "gradient": 32,
                "communication": 96,
                "temporary": 32,
            },
        ),
        # All six blocks gathered at the end of forward, with the last one's buffer and that before it,
        # which FSDP gives back one block later.
        (
            "{'reshard_after_forward': False}",
            "in forward, step 2",
            {"parameter": 24, "optimizer": 48, "communication": 256},
        ),
    ],
    ids=("mixed precision", "offloaded", "hybrid", "not resharded"),
)
def test_options_of_fsdp2(
    options: str, moment: str, expected: Mapping[str, int], traced: Trace
) -> None:
    memory = traced(BLOCKS + OPTIONS.format(options=options))
    assert mebibytes(memory.by_kind) == {**expected, "workspace": 16}
    assert memory.moment == moment
