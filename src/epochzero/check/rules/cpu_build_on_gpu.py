"""The job uses a GPU, but the target has none or PyTorch cannot use it."""

from __future__ import annotations

from epochzero.check.builds import lacks_cuda, moves_to_cuda
from epochzero.check.job.containers import has_no_gpus
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


def _check(program: Program, target: Target) -> Claims:
    reason = lacks_cuda(target)
    withheld = not reason and has_no_gpus(program.job)
    if withheld:
        reason = "its container starts without a GPU"
    if not reason:
        return
    reach = Reach.of(program)
    for call in moves_to_cuda(program):
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


_CUDA = {
    "train.py": "import torch\nfrom torch import nn\n\nmodel = nn.Linear(4, 2)\nmodel.cuda()\n"
}
_TO = {
    "train.py": "import torch\nfrom torch import nn\n\ndevice = torch.device('cuda:0')\n"
    "model = nn.Linear(4, 2).to(device)\n"
}
_KEYWORD = {"train.py": "import torch\n\nx = torch.zeros(4, device='cuda')\n"}
_LOOP = {
    "train.py": "import sys\nimport torch\n\n\ndef main():\n    for step in range(int(sys.argv[1])):\n"
    "        batch = torch.rand(4, 2).cuda()\n        print(batch)\n\n\nmain()\n"
}
_ASKS = {
    "train.py": "import torch\nfrom torch import nn\n\n"
    "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nmodel = nn.Linear(4, 2).to(device)\n"
}
_UNDER = {
    "train.py": "import torch\nfrom torch import nn\n\nmodel = nn.Linear(4, 2)\n"
    "if torch.cuda.is_available():\n    model.cuda()\n"
}

RULE = Rule(
    title="The job uses a GPU that PyTorch cannot use",
    category="framework_api_misuse",
    why="A PyTorch from PyPI's CPU index, or a job without an allocated GPU, fails at the first "
    ".cuda().",
    fix="Install a CUDA build, request a GPU, or choose the device with torch.cuda.is_available().",
    source="pytorch/pytorch issue 30664, Torch not compiled with CUDA enabled",
    check=_check,
    catches=(
        Case(_CUDA, target='cuda_of_torch = ""\n', line=5),
        Case(_TO, target='gpus = "none"\n', line=5),
        Case(_KEYWORD, target='[distributions]\ntorch = "2.4.0+cpu"\n', line=3),
        Case(_LOOP, ("10",), target='gpus = "none"\n', line=7),
        Case(_CUDA, command=("docker", "run", "image", "python", "train.py"), line=5),
    ),
    leaves=(
        Case(_ASKS, target='cuda_of_torch = ""\n'),
        Case(_UNDER, target='gpus = "none"\n'),
        Case(_CUDA, target='gpus = "1 x A100"\n'),
        Case(_CUDA),
        Case(_CUDA, command=("docker", "run", "--gpus=1", "image", "python", "train.py")),
        Case(_ASKS, command=("docker", "run", "image", "python", "train.py")),
        Case({"train.py": "import torch\nx = torch.ones(2).to('cpu')\n"}, target='gpus = "none"\n'),
    ),
)
