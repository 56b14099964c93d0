"""Processes rendezvous through environment variables that nothing sets."""

from __future__ import annotations

import re

from epochzero.check.program.events import Called
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    guarded,
)
from epochzero.check.rules.world import constant, is_set
from epochzero.check.torch_usage import argument

_ARGUMENTS = {"RANK": (4, "rank"), "WORLD_SIZE": (3, "world_size")}
"""Arguments of ``init_process_group`` that replace a variable."""
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""In the order in which PyTorch reads them."""
_SETTING = frozenset(
    ("colossalai", "deepspeed", "idr_torch", "mmengine", "mpi4py", "ray", "submitit", "torchx")
)
"""Libraries that set the variables, or start processes that have them."""


def _check(program: Program, target: Target) -> Claims:
    known = target.environment
    if not program.job.certain or (known is None and program.job.launchers):
        return
    if any(one.module.partition(".")[0] in _SETTING for one in program.imports):
        return
    call = next(
        (c for c in program.calls if c.name == "torch.distributed.init_process_group"), None
    )
    if call is None or not call.complete or guarded(call.at, ValueError) or _otherwise(call):
        return
    missing = [
        name
        for name in _VARIABLES
        if not is_set(name, program.job)
        and name not in (known or ())
        and not _given(call, name)
        and not _named(program, name)
    ]
    if missing:
        yield claim_at(
            call.at,
            severity="warning" if known is None else Reach.of(program).severity(call.at),
            message=f"The rendezvous reads {', '.join(missing)}, but no launcher, no part of the job "
            f"and no setting of the target sets {'them' if missing[1:] else 'it'}.",
            consequence="ValueError: Error initializing torch.distributed using env:// rendezvous: "
            f"environment variable {missing[0]} expected, but not set",
            fix="Start the program with torchrun --nproc_per_node=N, which sets them. Under "
            "srun, set them from SLURM_PROCID, SLURM_NTASKS and the name of the first node.",
        )


def _otherwise(call: Called) -> bool:
    """Whether the processes rendezvous in another way, or may."""
    method = argument(call, 1, "init_method")
    by_variables = method is None or constant(method) in (None, "env://")
    other = argument(call, 5, "store") or constant(argument(call, 0, "backend")) in ("mpi", "fake")
    return bool(other) or not by_variables


def _given(call: Called, name: str) -> bool:
    """Whether an argument replaces the variable; -1 does not."""
    place = _ARGUMENTS.get(name)
    value = argument(call, *place) if place else None
    return value is not None and constant(value) != -1


def _named(program: Program, name: str) -> bool:
    """Whether the program uses the variable itself, and may set it."""
    word = re.compile(rf"\b{name}\b")
    return any(word.search(module.text) for module in program.modules.values())


_HEAD = "import os\nimport torch.distributed as dist\n"
_START = f"{_HEAD}\n\ndef main():\n    dist.init_process_group('nccl')\n\n\nmain()\n"
_NOTHING = '[environment]\nHOME = "/root"\n'
_SLURM = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4\n{set}srun python train.py\n"

RULE = Rule(
    title="Processes rendezvous through environment variables that nothing sets",
    category="illegal_argument",
    why="init_process_group reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT unless they are "
    "passed. torchrun sets them; plain `python` does not, and `srun` sets others.",
    fix="Start the program with torchrun, or set the variables first.",
    source="PyTorch documentation, torch.distributed, 'Environment variable initialization'",
    check=_check,
    catches=(
        Case({"train.py": _START}, target=_NOTHING, line=6),
        Case({"train.py": _START}, line=6),
        Case(
            {"train.py": _START, "run.sh": _SLURM.format(set="")},
            command=("sbatch", "run.sh"),
            target=_NOTHING,
            line=6,
        ),
        Case(
            {
                "train.py": f"{_HEAD}rank = int(os.environ.get('SLURM_PROCID', 0))\n"
                "dist.init_process_group('gloo', rank=rank, world_size=2)\n"
            },
            target=_NOTHING,
            line=4,
        ),
    ),
    leaves=(
        Case({"train.py": _START}, command=("torchrun", "--nproc_per_node=2", "train.py")),
        Case(
            {
                "train.py": _START,
                "run.sh": _SLURM.format(
                    set="export MASTER_ADDR=n1 MASTER_PORT=29500 RANK=0 WORLD_SIZE=8\n"
                ),
            },
            command=("sbatch", "run.sh"),
            target=_NOTHING,
        ),
        Case(
            {
                "train.py": f"{_HEAD}os.environ['MASTER_ADDR'] = 'localhost'\n"
                "os.environ.setdefault('MASTER_PORT', '29500')\n"
                "dist.init_process_group('gloo', rank=0, world_size=1)\n"
            },
            target=_NOTHING,
        ),
        Case(
            {
                "train.py": f"{_HEAD}dist.init_process_group('gloo', 'tcp://10.0.0.1:2345', rank=0,\n"
                "                        world_size=1)\n"
            },
            target=_NOTHING,
        ),
        Case(
            {
                "train.py": f"{_HEAD}if 'LOCAL_RANK' in os.environ:\n"
                "    dist.init_process_group('nccl')\n"
            },
            target=_NOTHING,
        ),
    ),
)
