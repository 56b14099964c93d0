"""Processes use NCCL but have no GPU."""

from __future__ import annotations

from epochzero.check.builds import lacks_cuda
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
from epochzero.check.rules.world import constant, visible
from epochzero.check.torch_usage import argument


def _check(program: Program, target: Target) -> Claims:
    reason = lacks_cuda(target) or ("the job sees no GPU" if visible(program.job) == () else "")
    if not reason:
        return
    reach = Reach.of(program)
    for call in program.calls:
        if call.name != "torch.distributed.init_process_group" or guarded(call.at, ValueError):
            continue
        # A condition around such code usually tests for a GPU.
        is_nccl = constant(argument(call, 0, "backend")) == "nccl"
        if is_nccl and reach.severity(call.at) == "error":
            is_built = "build" not in reason
            yield claim_at(
                call.at,
                severity="error",
                message=f"NCCL needs a GPU for each process, but {reason}.",
                consequence="ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"
                if is_built
                else "RuntimeError: Distributed package doesn't have NCCL built in",
                fix="Use the gloo backend if no GPU is available, or request GPUs.",
            )


_JOB = (
    "import torch\nimport torch.distributed as dist\n\n\ndef main():\n    dist.init_process_group({})\n\n\nmain()\n"
)  # fmt: skip

RULE = Rule(
    title="Processes use NCCL but have no GPU",
    category="gpu_fault",
    why="The script sets the backend, but the node, the partition or the build of PyTorch has no "
    "GPU. All processes fail when they join the group.",
    fix="Use gloo if torch.cuda.is_available() is False.",
    source="PyTorch documentation, torch.distributed, Backends; ProcessGroupNCCL.cpp",
    check=_check,
    catches=(
        Case({"train.py": _JOB.format("'nccl'")}, target="gpus = []\n", line=6),
        Case({"train.py": _JOB.format("backend='nccl', init_method='env://'")},
             target='[distributions.torch]\nversion = "2.6.0+cpu"\n', line=6),
        Case({"train.py": _JOB.format("'nccl'")}, line=6,
             command=("env", "CUDA_VISIBLE_DEVICES=", "torchrun", "--nproc-per-node=2", "train.py")),
    ),
    leaves=(
        Case({"train.py": _JOB.format("'gloo'")}, target="gpus = []\n"),
        Case({"train.py": _JOB.format("'nccl'")}),
        Case({"train.py": _JOB.format("'nccl'")}, target='gpus = "2 x H100"\n'),
        Case({"train.py": _JOB.format("'nccl' if torch.cuda.is_available() else 'gloo'")}, target="gpus = []\n"),
        Case({"train.py": _JOB.replace("    dist", "    if torch.cuda.is_available():\n        dist").format("'nccl'")},
             target="gpus = []\n"),
    ),
)  # fmt: skip
