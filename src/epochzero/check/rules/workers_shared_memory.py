"""The target's shared memory is too small for the batches of data loader workers."""

from __future__ import annotations

from epochzero.check.program.values import Constant
from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.torch_usage import argument

ENOUGH_BYTES = 128 << 20
"""Docker's default is 64 MiB, which is too small for batches of images."""


def _check(program: Program, target: Target) -> Claims:
    have = program.job.shared_memory_bytes or target.shared_memory_bytes
    if have is None or have >= ENOUGH_BYTES:
        return
    who = "the container" if program.job.shared_memory_bytes else "the target"
    for call in program.calls:
        workers = argument(call, 5, "num_workers")
        if call.name != "torch.utils.data.DataLoader" or not isinstance(workers, Constant):
            continue
        if isinstance(workers.value, int) and workers.value > 0 and not _uses_files(program):
            yield claim_at(
                call.at,
                severity="warning",
                message=f"{workers.value} workers pass batches through /dev/shm, but {who} has only "
                f"{have >> 20} MiB of it.",
                consequence="RuntimeError: DataLoader worker is killed by signal: Bus error. It is possible "
                "that dataloader's workers are out of shared memory",
                fix="Start the container with more shared memory (--shm-size, or --ipc=host; in "
                "Kubernetes an emptyDir of medium Memory at /dev/shm), or use num_workers=0.",
            )
            return


def _uses_files(program: Program) -> bool:
    """Whether the job passes tensors through files instead."""
    return any(call.name == "torch.multiprocessing.set_sharing_strategy" for call in program.calls)


def _job(arguments: str, before: str = "") -> dict[str, str]:
    return {
        "train.py": f"import torch\nfrom torch.utils.data import DataLoader\n{before}\n"
        f"loader = DataLoader([1, 2], {arguments})\n"
    }


_SMALL = 'shared_memory_bytes = "64 MiB"\n'
_DOCKER = ("docker", "run", "--gpus", "all")
_POD = "kind: Pod\nspec:\n  containers:\n  - {image: i, command: [python, train.py]}\n"
_OPTION = {
    "train.py": "import argparse\nfrom torch.utils.data import DataLoader\n\n"
    "p = argparse.ArgumentParser()\np.add_argument('--workers', type=int, default=4)\na = p.parse_args()\n"
    "loader = DataLoader([1], num_workers=a.workers)\n"
}

RULE = Rule(
    title="Data loader workers have too little shared memory",
    category="cpu_out_of_memory",
    why="Workers pass batches through /dev/shm. By default a container has 64 MiB of it. A "
    "worker that runs out of it is killed by a bus error.",
    fix="Start the container with more shared memory.",
    source="PyTorch README, Docker image: the default shared memory segment size is not enough, use "
    "--ipc=host or --shm-size; pytorch/pytorch issue 5040",
    check=_check,
    catches=(
        Case(_job("num_workers=4"), target=_SMALL, line=4),
        Case(
            _job("batch_size=8, num_workers=2"), target='shared_memory_bytes = "32 MiB"\n', line=4
        ),
        Case(_job("4, True, None, None, 8"), target=_SMALL, line=4),
        Case(_OPTION, ("--workers", "2"), target=_SMALL, line=7),
        Case(
            _job("num_workers=4"),
            command=(*_DOCKER, "image", "python", "train.py"),
            target='shared_memory_bytes = "64 GiB"\n',
            line=4,
        ),
        Case(
            _job("num_workers=4") | {"pod.yaml": _POD},
            command=("kubectl", "apply", "-f", "pod.yaml"),
            line=4,
        ),
    ),
    leaves=(
        Case(_job("num_workers=0"), target=_SMALL),
        Case(_job("num_workers=4"), target='shared_memory_bytes = "16 GiB"\n'),
        Case(_job("num_workers=4")),
        Case(_OPTION, ("--workers", "0"), target=_SMALL),
        Case(
            _job("num_workers=4"),
            command=(*_DOCKER, "--shm-size=8g", "image", "python", "train.py"),
        ),
        Case(
            _job("num_workers=4"),
            command=(*_DOCKER, "--ipc=host", "image", "python", "train.py"),
        ),
        Case(
            _job("num_workers=2", "torch.multiprocessing.set_sharing_strategy('file_system')"),
            target=_SMALL,
        ),
    ),
)
