"""Jobs of several ranks, run dry: what fails on one rank only, and ranks that wait for each other."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from textwrap import dedent

import pytest

from epochzero.check import CheckResult, Limits, Target, check
from epochzero.check.dryrun.child.agreement import Agreement
from epochzero.check.dryrun.fork_server import fits
from epochzero.check.dryrun.hangs import hang
from epochzero.check.dryrun.records import HangRecord, read
from epochzero.check.launch.model import Job

pytest.importorskip("torch", reason="the scripts train with torch")

HERE = Target(name="here", here=True, gpus=())
PRELUDE = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
"""


def dry(folder: Path, body: str, ranks: int = 2) -> CheckResult:
    """Checks a script, whose body begins in line 8, dry alone."""
    (folder / "train.py").write_text(PRELUDE + dedent(body))
    return check(
        [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", "train.py"],
        HERE,
        folder=folder,
        environment=dict(os.environ),
        select=["dry-run-failed", "dry-run-crashed", "dry-run-hangs"],
        dry=Limits(seconds=60.0),
    )


def test_what_launchers_of_ranks_set_needs_no_process_of_its_own() -> None:
    alone = {"OMP_NUM_THREADS": "1"}
    launched = {
        "GLOO_SOCKET_IFNAME": "lo",
        "RANK": "0",
        "TORCHELASTIC_RUN_ID": "dry",
        "TORCH_DISTRIBUTED_DEBUG": "INFO",
    }
    assert fits(alone | launched, alone, read=())
    assert not fits(alone | launched, alone, read={"RANK"})
    assert not fits(alone | {"TORCH_NUM_THREADS": "2"}, alone, read=())


@pytest.mark.usefixtures("preloaded")
def test_the_ranks_see_the_true_world(tmp_path: Path) -> None:
    body = """\
    if world != 2:
        raise SystemExit("Start two processes.")
    assert dist.get_debug_level() == dist.DebugLevel.INFO
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    assert total.item() == 3
    every = [None] * world
    dist.all_gather_object(every, rank)
    assert every == [0, 1]
    model = DistributedDataParallel(nn.Linear(4, 1))
    model(torch.ones(2, 4)).sum().backward()
    """
    found = dry(tmp_path, body)
    assert not found.findings
    assert found.dry[0].ended == "finished"


@pytest.mark.usefixtures("preloaded")
def test_each_dimension_of_a_mesh_has_its_group(tmp_path: Path) -> None:
    body = """\
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total, group=mesh.get_group("shard"))
    assert total.item() == (3 if rank < 2 else 7), total
    """
    found = dry(tmp_path, body, ranks=4)
    assert not found.findings
    assert found.dry[0].ended == "finished"


@pytest.mark.usefixtures("preloaded")
def test_the_error_of_a_spawned_process_is_found_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        dedent("""\
        import torch
        import torch.multiprocessing as mp

        def work(rank, widths):
            torch.ones(2, 3) @ torch.ones(widths[rank], 1)

        if __name__ == "__main__":
            mp.spawn(work, args=([3, 4],), nprocs=2)
        """)
    )
    [found] = check(
        [sys.executable, "train.py"],
        HERE,
        folder=tmp_path,
        environment=dict(os.environ),
        select=["dry-run-failed"],
        dry=Limits(seconds=60.0),
    ).findings
    assert (found.place.line, found.category) == (5, "tensor_mismatch")
    assert found.consequence.startswith("RuntimeError: mat1 and mat2 shapes")
    assert "Traceback" not in found.consequence
    assert [place.line for place in found.via] == [8]


@pytest.mark.usefixtures("preloaded")
def test_a_failure_of_one_rank_is_found_with_its_number(tmp_path: Path) -> None:
    body = """\
    settings = {"width": 4} if rank == 0 else None
    dist.barrier()
    model = nn.Linear(settings["width"], 1)
    """
    (found,) = dry(tmp_path, body).findings
    assert (found.severity, found.category, found.place.line) == ("error", "null_reference", 10)
    assert "on rank 1" in found.message


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize(
    ("batches", "alone"),
    [("[1]", "dist.barrier()"), ("range(3)", "dist.all_reduce(torch.ones(3))")],
)
def test_a_collective_on_one_rank_is_a_hang(tmp_path: Path, batches: str, alone: str) -> None:
    body = f"""\
    model = DistributedDataParallel(nn.Linear(4, 1))
    for step in range(6):
        for batch in {batches}:
            model(torch.ones(2, 4)).sum().backward()
        if step % 2 == 1 and rank == 0:
            {alone}
    """
    (found,) = dry(tmp_path, body).findings
    assert (found.rule, found.category, found.place.line) == (
        "dry-run-hangs",
        "communication_failure",
        13,
    )
    assert "Rank 1 waits at train.py:11" in found.message
    assert found.severity == "error"


