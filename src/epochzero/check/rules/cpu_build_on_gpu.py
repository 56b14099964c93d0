"""The job uses a GPU that PyTorch cannot use."""

from epochzero.check.launch.containers import has_no_gpus
from epochzero.check.rule import Claims, JobView, Rule, claim_at, guarded
from epochzero.check.view.builds import lacks_cuda, moves_to_cuda


def _check(view: JobView) -> Claims:
    reason = lacks_cuda(view.target)
    withheld = not reason and has_no_gpus(view.job)
    if withheld:
        reason = "its container starts without a GPU"
    if not reason:
        return
    reach = view.reach
    for call in moves_to_cuda(view.program):
        # A condition around such code usually tests whether a GPU is available.
        if reach.severity(call.at) == "error" and not guarded(
            call.at, RuntimeError, AssertionError
        ):
            no_gpu = "GPU" in reason
            yield claim_at(
                call.at,
                severity="warning" if withheld else "error",
                message=f"This call needs a GPU, but none is available on the target: {reason}.",
                consequence="RuntimeError: No CUDA GPUs are available, or Found no NVIDIA driver"
                if no_gpu
                else "AssertionError: Torch not compiled with CUDA enabled",
                fix="Start the container with --gpus all (in a compose file: gpus: all)."
                if withheld
                else "Request a GPU, or choose the device with torch.cuda.is_available()."
                if no_gpu
                else "Install a CUDA build of PyTorch.",
            )
            return


RULE = Rule(
    category="gpu_fault",
    why="A CPU build of PyTorch cannot use a GPU. A job with this build, or without an allocated "
    "GPU, fails at the first call of .cuda().",
    fix="Install a CUDA build of PyTorch, request a GPU, or choose the device with "
    "torch.cuda.is_available().",
    source="pytorch/pytorch issue 30664, Torch not compiled with CUDA enabled",
    check=_check,
    examples="""
        import torch
        from torch import nn

        model = nn.Linear(4, 2)
        model.cuda()  # <-
        ==> target.toml <==
        cuda_of_torch = ""
        ---- ignored if
        -cuda_of_torch = ""
        +gpus = "1 x A100"
        ----
        import torch
        from torch import nn

        device = torch.device('cuda:0')
        model = nn.Linear(4, 2).to(device)  # <-
        ==> target.toml <==
        gpus = "none"
        ---- ignored if
        -device = torch.device('cuda:0')
        -model = nn.Linear(4, 2).to(device)
        +model = nn.Linear(4, 2)
        +if torch.cuda.is_available():
        +    model.cuda()
        ----
        import torch

        x = torch.zeros(4, device='cuda')  # <-
        ==> target.toml <==
        [distributions]
        torch = "2.4.0+cpu"
        ----
        $ python train.py 10
        import sys
        import torch


        def main():
            for step in range(int(sys.argv[1])):
                batch = torch.rand(4, 2).cuda()  # <-
                print(batch)


        main()
        ==> target.toml <==
        gpus = "none"
        ----
        $ docker run image python train.py
        import torch
        from torch import nn

        model = nn.Linear(4, 2)
        model.cuda()  # <-
        ---- ignored if
        -$ docker run image python train.py
        +$ docker run --gpus=1 image python train.py
        ---- ignored if
        -model = nn.Linear(4, 2)
        -model.cuda()
        +device = 'cuda' if torch.cuda.is_available() else 'cpu'
        +model = nn.Linear(4, 2).to(device)
    """,
)
