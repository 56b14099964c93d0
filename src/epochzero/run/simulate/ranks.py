"""The ranks of a job, all on this machine, with the variables that its launcher would give each."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from epochzero import launchers
from epochzero.check.launch import read_job
from epochzero.check.launch.model import Job
from epochzero.errors import InputError

_FIXED = {
    "address": "127.0.0.1", "run": "none", "restarts": "0", "job": "1", "step": "0", "hosts": "localhost",
}  # fmt: skip
"""What the variables hold that are the same for all ranks, by what their value is."""


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
    used = map(launchers.of, job.launchers)
    starting = [launcher for launcher in used if launcher is not None and launcher.starts_ranks]
    # Without one, what starts the ranks is not in the command, as Kubernetes' PyTorchJob.
    starting = starting or [launchers.by_name()["torchrun"]]
    python = str(job.interpreter) if job.interpreter is not None else job.program
    program = ["-m", job.module] if job.module else [str(job.script)]
    each = min(each or job.allocation.processes_per_node or count, count)
    port = _free_port()
    variables: list[Mapping[str, str]] = []
    for rank in range(count):
        values = _FIXED | {
            "rank": str(rank),
            "processes": str(count),
            "local_rank": str(rank % each),
            "processes_per_node": str(each),
            "node_rank": str(rank // each),
            "nodes": str(-(-count // each)),
            "port": str(port),
        }
        given = {
            name: values[value]
            for launcher in starting
            for name, value in launcher.sets.items()
            if value in values
        }
        variables.append(given)
    return [python, *program, *job.argv], tuple(variables)


def _job(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> Job:
    with suppress(InputError):
        jobs = read_job(command, Path(folder), environment=environment).jobs
        if len(jobs) == 1 and (jobs[0].script or jobs[0].module) and not jobs[0].unsure:
            return jobs[0]
    raise InputError(
        "--ranks: the command does not identify the Python program of the ranks; use a launcher with a "
        "script, such as `torchrun train.py`"
    )


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
