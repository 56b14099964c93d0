"""The job starts more processes, or requests more nodes, GPUs, processors or memory, than the target has."""

from collections.abc import Iterator
from typing import TypeAlias

from epochzero.check.launch.model import Allocation
from epochzero.check.program.values import constant_of, integer_of
from epochzero.check.rule import Claims, JobView, Program, Rule, Target, claim_at, claim_at_start
from epochzero.check.rules.world import gpus_of_a_node, said_at, uses_gpus

_PROCESSES = (
    "--nproc_per_node",
    "--nproc-per-node",
    "--num_gpus",
    "--num_processes",
    "--ntasks-per-node",
    "--tasks-per-node",
    "nprocPerNode",
    "-np",
)
_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_NODES = ("--nnodes", "--num_nodes", "--num_machines", "--nodes", "-N")
_GPUS = ("--gres", "--gpus-per-node", "--gpus", "-G", "nvidia.com/gpu", "amd.com/gpu")
_CPUS = ("--cpus-per-task", "-c", "cpu")
_MEMORY = ("--mem", "memory", "--memory", "-m")
_Request: TypeAlias = tuple[tuple[str, ...], int | None, int | None, str]


def _check(view: JobView) -> Claims:
    job = view.job
    each, seen = job.allocation.processes_per_node, gpus_of_a_node(job, view.target)
    reported: tuple[str, ...] = ()
    if each is not None and seen is not None and each > seen[0] and uses_gpus(view.program):
        reported = _GPUS  # One cause, one finding.
        gpus = f"{seen[0]} GPU{'s' * (seen[0] != 1)}"
        yield claim_at_start(
            said_at(job, *_PROCESSES),
            message=f"The job starts {each} processes on each node, but {seen[1]} {gpus}.",
            consequence="CUDA error: invalid device ordinal, in each process without a GPU",
            fix=_fix(each, seen[0], job.allocation.gpus_per_node or 0),
        )
    yield from _trainers(view.program, view.target)
    for option, asked, has, unit in _requests(job.allocation, view.target):
        if option != reported and asked is not None and has is not None and asked > has:
            yield claim_at_start(
                said_at(job, *option),
                category="timeout",
                # A target that was captured in a container has the container's processors and memory.
                severity="error" if option in (_NODES, _GPUS) else "warning",
                message=f"The job requests {asked} {unit}, but may use {has} on the target.",
                consequence="The job would wait in the queue, or for nodes that never join",
                fix=f"Request no more {unit} than the target has: {has}.",
            )


def _requests(asked: Allocation, target: Target) -> Iterator[_Request]:
    """What a job requests of the target's nodes: options, requested and existing number, unit."""
    gpus = None if target.gpus is None else len(target.gpus)
    yield _NODES, asked.nodes, target.nodes, "nodes"
    yield _GPUS, asked.gpus_per_node, gpus, "GPUs on a node"
    yield _CPUS, asked.cpus, target.cpus, "processors on a node"
    if asked.memory_bytes and target.memory_bytes:
        megabytes = asked.memory_bytes >> 20, target.memory_bytes >> 20
        yield _MEMORY, *megabytes, "MiB of memory on a node"


def _fix(each: int, seen: int, asked: int) -> str:
    """The fix, with the numbers of processes and of visible and requested GPUs."""
    fewer = f"Start at most {seen} process{'es' * (seen != 1)} on a node, or " if seen else ""
    other = f"choose a platform that has {each} GPUs on each node."
    fix = f"{fewer}{other}" if asked >= each else f"{fewer}request {each} GPUs on each node."
    return fix[0].upper() + fix[1:]


def _trainers(program: Program, target: Target) -> Claims:
    """Lightning's Trainer, which starts the processes of a node itself."""
    seen = gpus_of_a_node(program.job, target)
    for call in program.calls:
        devices = integer_of(call.keywords.get("devices"))
        on_gpus = constant_of(call.keywords.get("accelerator")) in ("gpu", "cuda")
        if call.name in _TRAINERS and on_gpus and seen and devices and devices > seen[0]:
            gpus = f"{devices} GPU{'s' * (devices != 1)}"
            yield claim_at(
                call.at,
                category="illegal_argument",
                message=f"The Trainer uses {gpus}, but {seen[1]} {seen[0]}.",
                consequence=f"MisconfigurationException: You requested gpu: "
                f"{list(range(devices))}. But your machine only has: {list(range(seen[0]))}",
                fix=f"Pass devices={seen[0]} or devices='auto', or request {gpus}.",
            )


RULE = Rule(
    category="gpu_fault",
    why="Launch scripts are often written for one type of node and submitted to another. Each "
    "process uses the GPU whose index is its local rank. A process without a GPU fails, and the "
    "other processes wait for it. The scheduler rejects a request that no node can satisfy, or "
    "leaves the job in the queue.",
    fix="Start one process for each GPU of a node, and request no more resources than a node has.",
    source="pytorch/pytorch issues on torchrun --nproc_per_node and 'invalid device ordinal'; "
    "Zhang et al., ICSE 2020, section 3.2",
    check=_check,
    examples="""
        $ torchrun --nproc_per_node=4 train.py  # <-
        import torch
        import torch.distributed as dist

        dist.init_process_group('nccl')
        torch.cuda.set_device(int(__import__('os').environ['LOCAL_RANK']))
        ==> target.toml <==
        gpus = "2 x H100"
        ---- ignored if
        -$ torchrun --nproc_per_node=4 train.py
        +$ torchrun --nproc_per_node=2 train.py
        ---- ignored if
        -dist.init_process_group('nccl')
        -torch.cuda.set_device(int(__import__('os').environ['LOCAL_RANK']))
        +dist.init_process_group('gloo')
        ---- ignored if
        -==> target.toml <==
        -gpus = "2 x H100"
        ----
        $ deepspeed --num_gpus 3 train.py  # <-
        import deepspeed

        deepspeed.init_distributed()
        ==> target.toml <==
        gpus = "2 x H100"
        ----
        $ sbatch job.sh
        ==> job.sh <==
        #!/bin/bash
        #SBATCH --gres=gpu:8  # <-
        #SBATCH --cpus-per-task=96  # <-
        #SBATCH --mem=300G
        python train.py
        ==> train.py <==
        print(1)
        ==> target.toml <==
        gpus = "4 x A100"
        cpus = 64
        memory_bytes = "500 GiB"
        ----
        import lightning as L

        trainer = L.Trainer(accelerator='gpu', devices=8)  # <-
        ==> target.toml <==
        gpus = "2 x H100"
    """,
)
