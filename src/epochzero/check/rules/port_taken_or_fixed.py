"""The rendezvous port cannot be used."""

import re
from collections.abc import Iterator

from epochzero import launchers
from epochzero.check.launch.model import Job
from epochzero.check.rule import Claim, Claims, JobView, Program, Rule, Target, claim_at_start
from epochzero.check.rules.world import said_at, said_text

_PORT = ("--master_port", "--master-port", "--main_process_port")
_USUAL = 29500
"""The default rendezvous port of torchrun."""
_TORCHRUN = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_IN_USE = (
    "RuntimeError: the server socket has failed to listen on any local network address: port {}, "
    "EADDRINUSE: address already in use"
)
_WRITTEN = re.compile(r"MASTER_PORT\W+=\s*[\"'](\d+)[\"']")
_ENDPOINT = ("--rdzv_endpoint", "--rdzv-endpoint")

_FREE = ("--standalone", "--rdzv_backend", "--rdzv-backend", *_ENDPOINT)
"""Options with which torchrun uses a free port, or shares one."""


def _check(view: JobView) -> Claims:
    port, names = _port(view.job)
    if port and port.isascii() and port.lstrip("-").isdigit():
        yield from _of_number(view.program, view.target, int(port), names)
    own = _own_port(view.program)
    if own and any(_own_port(other) == own for other in _beside(view.program)):
        yield _taken(
            view.job, own, "MASTER_PORT", fix="Set a different MASTER_PORT for each of them."
        )


def _port(job: Job) -> tuple[str | None, tuple[str, ...]]:
    """The rendezvous port of a job, as it is written, and the names that set it."""
    port = said_text(job, *_PORT)
    names: tuple[str, ...] = _PORT
    if port is None:
        endpoint, names = said_text(job, *_ENDPOINT) or "", _ENDPOINT
        port = endpoint.rpartition(":")[2] if endpoint.count(":") == 1 else None
    if port is None:
        port, names = job.environment.get("MASTER_PORT"), ("MASTER_PORT",)
    if port is None and _takes_the_usual(job):
        port, names = str(_USUAL), ("torchrun",)
    return port, names


def _of_number(
    program: Program, target: Target, port: int, names: tuple[str, ...]
) -> Iterator[Claim]:
    job = program.job
    if not 0 <= port < 65536:
        yield claim_at_start(
            said_at(job, *names),
            message=f"{port} is not a port: ports range from 0 to 65535.",
            consequence="The rendezvous fails with an invalid port",
            fix="Use a free port above 1023, such as 29500.",
        )
    elif 0 < port < 1024 and target.user is not None and target.user.uid:
        yield claim_at_start(
            said_at(job, *names),
            category="permission_denied",
            message=f"Port {port} is below 1024, but the job does not run as root.",
            consequence="PermissionError: [Errno 13] Permission denied, when the first process listens",
            fix="Use a free port above 1023, such as 29500.",
        )
    elif port and _meets_another(program, port):
        fix = (
            "Set a different port for each of them with --master_port, or start torchrun with "
            "--standalone."
        )
        yield _taken(job, str(port), *names, fix=fix)
    elif port in (target.ports or ()) and not _runs_elsewhere(job):
        yield claim_at_start(
            said_at(job, *names),
            category="communication_failure",
            severity="warning",
            message=f"Port {port} is in use: a process on this machine listens on it now.",
            consequence=_IN_USE.format(port),
            fix="Set another port with --master_port, or start torchrun with --standalone.",
        )


def _meets_another(program: Program, port: int) -> bool:
    """Whether another job on the same machine uses the same rendezvous port at the same time."""
    return _is_static(program.job) and any(
        _is_static(other.job) and _port(other.job)[0] == str(port) for other in _beside(program)
    )


def _beside(program: Program) -> Iterator[Program]:
    """The programs that the script started earlier and that run at the same time."""
    waits = program.job.launch_script.waits
    for earlier in program.earlier:
        script = earlier.job.launch_script
        if script.in_background and script.waits == waits:
            yield earlier


