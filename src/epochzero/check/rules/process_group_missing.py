"""Processes communicate before or without initializing a process group."""

from __future__ import annotations

from epochzero.check.rule import Claims, JobView, Rule, claim_at, guarded
from epochzero.check.view.torch_usage import has_framework_loop

_NEEDS_GROUP = frozenset(
    [
        *(
            f"torch.distributed.{name}"
            for name in (
                "all_gather",
                "all_gather_object",
                "all_reduce",
                "barrier",
                "broadcast",
                "broadcast_object_list",
                "gather",
                "get_rank",
                "get_world_size",
                "new_group",
                "reduce",
                "reduce_scatter",
                "scatter",
            )
        ),
        "torch.nn.parallel.DistributedDataParallel",
    ]
)
_MAKES_GROUP = ("init_process_group", "init_device_mesh", "init_distributed", "init_method")


def _check(view: JobView) -> Claims:
    if has_framework_loop(view.program):
        return
    starts = [
        at for at, call in enumerate(view.calls) if call.name.rpartition(".")[2] in _MAKES_GROUP
    ]
    says = any(word in module.text for module in view.modules for word in _MAKES_GROUP)
    if says and not starts:  # In code that the analysis did not follow.
        return
    before = view.calls[: starts[0]] if starts else view.calls
    for call in before:
        # Queries of the rank or world size without a group are often guarded.
        if call.name in _NEEDS_GROUP and call.at.certain and not guarded(
            call.at, RuntimeError, ValueError
        ):  # fmt: skip
            yield claim_at(
                call.at,
                severity=view.reach.severity(call.at),
                message=f"{call.name} needs a process group, but "
                + ("it is initialized later." if starts else "the job never initializes one."),
                consequence="ValueError: Default process group has not been initialized, please make sure "
                "to call init_process_group.",
                fix="Call torch.distributed.init_process_group first.",
            )
            return


RULE = Rule(
    title="Processes communicate without a process group",
    category="framework_api_misuse",
    why="Ranks, barriers and DistributedDataParallel require init_process_group. A module that "
    "reads the rank when it is imported runs too early.",
    fix="Call init_process_group first, once in each process.",
    source="PyTorch documentation, torch.distributed, initialization: the package needs to be initialized "
    "before calling any other methods",
    check=_check,
    examples="""
        import torch
        import torch.distributed as dist
        rank = dist.get_rank()  # <-
        dist.init_process_group('gloo')
        ----
        import torch
        import torch.distributed as dist
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))  # <-
        ----
        import log
        import torch
        import torch.distributed as dist
        dist.init_process_group('gloo')
        ==> log.py <==
        import torch.distributed as dist

        RANK = dist.get_rank()  # <-
        ----
        import torch
        import torch.distributed as dist


        def main():
            dist.barrier()  # <-
            dist.init_process_group('gloo')


        main()
        ----
        import torch
        import torch.distributed as dist
        dist.init_process_group('gloo')
        rank = dist.get_rank()
        ----
        import torch
        import torch.distributed as dist
        if dist.is_initialized():
            print(dist.get_rank())
        ----
        import torch
        import torch.distributed as dist
        try:
            rank = dist.get_rank()
        except ValueError:
            rank = 0
        ----
        import deepspeed
        import torch
        import torch.distributed as dist
        deepspeed.init_distributed()
        rank = dist.get_rank()
        ----
        import torch
        import torch.distributed as dist
        rank = dist.get_rank() if dist.is_initialized() else 0
    """,
)
