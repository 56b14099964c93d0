"""All processes of a node use its first GPU."""

from epochzero.check.program.values import Constant, Instance, constant_of
from epochzero.check.rule import Claims, JobView, Program, Rule, argument, claim_at
from epochzero.check.view.builds import moves_to_cuda

_CHOOSES = ("set_device", "LOCAL_RANK", "local_rank", "SLURM_LOCALID", "device_count",
            "CUDA_VISIBLE_DEVICES")  # fmt: skip
"""Text that a program contains if it assigns each process its own GPU."""


def _check(view: JobView) -> Claims:
    each = view.job.allocation.processes_per_node
    if each is None or each < 2 or view.has_framework_loop or not _uses_nccl(view.program):
        return
    if any(word in module.text for module in view.modules for word in _CHOOSES):
        return
    moves = list(moves_to_cuda(view.program))
    if not moves or not all(_is_first(value) for call in moves for value in call.arguments[:1]):
        return
    yield claim_at(
        moves[0].at,
        severity=view.reach.severity(moves[0].at),
        message=f"The job starts {each} processes on each node, and each moves its model to GPU 0: "
        "nothing in the job chooses a GPU by the local rank.",
        consequence="torch.distributed.DistBackendError: NCCL error: Duplicate GPU detected: rank 0 and "
        "rank 1 both on CUDA device",
    )


def _uses_nccl(program: Program) -> bool:
    return any(
        call.name == "torch.distributed.init_process_group"
        and constant_of(argument(call, 0, "backend")) == "nccl"
        for call in program.calls
    )


def _is_first(value: object) -> bool:
    """Whether a device is certainly the first GPU of the process: ``"cuda"``, ``"cuda:0"``, ``0``."""
    if isinstance(value, Instance) and value.made_by == "torch.device":
        return len(value.arguments) == 1 and _is_first(value.arguments[0])
    return isinstance(value, Constant) and value.value in ("cuda", "cuda:0", 0)


RULE = Rule(
    category="gpu_fault",
    why="The device 'cuda' is GPU 0 in every process that does not set another device. NCCL "
    "rejects two ranks on one GPU. Without NCCL, one GPU must hold the models of all processes.",
    fix="Call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the process uses a GPU.",
    source="PyTorch documentation, torch.nn.parallel.DistributedDataParallel: each process should work on "
    "one GPU of its own, by torch.cuda.set_device(i)",
    check=_check,
    examples="""
        $ torchrun --nproc_per_node=2 train.py
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group('nccl')
        model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())  # <-
        ---- caught if
        -model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())  # <-
        +device = torch.device('cuda')
        +model = torch.nn.Linear(2, 2).to(device)  # <-
        ---- ignored if
         dist.init_process_group('nccl')
        +torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
        ---- ignored if
        -$ torchrun --nproc_per_node=2 train.py
        +$ torchrun --nproc_per_node=1 train.py
        ---- ignored if
        -model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
        +model = torch.nn.Linear(2, 2).to(f'cuda:{dist.get_rank()}')
        ---- ignored if
        -dist.init_process_group('nccl')
        +dist.init_process_group('gloo')
        ----
        $ torchrun --nproc_per_node=2 train.py
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group('nccl')
        def main():
            model = torch.nn.Linear(2, 2).to('cuda:0')  # <-


        main()
    """,
)