def _own_port(program: Program) -> str | None:
    """The port on which the program itself listens, on the machine that runs its script: it starts
    all its processes, or is the first of them.
    """
    job = program.job
    starts = any(call.name == "torch.multiprocessing.spawn" for call in program.calls)
    listens = any(call.name == "torch.distributed.init_process_group" for call in program.calls)
    alone = not job.container and not job.launchers and (job.allocation.nodes or 1) == 1
    if not (alone and listens and (starts or job.environment.get("RANK") == "0")):
        return None
    written = [
        found[1]
        for look in program.lookups
        if look.stored and look.item and look.name == "MASTER_PORT"
        if (found := _WRITTEN.search(look.at.place.code))
    ]
    return written[-1] if written else job.environment.get("MASTER_PORT")


def _taken(job: Job, port: str, *names: str, fix: str) -> Claim:
    return claim_at_start(
        said_at(job, *names),
        category="communication_failure",
        message=f"Port {port} is in use: a job that the script started earlier, in the background, "
        "listens on it.",
        consequence=_IN_USE.format(port),
        fix=fix,
    )


def _is_static(job: Job) -> bool:
    """Whether torchrun itself listens on the port, on the machine that runs its script."""
    is_torchrun = job.launchers[-1:] and job.launchers[-1] in _TORCHRUN
    is_here = not job.container and (job.allocation.nodes or 1) == 1 and "srun" not in job.launchers
    return bool(is_torchrun and is_here and not any(name in job.argument_sources for name in _FREE))


def _runs_elsewhere(job: Job) -> bool:
    """Whether the job may run on a machine other than the checked target, or in a container."""
    submitted = any(
        launcher and launcher.set_on_nodes for launcher in map(launchers.of, job.launchers)
    )
    return bool(job.container or submitted or (job.allocation.nodes or 1) > 1)


def _takes_the_usual(job: Job) -> bool:
    """Whether torchrun gets no rendezvous address."""
    return job.launchers[-1:] == ("torchrun",) and not any(
        name in job.argument_sources for name in _FREE
    )


RULE = Rule(
    category="illegal_argument",
    why="A port that a script computes from a job number can be out of range. Only root may listen "
    "on ports below 1024. By default, two jobs on one machine use the same port.",
    fix="Use a free port above 1023.",
    source="bind(2) and ip(7); pytorch/pytorch issue 85604 on ports of torchrun",
    check=_check,
    examples="""
        $ torchrun --master_port=129500 train.py  # <-
        ==> train.py <==
        ----
        $ bash run.sh
        ==> run.sh <==
        python train.py
        python train.py
        ==> train.py <==
        import os
        import torch.distributed as dist
        import torch.multiprocessing as mp


        def work(rank, world):
            os.environ['MASTER_ADDR'] = 'localhost'
            os.environ['MASTER_PORT'] = '12355'
            dist.init_process_group('nccl', rank=rank, world_size=world)


        mp.spawn(work, args=(2,), nprocs=2)
        ---- caught if
        -python train.py
        -python train.py
        +for seed in 1 2; do
        +  python train.py --seed $seed &  # <-
        +done
        +wait
        ----
        $ bash run.sh
        ==> run.sh <==
        export MASTER_ADDR=localhost MASTER_PORT=29501 WORLD_SIZE=2
        RANK=0 python train.py &
        RANK=1 python train.py &
        wait
        ==> train.py <==
        import torch.distributed as dist
        dist.init_process_group('gloo')
        ----
        $ bash run.sh
        ==> run.sh <==
        torchrun --master_port 29511 train.py &
        torchrun --master_port 29512 train.py
        ==> train.py <==
        ---- caught if
        -torchrun --master_port 29511 train.py &
        -torchrun --master_port 29512 train.py
        +set -e
        +export MASTER_PORT=293400  # <-
        +python train.py
        ---- ignored if
        -torchrun --master_port 29512 train.py
        +wait
        +torchrun --master_port 29511 train.py
        ---- ignored if
        -torchrun --master_port 29511 train.py &
        -torchrun --master_port 29512 train.py
        +torchrun --nnodes 2 --node_rank 0 --master_port 29511 train.py &
        +torchrun --nnodes 2 --node_rank 1 --master_port 29511 train.py
        ----
        $ bash run.sh
        ==> run.sh <==
        torchrun --standalone train.py &
        torchrun --standalone train.py &
        wait
        ==> train.py <==
        ---- caught if
        -torchrun --standalone train.py &
        -torchrun --standalone train.py &
        +for seed in 1 2; do
        +  torchrun train.py &  # <-
        +done
        ----
        $ torchrun --master_port=0 train.py
        ==> train.py <==
    """,
)
