"""Processes rendezvous through environment variables that nothing sets."""

import re

from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import constant_of
from epochzero.check.rule import Claims, JobView, Program, Rule, claim_at, guarded
from epochzero.check.rules.world import is_set

_ARGUMENTS = {"RANK": (4, "rank"), "WORLD_SIZE": (3, "world_size")}
"""Arguments of ``init_process_group`` that replace a variable."""
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""In the order in which PyTorch reads them."""
_SETTING = frozenset(
    ("colossalai", "deepspeed", "idr_torch", "mmengine", "mpi4py", "ray", "submitit", "torchx")
)
"""Libraries that set the variables, or start processes that have them."""


def _check(view: JobView) -> Claims:
    known = view.target.environment
    if not view.job.certain or (known is None and view.job.launchers):
        return
    if any(imported.module.partition(".")[0] in _SETTING for imported in view.imports):
        return
    call = next((c for c in view.calls if c.name == "torch.distributed.init_process_group"), None)
    if call is None or not call.complete or guarded(call.at, ValueError) or _otherwise(call):
        return
    missing = [
        name
        for name in _VARIABLES
        if not is_set(name, view.job)
        and name not in (known or ())
        and not _given(call, name)
        and not _named(view.program, name)
    ]
    if missing:
        yield claim_at(
            call.at,
            severity="warning" if known is None else view.reach.severity(call.at),
            message=f"The rendezvous reads {', '.join(missing)}, but no launcher, no part of the job "
            f"and no setting of the target sets {'them' if missing[1:] else 'it'}.",
            consequence="ValueError: Error initializing torch.distributed using env:// rendezvous: "
            f"environment variable {missing[0]} expected, but not set",
        )


def _otherwise(call: LibraryCall) -> bool:
    """Whether the processes rendezvous in another way, or may."""
    method = argument(call, 1, "init_method")
    by_variables = method is None or constant_of(method) in (None, "env://")
    other = argument(call, 5, "store") or constant_of(argument(call, 0, "backend")) in (
        "mpi",
        "fake",
    )
    return bool(other) or not by_variables


def _given(call: LibraryCall, name: str) -> bool:
    """Whether an argument replaces the variable; -1 does not."""
    place = _ARGUMENTS.get(name)
    value = argument(call, *place) if place else None
    return value is not None and constant_of(value) != -1


def _named(program: Program, name: str) -> bool:
    """Whether the program uses the variable itself, and may set it."""
    word = re.compile(rf"\b{name}\b")
    return any(word.search(module.text) for module in program.modules.values())


RULE = Rule(
    category="illegal_argument",
    why="init_process_group reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from the "
    "environment unless the program passes these values. torchrun sets these variables. Plain "
    "`python` does not set them, and `srun` sets other variables.",
    fix="Start the program with torchrun --nproc_per_node=N, which sets the required variables. "
    "Under srun, set RANK from SLURM_PROCID, WORLD_SIZE from SLURM_NTASKS, MASTER_ADDR to the name "
    "of the first node, and MASTER_PORT to a free port on that node.",
    source="PyTorch documentation, torch.distributed, 'Environment variable initialization'",
    check=_check,
    examples="""
        import os
        import torch.distributed as dist


        def main():
            dist.init_process_group('nccl')  # <-


        main()
        ==> target.toml <==
        [environment]
        HOME = "/root"
        ---- caught if
        +$ sbatch run.sh
         import os
        @@
         main()
        +==> run.sh <==
        +#!/bin/bash
        +#SBATCH --nodes=2 --ntasks-per-node=4
        +srun python train.py
        ---- ignored if
        +$ sbatch run.sh
         import os
        @@
         main()
        +==> run.sh <==
        +#!/bin/bash
        +#SBATCH --nodes=2 --ntasks-per-node=4
        +export MASTER_ADDR=n1 MASTER_PORT=29500 RANK=0 WORLD_SIZE=8
        +srun python train.py
        ---- caught if
        -==> target.toml <==
        -[environment]
        -HOME = "/root"
        ---- ignored if
        +$ torchrun --nproc_per_node=2 train.py
         import os
        @@
        -==> target.toml <==
        -[environment]
        -HOME = "/root"
        ----
        import os
        import torch.distributed as dist
        if 'LOCAL_RANK' in os.environ:
            dist.init_process_group('nccl')
        ==> target.toml <==
        [environment]
        HOME = "/root"
        ---- caught if
        -if 'LOCAL_RANK' in os.environ:
        -    dist.init_process_group('nccl')
        +rank = int(os.environ.get('SLURM_PROCID', 0))
        +dist.init_process_group('gloo', rank=rank, world_size=2)  # <-
        ---- ignored if
        -if 'LOCAL_RANK' in os.environ:
        -    dist.init_process_group('nccl')
        +os.environ['MASTER_ADDR'] = 'localhost'
        +os.environ.setdefault('MASTER_PORT', '29500')
        +dist.init_process_group('gloo', rank=0, world_size=1)
        ---- ignored if
        -if 'LOCAL_RANK' in os.environ:
        -    dist.init_process_group('nccl')
        +dist.init_process_group('gloo', 'tcp://10.0.0.1:2345', rank=0,
        +                        world_size=1)
    """,
)
