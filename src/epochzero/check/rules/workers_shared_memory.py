"""Data loader workers have too little shared memory."""

from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Program, Rule, argument, claim_at

ENOUGH_BYTES = 128 << 20
"""Docker's default is 64 MiB, which is too small for batches of images."""


def _check(view: JobView) -> Claims:
    have = view.job.allocation.shared_memory_bytes or view.target.shared_memory_bytes
    if have is None or have >= ENOUGH_BYTES:
        return
    who = "the container" if view.job.allocation.shared_memory_bytes else "the target"
    for call in view.calls:
        workers = argument(call, 5, "num_workers")
        if call.name != "torch.utils.data.DataLoader" or not isinstance(workers, Constant):
            continue
        if isinstance(workers.value, int) and workers.value > 0 and not _uses_files(view.program):
            yield claim_at(
                call.at,
                severity="warning",
                message=f"{workers.value} workers pass batches through /dev/shm, but {who} has only "
                f"{have >> 20} MiB of it.",
                consequence="RuntimeError: DataLoader worker is killed by signal: Bus error. It is possible "
                "that dataloader's workers are out of shared memory",
            )
            return


def _uses_files(program: Program) -> bool:
    """Whether the job passes tensors through files instead."""
    return any(call.name == "torch.multiprocessing.set_sharing_strategy" for call in program.calls)


RULE = Rule(
    category="cpu_out_of_memory",
    why="Workers pass batches through shared memory in /dev/shm. By default, a container has 64 "
    "MiB of shared memory. If this memory is full, a bus error kills the worker.",
    fix="Start the container with a larger --shm-size, or with --ipc=host. In Kubernetes, mount an "
    "emptyDir volume with medium Memory at /dev/shm. Alternatively, use num_workers=0.",
    source="PyTorch README, Docker image: the default shared memory segment size is not enough, use "
    "--ipc=host or --shm-size; pytorch/pytorch issue 5040",
    check=_check,
    examples="""
        import torch
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=4)  # <-
        ==> target.toml <==
        shared_memory_bytes = "64 MiB"
        ---- caught if
        -loader = DataLoader([1, 2], num_workers=4)  # <-
        +loader = DataLoader([1, 2], 4, True, None, None, 8)  # <-
        ---- ignored if
        -loader = DataLoader([1, 2], num_workers=4)
        +loader = DataLoader([1, 2], num_workers=0)
        ---- caught if
        -import torch
        +$ python train.py --workers 2
        +import argparse
        @@
        -loader = DataLoader([1, 2], num_workers=4)  # <-
        +p = argparse.ArgumentParser()
        +p.add_argument('--workers', type=int, default=4)
        +a = p.parse_args()
        +loader = DataLoader([1], num_workers=a.workers)  # <-
        ---- ignored if
        -
        -loader = DataLoader([1, 2], num_workers=4)
        +torch.multiprocessing.set_sharing_strategy('file_system')
        +loader = DataLoader([1, 2], num_workers=2)
        ----
        $ kubectl apply -f pod.yaml
        import torch
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=4)  # <-
        ==> pod.yaml <==
        kind: Pod
        spec:
          containers:
          - {image: i, command: [python, train.py]}
        ----
        $ docker run --gpus all --shm-size=8g image python train.py
        import torch
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=4)
        ---- ignored if
        -$ docker run --gpus all --shm-size=8g image python train.py
        +$ docker run --gpus all --ipc=host image python train.py
    """,
)
