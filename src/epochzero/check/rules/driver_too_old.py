"""The driver is too old for the CUDA version that PyTorch was built for."""

from epochzero.check.rule import Claims, JobView, Rule, claim_at
from epochzero.check.target import oldest_driver
from epochzero.check.target.gpus import version
from epochzero.check.view.builds import first_import, first_on_cuda, wants_cuda


def _check(view: JobView) -> Claims:
    built = view.target.cuda_of_torch
    torch = first_import(view.program, "torch")
    if not built or not view.target.driver or view.target.gpus == () or torch is None:
        return
    needed = oldest_driver(built)
    if (
        needed is None
        or version(view.target.driver) >= version(needed)
        or not wants_cuda(view.program)
    ):
        return
    if view.target.cuda and version(view.target.cuda) >= version(built):
        return  # A compatibility package replaces the driver.
    first = first_on_cuda(view.program)
    yield claim_at(
        first or torch.at,
        # A condition around such code usually tests for a GPU, which is then not available.
        severity=view.reach.severity(first) if first else "error",
        message=f"The target's PyTorch was built for CUDA {built}, which needs driver {needed} or "
        f"newer; the target has {view.target.driver}.",
        consequence="RuntimeError: The NVIDIA driver on your system is too old",
    )


RULE = Rule(
    category="gpu_fault",
    why="PyTorch includes the CUDA libraries, but the machine provides the driver. A driver runs "
    "programs that were built for its own CUDA major version or an older one.",
    fix="Install a PyTorch build for an older CUDA version, or request a driver update.",
    source="NVIDIA, CUDA Toolkit release notes, minimum required driver version for CUDA minor version "
    "compatibility",
    check=_check,
    examples="""
        import torch

        x = torch.zeros(3).cuda()  # <-
        ==> target.toml <==
        driver = "470.57.02"
        cuda_of_torch = "12.1"
        ---- ignored if
        -cuda_of_torch = "12.1"
        ---- ignored if
         driver = "470.57.02"
        +cuda = "12.2"
        ---- ignored if
        -driver = "470.57.02"
        -cuda_of_torch = "12.1"
        +driver = "525.85.12"
        +cuda_of_torch = "12.4"
        ---- ignored if
        -
        -x = torch.zeros(3).cuda()
        +print(torch.ones(2))
        ----
        import torch

        model = torch.nn.Linear(2, 2).to('cuda')  # <-
        ==> target.toml <==
        driver = "535.104.05"
        cuda_of_torch = "13.0"
        ----
        import torch  # <-
        import pytorch_lightning as pl

        trainer = pl.Trainer(accelerator='gpu')
        ==> target.toml <==
        driver = "440.33.01"
        cuda_of_torch = "11.8"
    """,
)
