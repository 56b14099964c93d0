"""Processes use NCCL but have no GPU."""

from epochzero.check.program.values import constant_of
from epochzero.check.rule import Claims, JobView, Rule, argument, claim_at, guarded
from epochzero.check.rules.world import visible
from epochzero.check.view.builds import lacks_cuda


def _check(view: JobView) -> Claims:
    reason = lacks_cuda(view.target) or ("the job sees no GPU" if visible(view.job) == () else "")
    if not reason:
        return
    reach = view.reach
    for call in view.calls:
        if call.name != "torch.distributed.init_process_group" or guarded(call.at, ValueError):
            continue
        # A condition around such code usually tests for a GPU.
        is_nccl = constant_of(argument(call, 0, "backend")) == "nccl"
        if is_nccl and reach.severity(call.at) == "error":
            is_built = "build" not in reason
            yield claim_at(
                call.at,
                severity="error",
                message=f"NCCL needs a GPU for each process, but {reason}.",
                consequence="ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"
                if is_built
                else "RuntimeError: Distributed package doesn't have NCCL built in",
            )


RULE = Rule(
    category="gpu_fault",
    why="A script may select NCCL even if the node or the partition has no GPU or the PyTorch "
    "build does not support GPUs. All processes fail when they join the process group.",
    fix="Use the gloo backend if no GPU is available, or request GPUs.",
    source="PyTorch documentation, torch.distributed, Backends; ProcessGroupNCCL.cpp",
    check=_check,
    examples="""
        import torch
        import torch.distributed as dist


        def main():
            dist.init_process_group('nccl')  # <-


        main()
        ==> target.toml <==
        gpus = []
        ---- caught if
        -    dist.init_process_group('nccl')  # <-
        +    dist.init_process_group(backend='nccl', init_method='env://')  # <-
        @@
        -gpus = []
        +[distributions.torch]
        +version = "2.6.0+cpu"
        ---- caught if
        +$ env CUDA_VISIBLE_DEVICES= torchrun --nproc-per-node=2 train.py
         import torch
        @@
        -==> target.toml <==
        -gpus = []
        ---- ignored if
        -gpus = []
        +gpus = "2 x H100"
        ---- ignored if
        -    dist.init_process_group('nccl')
        +    dist.init_process_group('nccl' if torch.cuda.is_available() else 'gloo')
        ---- ignored if
        -    dist.init_process_group('nccl')
        +    if torch.cuda.is_available():
        +        dist.init_process_group('nccl')
    """,
)
