"""The ranks of a job, all on this machine, with the variables that its launcher would give each.

A catalogue: which launcher sets which variables. Sources: the manuals of torchrun, srun(1), Open MPI's
mpirun, DeepSpeed's and Accelerate's launchers.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from epochzero.check.job import read_job
from epochzero.check.job.model import Job
from epochzero.errors import InputError

_TORCH: Mapping[str, str] = {
    "RANK": "{rank}",
    "WORLD_SIZE": "{world}",
    "LOCAL_RANK": "{local}",
    "LOCAL_WORLD_SIZE": "{each}",
    "GROUP_RANK": "{node}",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "{port}",
}
_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "torchrun": {
        **_TORCH,
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
    },
    "accelerate": _TORCH,
    "deepspeed": _TORCH,
    "srun": {
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": "{rank}",
        "SLURM_NTASKS": "{world}",
        "SLURM_NPROCS": "{world}",
        "SLURM_LOCALID": "{local}",
        "SLURM_NODEID": "{node}",
        "SLURM_NNODES": "{nodes}",
        "SLURM_NTASKS_PER_NODE": "{each}",
        "SLURM_JOB_NODELIST": "localhost",
        "SLURM_NODELIST": "localhost",
    },
    "mpirun": {
        "OMPI_COMM_WORLD_RANK": "{rank}",
        "OMPI_COMM_WORLD_SIZE": "{world}",
        "OMPI_COMM_WORLD_LOCAL_RANK": "{local}",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "{each}",
    },
}
_SAME = {
    "mpiexec": "mpirun",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
}


def in_ranks(
    command: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    count: int,
    each: int | None,
) -> tuple[list[str], tuple[Mapping[str, str], ...]]:
    """The program that each rank runs, and the variables of each.

    Args:
        command: a launcher with its arguments and program, or the program alone: then the variables are
            torchrun's.
        folder: in which it runs.
        environment: of it.
        count: ranks.
        each: ranks of a node on the platform; None for what the command says, else all.

    Raises:
        InputError: the command does not say which program its ranks run.
    """
    job = _job(command, folder, environment)
    known = [_SAME.get(name, name) for name in job.launchers if _SAME.get(name, name) in _VARIABLES]
    # Without one, what starts the ranks is not in the command, as Kubernetes' PyTorchJob.
    known = known or ["torchrun"]
    python = str(job.interpreter) if job.interpreter is not None else job.program
    program = ["-m", job.module] if job.module else [str(job.script)]
    each = min(each or job.processes_per_node or count, count)
    port = _free_port()
    variables: list[Mapping[str, str]] = []
    for rank in range(count):
        numbers = {
            "rank": rank,
            "world": count,
            "local": rank % each,
            "each": each,
            "node": rank // each,
            "nodes": -(-count // each),
            "port": port,
        }
        given = {
            name: text.format(**numbers)
            for launcher in known
            for name, text in _VARIABLES[launcher].items()
        }
        variables.append(given)
    return [python, *program, *job.argv], tuple(variables)


def _job(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> Job:
    with suppress(InputError):
        jobs = read_job(command, Path(folder), environment=environment).jobs
        if len(jobs) == 1 and (jobs[0].script or jobs[0].module) and not jobs[0].unsure:
            return jobs[0]
    raise InputError(
        "--ranks: the command does not say which one Python program its ranks run; "
        "give a launcher with a script, such as `torchrun train.py`"
    )


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
