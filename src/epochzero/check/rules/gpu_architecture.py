"""PyTorch was not built for the target's GPUs."""

from epochzero.check.program.values import constant_of
from epochzero.check.rule import Claims, JobView, Rule, Severity, Target, claim_at
from epochzero.check.target import first_cuda, last_cuda
from epochzero.check.target.gpus import version
from epochzero.check.view.builds import (
    first_import,
    first_on_cuda,
    lowest_capability,
    runs_on,
    wants_cuda,
)

_FLASH_ATTENTION = 8, 0
"""Dao-AILab/flash-attention, README: version 2 supports Ampere, Ada and Hopper GPUs."""


def _check(view: JobView) -> Claims:
    capability = lowest_capability(view.target)
    if capability is not None and capability < _FLASH_ATTENTION:
        yield from _flash_attention(view, capability)
    torch = first_import(view.program, "torch")
    if capability is None or torch is None or not wants_cuda(view.program):
        return
    problem = _problem(view.target, capability)
    if problem is not None:
        severity, message = problem
        yield claim_at(
            first_on_cuda(view.program) or torch.at,
            severity=severity,
            message=message,
            consequence="RuntimeError: CUDA error: no kernel image is available for execution on the "
            "device",
        )


def _flash_attention(view: JobView, capability: tuple[int, int]) -> Claims:
    """The first use of version 2, which refuses older GPUs."""
    installed = (view.target.distributions or {}).get("flash-attn")
    if installed is None or not installed.version.startswith("2."):
        return
    for call in view.program.calls:
        asked = constant_of(call.keywords.get("attn_implementation")) == "flash_attention_2"
        if asked or (call.name.startswith("flash_attn.") and call.name.endswith("_func")):
            yield claim_at(
                call.at,
                # A model may also be loaded without being called.
                severity="warning" if asked else None,
                message=f"flash-attn {installed.version} needs compute capability 8.0; a GPU of the target has "
                f"{capability[0]}.{capability[1]}.",
                consequence="RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
                fix="Use attn_implementation='sdpa' or scaled_dot_product_attention, or request another GPU.",
            )
            return


def _problem(target: Target, capability: tuple[int, int]) -> tuple[Severity, str] | None:
    """How certain it is that the build does not run, and why."""
    gpus = sorted({gpu.model for gpu in target.gpus or () if gpu.capability == capability})
    name = f"{', '.join(gpus)} (compute capability {capability[0]}.{capability[1]})"
    if target.gpu_architectures:
        if runs_on(target.gpu_architectures, capability):
            return None
        architectures = ", ".join(target.gpu_architectures)
        return "error", f"The target's PyTorch was built for {architectures}, not for {name}."
    built, first, last = target.cuda_of_torch, first_cuda(capability), last_cuda(capability)
    if built and last is not None and version(built) > version(last):
        return (
            "error",
            f"CUDA {built}, the version of the target's PyTorch, no longer supports {name}.",
        )
    if built and first is not None and version(built) < version(first):
        return (
            "warning",
            f"CUDA {built}, the version of the target's PyTorch, is older than {name}.",
        )
    return None


RULE = Rule(
    category="gpu_fault",
    why="A PyTorch build contains machine code for only some GPU architectures. Creating a tensor "
    "on another GPU succeeds, but the first kernel fails.",
    fix="Install a CUDA build of PyTorch that supports the architecture of the GPU, or request "
    "another GPU.",
    source="NVIDIA, CUDA C++ Programming Guide, binary and PTX compatibility; pytorch/pytorch issue "
    "31285",
    check=_check,
    examples="""
        import torch
        from flash_attn import flash_attn_func

        q = torch.zeros(1, 8, 2, 64, dtype=torch.float16, device='cuda')
        print(flash_attn_func(q, q, q))  # <-
        ==> target.toml <==
        gpus = "1 x T4"
        [distributions]
        torch = "2.4.0"
        flash-attn = "2.6.3"
        ---- ignored if
        -gpus = "1 x T4"
        +gpus = "1 x A100"
        ----
        import torch

        x = torch.zeros(3).cuda()  # <-
        ==> target.toml <==
        gpu_architectures = ["sm_70", "sm_80"]
        [[gpus]]
        model = "NVIDIA H100"
        memory_bytes = "80 GiB"
        capability = "9.0"
        ---- ignored if
        -gpu_architectures = ["sm_70", "sm_80"]
        +gpu_architectures = ["sm_70", "compute_70"]
        ---- ignored if
        -gpu_architectures = ["sm_70", "sm_80"]
        +cuda_of_torch = "12.4"
        ---- ignored if
        -gpu_architectures = ["sm_70", "sm_80"]
        ---- ignored if
        -
        -x = torch.zeros(3).cuda()
        +print(torch.zeros(3))
        @@
        -gpu_architectures = ["sm_70", "sm_80"]
        +gpu_architectures = ["sm_70"]
        ----
        import torch

        x = torch.zeros(3).cuda()  # <-
        ==> target.toml <==
        cuda_of_torch = "13.0"
        [[gpus]]
        model = "Tesla V100"
        memory_bytes = "16 GiB"
        capability = "7.0"
        ----
        import torch

        x = torch.zeros(3).cuda()  # <-
        ==> target.toml <==
        cuda_of_torch = "12.4"
        [[gpus]]
        model = "NVIDIA B200"
        memory_bytes = "180 GiB"
        capability = "10.0"
        ---- caught if
        -cuda_of_torch = "12.4"
        +gpu_architectures = ["sm_90a"]
    """,
)