@pytest.mark.usefixtures("preloaded")
def test_a_rank_with_one_batch_more_waits_for_one_that_has_exited(tmp_path: Path) -> None:
    body = """\
    for batch in range(3 - rank):
        total = torch.ones(1)
        dist.all_reduce(total)
    """
    (found,) = dry(tmp_path, body).findings
    assert (found.rule, found.place.line) == ("dry-run-hangs", 10)
    assert "Rank 1 has exited" in found.message
    assert "iteration 3 of the loop at train.py:8" in found.message


@pytest.mark.usefixtures("preloaded")
def test_ranks_of_a_large_world_are_represented(tmp_path: Path) -> None:
    body = """\
    ones = torch.ones(1)
    dist.all_reduce(ones)
    assert ones.item() == world == 12
    names = [["cat", "dog"]] if rank == 0 else [None]
    dist.broadcast_object_list(names, src=0)
    assert len(names[0]) == 2
    every = [torch.zeros(1) for _ in range(world)]
    dist.all_gather(every, torch.tensor([float(rank)]))
    assert every[11].item() == 11
    half = dist.new_group(list(range(6)))
    if rank < 6:
        dist.barrier(group=half)
    seeds = list(range(11))
    torch.manual_seed(seeds[rank])
    """
    (found,) = dry(tmp_path, body, ranks=12).findings
    assert (found.category, found.place.line) == ("illegal_index", 21)
    assert "on rank 11" in found.message


EXPERTS = """\
torch.manual_seed(rank)
sent = torch.bincount(torch.randint(0, world, (64,)), minlength=world)
received = torch.empty_like(sent)
dist.all_to_all_single(received, sent)
tokens = torch.randn(64, 8)
taken = tokens.new_empty(int(received.sum()), 8)
dist.all_to_all_single(taken, tokens, received.tolist(), sent.tolist())
assert taken.isfinite().all()
"""


def test_ranks_exchange_parts_of_unequal_size(tmp_path: Path) -> None:
    assert dry(tmp_path, EXPERTS, ranks=8).findings == ()


def test_parts_of_another_size_than_expected_are_an_error(tmp_path: Path) -> None:
    body = EXPERTS.replace("received.tolist()", "sent.tolist()").replace("received.sum()", "64")
    (found,) = dry(tmp_path, body).findings
    assert (found.rule, found.place.line, found.severity) == ("dry-run-failed", 14, "error")
    assert "all_to_all: the tensors of the ranks differ in size" in found.consequence


def test_the_first_to_decide_decides_for_all() -> None:
    with tempfile.TemporaryFile() as file:
        agreement, other = Agreement(file), Agreement(file)
        assert agreement.decide("loop:1", 3) == 3
        assert other.decide("loop:1", 5) == 3
        assert other.decide("loop:2", None) is None
        assert agreement.decide("loop:2", 7) is None


def test_the_rank_that_is_alone_in_a_loop_is_named(tmp_path: Path) -> None:
    record = (
        b'{"kind": "hung", "ranks": ['
        b'{"rank": 0, "frames": [{"path": "/j/t.py", "line": 20, "function": "main", "code": "a()"}],'
        b' "loops": [], "visited": [["/j/t.py", 9]]},'
        b'{"rank": 1, "frames": [{"path": "/j/t.py", "line": 9, "function": "main", "code": "b()"}],'
        b' "loops": [{"path": "/j/t.py", "line": 7, "end": 12, "taken": 4}], "visited": []}]}'
    )
    (hung,) = read([record])
    assert isinstance(hung, HangRecord)
    job = Job(argv=(), script=Path("/j/t.py"), module="", folder=Path("/j"))
    found = hang(hung, job, "error")
    assert (found.place.path, found.place.line) == ("t.py", 9)
    assert "iteration 4 of the loop at t.py:7" in found.message
    assert [place.line for place in found.via] == [20]
